import type { DiskFiles, Env, HostFiles, UserIdentity } from '../../env/ports.ts';
import type { MigrationTls } from '../../hypervisor/migration.ts';
import {
  type Authority,
  createAuthority,
  DAY_MS,
  type Identity,
  issueIdentity,
} from '../../machinery/x509/authority.ts';
import type { CopyCredentials } from './copy-credentials.ts';
import type { CredentialFiles } from './copy-options.ts';
import { keyAgreementPem } from './key-agreement.ts';
import type { SourceCredentials } from './peer.ts';

export interface MigrationCertificatesOptions {
  readonly env: Pick<Env, 'clock' | 'random'>;
  readonly files: Pick<DiskFiles, 'makeDirectory' | 'remove'> & Pick<HostFiles, 'writePrivate'>;
  /** A directory for nothing else, which machines' users may pass through the directories above to get to. */
  readonly directory: string;
  /** Whom machines run as, if not as this process. */
  readonly user: UserIdentity | undefined;
}

/**
 * How long certificates are good. Nobody but the two machines has their keys, and nobody at all that of their authority; but
 * a disk may be copied for days before memory follows, and a post-copy whose link breaks after that must be mended.
 */
const VALIDITY_MS = 7 * DAY_MS;
/** Machines get to what they know the name of, and see nothing else. */
const PASSAGE = { mode: 0o711 };

/**
 * Certificates by which the two machines of one migration know each other, and nobody else. Each migration has an
 * authority of its own, whose key is forgotten as soon as it has signed both.
 */
export class MigrationCertificates implements CopyCredentials {
  readonly #options: MigrationCertificatesOptions;
  #emptied: Promise<void> | undefined;

  constructor(options: MigrationCertificatesOptions) {
    this.#options = options;
  }

  async issue<T>(
    _podUID: string,
    use: (tls: MigrationTls) => Promise<T>,
  ): Promise<{ readonly used: T; readonly source: SourceCredentials }> {
    const { random } = this.#options.env;
    const id = random.uuid();
    const [sourceName, targetName] = [`source-${id}`, `target-${id}`];
    const authority = await createAuthority(this.#options.env, `migration-${id}`);
    const [source, target] = await Promise.all([
      issue(authority, sourceName, 'client'),
      issue(authority, targetName, 'server'),
    ]);
    const { certificatePem: authorityPem } = authority;
    const files = await this.#put('server', authorityPem, target, sourceName);
    try {
      return { used: await use(files.tls), source: { authorityPem, ...source, peer: targetName } };
    } finally {
      await files.remove();
    }
  }

  write(_podUID: string, { authorityPem, peer, ...identity }: SourceCredentials): Promise<CredentialFiles> {
    return this.#put('client', authorityPem, identity, peer);
  }

  async #put(side: 'client' | 'server', authorityPem: string, own: Identity, peer: string): Promise<CredentialFiles> {
    const { env, files, user, directory } = this.#options;
    this.#emptied ??= this.#empty();
    await this.#emptied;
    // Machines of other guests may run as the same user, and do not know this name.
    const place = `${directory}/${env.random.uuid()}`;
    const remove = (): Promise<void> => files.remove(place);
    try {
      await files.makeDirectory(place, PASSAGE);
      const parts = {
        'ca-cert': authorityPem,
        [`${side}-cert`]: own.certificatePem,
        [`${side}-key`]: own.keyPem,
        ...(side === 'server' ? { 'dh-params': keyAgreementPem() } : {}),
      };
      for (const [name, pem] of Object.entries(parts))
        await files.writePrivate(`${place}/${name}.pem`, Buffer.from(pem), user);
    } catch (error) {
      await remove();
      throw error;
    }
    return { tls: { directory: place, peer }, remove };
  }

  /** What a former agent left: no machine will read it any more. */
  async #empty(): Promise<void> {
    const { files, directory } = this.#options;
    try {
      await files.remove(directory);
      await files.makeDirectory(directory, PASSAGE);
    } catch (error) {
      this.#emptied = undefined;
      throw error;
    }
  }
}

function issue(authority: Authority, name: string, usage: 'client' | 'server'): Promise<Identity> {
  return issueIdentity(authority, {
    commonName: name,
    dnsNames: [name],
    usages: [usage],
    validityMs: VALIDITY_MS,
  });
}
