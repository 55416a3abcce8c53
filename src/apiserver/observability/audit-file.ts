import { type FileHandle, open, rename } from 'node:fs/promises';
import type { AuditSink } from './audit.ts';

/** Larger files are set aside, as kube-apiserver does by default. */
const FILE_BYTES_MAX = 100 * 1024 * 1024;
/** Files set aside, the newest being `.1`; older ones are overwritten. */
const BACKUPS_MAX = 5;

/** Appends to a file that only its owner can read, and sets it aside when it has grown too large. */
export class AuditFile implements AuditSink {
  readonly #path: string;
  readonly #bytesMax: number;
  #file: FileHandle | undefined;
  #size = 0;

  constructor(path: string, bytesMax = FILE_BYTES_MAX) {
    this.#path = path;
    this.#bytesMax = bytesMax;
  }

  async write(lines: string): Promise<void> {
    const bytes = Buffer.from(lines);
    if (this.#file && this.#size > 0 && this.#size + bytes.length > this.#bytesMax) await this.#rotate();
    this.#file ??= await this.#open();
    await this.#file.appendFile(bytes);
    this.#size += bytes.length;
  }

  async close(): Promise<void> {
    await this.#file?.close();
    this.#file = undefined;
  }

  async #open(): Promise<FileHandle> {
    const file = await open(this.#path, 'a', 0o600);
    await file.chmod(0o600);
    this.#size = (await file.stat()).size;
    return file;
  }

  async #rotate(): Promise<void> {
    await this.close();
    for (let number = BACKUPS_MAX - 1; number >= 0; number--) {
      const from = number === 0 ? this.#path : `${this.#path}.${number}`;
      await rename(from, `${this.#path}.${number + 1}`).catch((error: NodeJS.ErrnoException) => {
        // There are only as many as were set aside so far.
        if (error.code !== 'ENOENT') throw error;
      });
    }
  }
}
