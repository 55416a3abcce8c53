import type { Random } from '../../env/ports.ts';
import { type Engine, type LogEntry, StorageError } from './port.ts';

/**
 * What happens to a commit: the disk is full and nothing is written, or the sync fails and nobody knows what was.
 */
export type CommitFault = 'disk-full' | 'failed-sync';

export interface MemoryEngineOptions {
  /** Where writes tear; without it they are lost whole. */
  readonly random?: Random;
  /** Asked at each commit. */
  readonly fault?: () => CommitFault | undefined;
  /** Awaited by each commit twice: before it reaches the disk, and before it is acknowledged. */
  readonly delay?: () => Promise<void>;
}

/**
 * An engine in memory for tests and simulation, which fails as disks do: crashes, torn writes, failed syncs, full
 * disks, delays. All that happens is decided by the options, so a run can be repeated.
 *
 * The disk under it has a journal and a table. A commit is written to the journal as one record with a checksum,
 * synced, and then applied. A crash keeps any prefix of a journal that was not synced; opening replays a journal
 * whose checksum holds, and discards any other: a batch is there whole, or not at all.
 */
export class MemoryEngine implements Engine {
  readonly #disk: Disk;
  readonly #options: MemoryEngineOptions;
  #state: 'working' | 'failed' | 'crashed' | 'closed' = 'working';
  #isCommitting = false;

  constructor(options: MemoryEngineOptions = {}, disk = new Disk()) {
    this.#options = options;
    this.#disk = disk;
  }

  async load(visit: (entry: LogEntry) => void): Promise<void> {
    for (const entry of this.#disk.entries()) visit(entry);
  }

  read(revision: number): LogEntry | undefined {
    return this.#disk.read(revision);
  }

  async commit(append: readonly LogEntry[], drop: readonly number[]): Promise<void> {
    if (this.#state !== 'working') throw new StorageError(`the engine is ${this.#state}`, { fatal: true });
    if (this.#isCommitting) throw new Error('one commit at a time');
    this.#isCommitting = true;
    const fault = this.#options.fault?.();
    if (fault !== 'disk-full') this.#disk.writeJournal(append, drop);
    await this.#options.delay?.();
    await this.#unlessCrashed();
    if (fault === 'disk-full') {
      this.#isCommitting = false;
      throw new StorageError('no space left', { fatal: false });
    }
    if (fault === 'failed-sync') {
      this.#state = 'failed';
      this.#disk.tearJournal(this.#options.random);
      throw new StorageError('the sync failed', { fatal: true });
    }
    this.#disk.syncJournal();
    await this.#options.delay?.();
    await this.#unlessCrashed();
    this.#isCommitting = false;
  }

  async close(): Promise<void> {
    if (this.#state === 'working') this.#state = 'closed';
  }

  /**
   * The power fails: what was not synced is torn, calls in flight never return. Answers the engine of the next boot.
   * Works after a failed sync and after a close, too.
   */
  crash(options: MemoryEngineOptions = this.#options): MemoryEngine {
    this.#state = 'crashed';
    this.#disk.tearJournal(this.#options.random);
    return new MemoryEngine(options, this.#disk.reopen());
  }

  /** A process that is gone neither goes on nor fails: whoever waits for it waits forever. */
  #unlessCrashed(): Promise<void> {
    return this.#state === 'crashed' ? new Promise(() => undefined) : Promise.resolve();
  }
}

/** One commit, as it lies in the journal: with a checksum, so to speak, since only the whole of it counts. */
interface JournalRecord {
  readonly append: readonly LogEntry[];
  readonly drop: readonly number[];
}

/** A table of synced entries, and a journal with the one commit that may not have been synced yet. */
class Disk {
  readonly #table: Map<number, LogEntry>;
  #journal: JournalRecord | undefined;

  constructor(table: ReadonlyMap<number, LogEntry> = new Map(), journal?: JournalRecord) {
    this.#table = new Map(table);
    this.#journal = journal;
    this.syncJournal();
  }

  entries(): LogEntry[] {
    return [...this.#table.values()].sort((a, b) => a.revision - b.revision);
  }

  read(revision: number): LogEntry | undefined {
    return this.#table.get(revision);
  }

  writeJournal(append: readonly LogEntry[], drop: readonly number[]): void {
    this.#journal = { append, drop };
  }

  /** Some prefix of the journal has reached the disk: none of it, a part, or all, each as likely. A part is as none. */
  tearJournal(random: Random | undefined): void {
    const chance = random === undefined ? 0 : random.number() * 3 - 1;
    if (chance < 1) this.#journal = undefined;
  }

  /** Applies the journal if it is whole. */
  syncJournal(): void {
    const { append = [], drop = [] } = this.#journal ?? {};
    for (const revision of drop) this.#table.delete(revision);
    for (const entry of append) this.#table.set(entry.revision, entry);
    this.#journal = undefined;
  }

  reopen(): Disk {
    return new Disk(this.#table, this.#journal);
  }
}
