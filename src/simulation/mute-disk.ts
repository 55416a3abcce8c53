import type { MemoryEngine } from '../apiserver/storage/memory-engine.ts';
import type { LogEntry } from '../apiserver/storage/port.ts';
import type { CrashableEngine } from './server.ts';

/** A disk that takes everything, and never answers a server that wants it back: after a crash none can start. */
export class MuteDisk implements CrashableEngine {
  readonly #disk: MemoryEngine;

  constructor(disk: MemoryEngine) {
    this.#disk = disk;
  }

  async load(): Promise<void> {
    let isEmpty = true;
    await this.#disk.load(() => {
      isEmpty = false;
    });
    if (!isEmpty) await new Promise(() => undefined);
  }

  read(revision: number): LogEntry | undefined {
    return this.#disk.read(revision);
  }

  commit(append: readonly LogEntry[], drop: readonly number[]): Promise<void> {
    return this.#disk.commit(append, drop);
  }

  async close(): Promise<void> {
    await this.#disk.close();
  }

  crash(): MemoryEngine {
    return this.#disk.crash();
  }
}
