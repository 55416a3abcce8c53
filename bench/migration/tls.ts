import { chownSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { realClock, realRandom } from '../../src/env/real.ts';
import { keyAgreementPem } from '../../src/node/migrations/key-agreement.ts';
import { createAuthority, HOUR_MS, issueIdentity } from '../../src/machinery/x509/authority.ts';

/** Credentials for both sides of a migration by hand, as QEMU looks for them. */
export interface HandTls {
  readonly directory: string;
  readonly targetName: string;
}

const NAMES = { client: 'hand-source', server: 'hand-target' } as const;

/** Makes them in a new directory that QEMU's user can read. */
export async function handTls(directory: string, owner: { uid: number; gid: number }): Promise<HandTls> {
  const authority = await createAuthority({ clock: realClock, random: realRandom }, 'by hand');
  const files = new Map([
    ['ca-cert.pem', authority.certificatePem],
    // As Godwit gives it: a QEMU that has none makes one for every migration that it waits for.
    ['dh-params.pem', keyAgreementPem()],
  ]);
  for (const side of ['client', 'server'] as const) {
    const commonName = NAMES[side];
    const options = { commonName, dnsNames: [commonName], usages: [side], validityMs: HOUR_MS };
    const { certificatePem, keyPem } = await issueIdentity(authority, options);
    files.set(`${side}-cert.pem`, certificatePem).set(`${side}-key.pem`, keyPem);
  }
  mkdirSync(directory, { mode: 0o711 });
  for (const [name, text] of files) {
    writeFileSync(join(directory, name), text, { mode: 0o600 });
    chownSync(join(directory, name), owner.uid, owner.gid);
  }
  return { directory, targetName: NAMES.server };
}
