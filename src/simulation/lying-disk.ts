import type { MemoryEngine } from '../apiserver/storage/memory-engine.ts';
import { type LogEntry, StorageError } from '../apiserver/storage/port.ts';
import type { CrashableEngine } from './server.ts';

/** Commits that a lying disk says it has, and has not. */
const UNWRITTEN_MAX = 20;

interface Commit {
  readonly append: readonly LogEntry[];
  readonly drop: readonly number[];
}

/** A disk that says that things are on it while they are only in its cache: what is there is lost in a crash. */
export class LyingDisk implements CrashableEngine {
  readonly #disk: MemoryEngine;
  readonly #unwritten: Commit[] = [];

  constructor(disk: MemoryEngine) {
    this.#disk = disk;
  }

  load(visit: (entry: LogEntry) => void): Promise<void> {
    return this.#disk.load(visit);
  }

  read(revision: number): LogEntry | undefined {
    for (const { append } of this.#unwritten) for (const entry of append) if (entry.revision === revision) return entry;
    return this.#disk.read(revision);
  }

  async commit(append: readonly LogEntry[], drop: readonly number[]): Promise<void> {
    this.#unwritten.push({ append, drop });
    const oldest = this.#unwritten.length > UNWRITTEN_MAX ? this.#unwritten[0] : undefined;
    if (!oldest) return;
    try {
      await this.#disk.commit(oldest.append, oldest.drop);
      this.#unwritten.shift();
    } catch (error) {
      // A disk that is full says nothing about what it has in its cache.
      if (!(error instanceof StorageError) || error.fatal) throw error;
    }
  }

  async close(): Promise<void> {
    await this.#disk.close();
  }

  crash(): MemoryEngine {
    return this.#disk.crash();
  }
}
