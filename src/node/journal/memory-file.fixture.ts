import type { DurableFile } from '../../env/ports.ts';

/** A file in memory, on a disk that can be full or fail, and that counts how often it is asked to be durable. */
export class MemoryFile implements DurableFile {
  contents: Uint8Array | undefined;
  writeCount = 0;
  replaceCount = 0;
  /** What the next writes fail with, before (`lost`) or after (`kept`) their bytes are there. */
  failures: { readonly code: string; readonly bytes: 'lost' | 'kept' }[] = [];
  /** Whether there is room for no more than there is. */
  isFull = false;
  /** Whether every replacement fails. */
  isReplaceable = true;
  /** What with. */
  replaceCode = 'EIO';

  constructor(contents?: Uint8Array) {
    this.contents = contents;
  }

  async read(): Promise<Uint8Array | undefined> {
    return this.contents;
  }

  async write(atBytes: number, bytes: Uint8Array): Promise<void> {
    // As long as a disk takes: others may come meanwhile.
    await new Promise((resolve) => setImmediate(resolve));
    if (!this.contents) throw new Error('there is no file');
    if (atBytes > this.contents.length) throw new Error('a hole in the file');
    if (this.isFull && atBytes + bytes.length > this.contents.length) throw diskFull();
    this.writeCount++;
    const failure = this.failures.shift();
    if (failure?.bytes !== 'lost') {
      const next = new Uint8Array(Math.max(this.contents.length, atBytes + bytes.length));
      next.set(this.contents);
      next.set(bytes, atBytes);
      this.contents = next;
    }
    if (failure) throw Object.assign(new Error(failure.code), { code: failure.code });
  }

  async replace(bytes: Uint8Array): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    if (this.isFull) throw diskFull();
    if (!this.isReplaceable) throw Object.assign(new Error(this.replaceCode), { code: this.replaceCode });
    this.replaceCount++;
    this.contents = Uint8Array.from(bytes);
  }

  async close(): Promise<void> {}
}

function diskFull(): Error {
  return Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' });
}
