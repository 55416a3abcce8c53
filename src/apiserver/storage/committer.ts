import type { Clock, Timer } from '../../env/ports.ts';
import type { Stored } from './model.ts';
import { type Engine, type LogEntry, StorageError } from './port.ts';

/** One transaction stays small enough to be written within a few milliseconds. */
export const BATCH_ENTRIES_MAX = 1024;
export const BATCH_CHARACTERS_MAX = 8 * 1024 * 1024;

/** A commit that takes longer than this will not come back: better to start again than to keep every client waiting. */
export const COMMIT_MS_MAX = 60_000;

/**
 * How many log entries a commit may drop besides twice its writes. A write makes at most two entries droppable, so
 * twice keeps pace, and the surplus works off what an earlier process left.
 */
const DROP_SURPLUS_MAX = 256;

/** A write that is waiting for its commit. */
export interface StagedWrite {
  readonly entry: LogEntry;
  readonly stored: Stored;
  /** Settles as the writer's own promise does. */
  readonly done: Promise<Stored>;
  readonly resolve: (stored: Stored) => void;
  readonly reject: (error: Error) => void;
}

/** What the committer asks of, and tells, its store. */
export interface CommitterHost {
  /** Revisions that may leave the log, at most so many. */
  droppable(countMax: number): readonly number[];
  /** These writes and drops are on disk, in this order. */
  committed(writes: readonly StagedWrite[], dropped: number): void;
  /** None of these writes is on disk, and none is staged any more; after a fatal error, none ever will be. */
  failed(writes: readonly StagedWrite[], error: StorageError): void;
}

/**
 * Group commit: one commit is in flight, everything that is staged meanwhile goes into the next. An fsync costs the
 * same for one write as for hundreds, so throughput rises with the load while a lone writer waits for one fsync only.
 */
export class Committer {
  readonly #engine: Engine;
  readonly #host: CommitterHost;
  readonly #clock: Clock | undefined;
  #staged: StagedWrite[] = [];
  #running: Promise<void> | undefined;
  #failure: StorageError | undefined;

  constructor(engine: Engine, host: CommitterHost, clock: Clock | undefined) {
    this.#engine = engine;
    this.#host = host;
    this.#clock = clock;
  }

  /** Throws when an earlier commit has failed in a way that ends this process's writing. */
  assertWorking(): void {
    if (this.#failure !== undefined) {
      throw new StorageError('storage has failed, writes need a restart', { fatal: true, cause: this.#failure });
    }
  }

  stage(write: StagedWrite): void {
    this.#staged.push(write);
    this.#running ??= this.#run();
  }

  /** Resolves once nothing is staged or in flight. Never rejects. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  async #run(): Promise<void> {
    // Writes of the same turn share the first commit.
    await Promise.resolve();
    while (this.#staged.length > 0) await this.#commitBatch();
    this.#running = undefined;
  }

  async #commitBatch(): Promise<void> {
    const batch = this.#takeBatch();
    const drop = this.#host.droppable(2 * batch.length + DROP_SURPLUS_MAX);
    try {
      const append = batch.map((write) => write.entry);
      await this.#withDeadline(this.#engine.commit(append, drop));
      this.#host.committed(batch, drop.length);
    } catch (error) {
      this.#fail(batch, storageError(error));
    }
  }

  /** What was staged after a failed batch may be based on it, so it fails with it. */
  #fail(batch: readonly StagedWrite[], error: StorageError): void {
    if (error.fatal) this.#failure = error;
    const writes = [...batch, ...this.#staged];
    this.#staged = [];
    this.#host.failed(writes, error);
  }

  #takeBatch(): StagedWrite[] {
    let count = 0;
    let characters = 0;
    for (const write of this.#staged) {
      characters += write.entry.text.length;
      if (count > 0 && (count === BATCH_ENTRIES_MAX || characters > BATCH_CHARACTERS_MAX)) break;
      count++;
    }
    return this.#staged.splice(0, count);
  }

  async #withDeadline(commit: Promise<void>): Promise<void> {
    if (this.#clock === undefined) return commit;
    let timer: Timer | undefined;
    const deadline = new Promise<never>((_, reject) => {
      timer = this.#clock?.setTimer(
        () => reject(new StorageError(`a commit took longer than ${COMMIT_MS_MAX} ms`, { fatal: true })),
        COMMIT_MS_MAX,
      );
    });
    try {
      await Promise.race([commit, deadline]);
    } finally {
      timer?.cancel();
    }
  }
}

/** What an engine did not name is unknown, and the unknown is fatal. */
function storageError(error: unknown): StorageError {
  if (error instanceof StorageError) return error;
  return new StorageError('a commit failed for an unknown reason', { fatal: true, cause: error });
}
