/**
 * The storage port. An engine is a durable, ordered log: one entry per write, keyed by its revision.
 * The newest entry of a key is its object; older ones stay readable until they are dropped.
 */
export interface LogEntry {
  /** Positive, unique, strictly increasing in the order of commits. */
  readonly revision: number;
  readonly type: 'put' | 'delete';
  /** The resource, e.g. `pods` or `deployments.apps`. */
  readonly bucket: string;
  /** `namespace/name`, or `name` for cluster-scoped objects. */
  readonly key: string;
  /** The object as JSON, its resourceVersion included; for a deletion, its last state. */
  readonly text: string;
  /** The revision that this entry supersedes; 0 for a creation. */
  readonly previous: number;
}

export interface Engine {
  /** Visits every entry in order of revision. Called once, before anything else. */
  load(visit: (entry: LogEntry) => void): Promise<void>;
  /** The entry of a revision that has not been dropped. */
  read(revision: number): LogEntry | undefined;
  /**
   * Appends and drops in one atomic step, and resolves once it is on disk. One call at a time.
   * A rejection with `fatal` false means that nothing was written (disk full); any other means that
   * nobody knows, and the process has to start again from what is on disk.
   */
  commit(append: readonly LogEntry[], drop: readonly number[]): Promise<void>;
  close(): Promise<void>;
}

/** Why a commit failed, and whether the state on disk is still known. */
export class StorageError extends Error {
  readonly fatal: boolean;

  constructor(message: string, options: { fatal: boolean; cause?: unknown }) {
    super(message, { cause: options.cause });
    this.name = 'StorageError';
    this.fatal = options.fatal;
  }
}
