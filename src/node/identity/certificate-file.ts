import { createPrivateKey, X509Certificate } from 'node:crypto';
import type { DiskFiles } from '../../env/ports.ts';

/** What of the files of the host certificates need. */
export type IdentityFiles = Pick<DiskFiles, 'describe' | 'read' | 'replace' | 'makeDirectory' | 'remove'>;

/** A certificate with its key, both PEM, and what it says of itself. */
export interface NodeCertificate {
  /** With whatever chain came with it. */
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

const PRIVATE = { mode: 0o600 };
const CERTIFICATES = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n?/g;
const KEY = /-----BEGIN (?:EC )?PRIVATE KEY-----[^-]+-----END (?:EC )?PRIVATE KEY-----\n?/;

/** The certificate in a text that holds it and its key. Undefined where they are not there, or not of each other. */
export function parseCertificate(text: string): NodeCertificate | undefined {
  const certificates = text.match(CERTIFICATES) ?? [];
  const keyPem = KEY.exec(text)?.[0];
  if (certificates.length === 0 || keyPem === undefined) return undefined;
  try {
    const leaf = new X509Certificate(certificates[0] ?? '');
    if (!leaf.checkPrivateKey(createPrivateKey(keyPem))) return undefined;
    return {
      certificatePem: certificates.join(''),
      keyPem,
      notBeforeMs: Date.parse(leaf.validFrom),
      notAfterMs: Date.parse(leaf.validTo),
    };
  } catch {
    // What does not parse is no certificate; there will be another one.
    return undefined;
  }
}

/**
 * One certificate on disk, with its key in the same file, so that it is there whole or not at all; and, while one is
 * asked for, the key of the next: who is killed while he waits asks the same again, and gets the same answer.
 */
export class CertificateFile {
  readonly path: string;
  readonly #files: IdentityFiles;
  readonly #pendingPath: string;

  constructor(files: IdentityFiles, path: string) {
    this.#files = files;
    this.path = path;
    this.#pendingPath = `${path}.pending-key`;
  }

  /** Whether there is anything, good or not. */
  async exists(): Promise<boolean> {
    return (await this.#files.describe(this.path)) !== undefined;
  }

  async read(): Promise<NodeCertificate | undefined> {
    const text = await readText(this.#files, this.path);
    return text === undefined ? undefined : parseCertificate(text);
  }

  async write({ certificatePem, keyPem }: NodeCertificate): Promise<void> {
    await this.#files.replace(this.path, Buffer.from(certificatePem + keyPem), PRIVATE);
    await this.forgetPendingKey();
  }

  async pendingKey(): Promise<string | undefined> {
    const text = await readText(this.#files, this.#pendingPath);
    return text === undefined ? undefined : KEY.exec(text)?.[0];
  }

  async writePendingKey(keyPem: string): Promise<void> {
    await this.#files.replace(this.#pendingPath, Buffer.from(keyPem), PRIVATE);
  }

  async forgetPendingKey(): Promise<void> {
    await this.#files.remove(this.#pendingPath);
  }
}

/** The text of a file; undefined where there is none. */
export async function readText(files: IdentityFiles, path: string): Promise<string | undefined> {
  if (!(await files.describe(path))) return undefined;
  const parts: Uint8Array[] = [];
  for await (const part of files.read(path)) parts.push(part);
  return Buffer.concat(parts).toString('utf8');
}
