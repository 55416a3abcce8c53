import { type Clock, sleep } from '../../env/ports.ts';
import { Audience, type ChangeListener, type Interest } from './audience.ts';
import { Bucket } from './bucket.ts';
import { Committer, type StagedWrite } from './committer.ts';
import { type ChangeRecord, History, recordOf } from './history.ts';
import { type Change, ExpiredRevision, RevisionMismatch, PastState, type Stored, stored } from './model.ts';
import { listNow, listPast } from './past.ts';
import { type Engine, type LogEntry, StorageError } from './port.ts';

export { ExpiredRevision, RevisionMismatch } from './model.ts';
export type { Change, Stored } from './model.ts';

/** How many changes can be looked back on, over all buckets: some minutes of a busy cluster, a few MB of memory. */
export const HISTORY_CHANGES_MAX = 100_000;
/** The same in text, which is on disk: who writes large objects again and again must not fill it. */
const HISTORY_CHARACTERS_MAX = 1024 ** 3;

/** The revision of an empty store: "0" has a meaning of its own in Kubernetes and must never be a real one. */
const EMPTY_REVISION = 1;

export interface StoreOptions {
  /** Called once, when nobody knows any more what is on disk. Reads go on; the process should end. */
  readonly onFatal: (error: StorageError) => void;
  /** With a clock, a commit that hangs is a fatal failure; without, it is waited for. */
  readonly clock?: Clock;
  readonly historyChangesMax?: number;
  readonly historyCharactersMax?: number;
}

export interface Write {
  readonly bucket: string;
  readonly key: string;
  /** The revision of `latest()` that the write is based on; 0 when the object must not exist. */
  readonly expected: number;
  /** The object's text, given the revision that the write gets. Called at once, or never. */
  readonly encode: (revision: number) => string;
  /** Told of the state that the write makes, before anybody sees it. */
  readonly onStaged?: (stored: Stored) => void;
}

export interface ListOptions {
  /** Only keys that begin with this: `namespace/`. */
  readonly prefix?: string;
  /** Only keys after this one. */
  readonly after?: string;
  readonly limit?: number;
  /** A past revision to list as of. */
  readonly at?: number;
}

export interface Listing {
  /** In order of their keys. */
  readonly items: Stored[];
  /** The revision that the items are as of. */
  readonly revision: number;
  /** Whether items follow that the limit cut off, and how many. */
  readonly more: boolean;
  readonly remaining: number;
}

/**
 * All objects, in memory as text, in step with the engine's log.
 *
 * A write is staged at once (it gets its revision, and later writers see it through `latest`), but nobody else sees
 * it before it is on disk: `get`, `list`, subscribers and the writer's own promise all wait for the commit. So no
 * reader ever acts on something that a crash takes back. Writers do build on what is staged: otherwise every second
 * update of an object would wait for a disk. When a batch fails, everything staged goes with it, since all of it may
 * rest on the failed part; the revisions are not used again, or a writer who had read one could mistake another
 * write for it.
 */
export class Store {
  readonly #engine: Engine;
  readonly #onFatal: (error: StorageError) => void;
  readonly #clock: Clock | undefined;
  readonly #committer: Committer;
  readonly #buckets: Map<string, Bucket>;
  readonly #history: History;
  /** Staged writes by bucket and key, newest only. */
  readonly #overlay = new Map<string, Map<string, StagedWrite>>();
  readonly #audiences = new Map<string, Audience>();
  #revision: number;
  #nextRevision: number;
  #closed = false;
  #hasFailed = false;

  private constructor(
    engine: Engine,
    options: StoreOptions,
    buckets: Map<string, Bucket>,
    history: History,
    revision: number,
  ) {
    this.#engine = engine;
    this.#onFatal = options.onFatal;
    this.#clock = options.clock;
    this.#buckets = buckets;
    this.#history = history;
    this.#revision = revision;
    this.#nextRevision = revision + 1;
    const host = {
      droppable: (countMax: number) => this.#history.droppable(countMax),
      committed: (writes: readonly StagedWrite[], dropped: number) => this.#committed(writes, dropped),
      failed: (writes: readonly StagedWrite[], error: StorageError) => this.#failed(writes, error),
    };
    this.#committer = new Committer(engine, host, options.clock);
  }

  /** Loads everything that the engine has. */
  static async open(engine: Engine, options: StoreOptions): Promise<Store> {
    const buckets = new Map<string, Bucket>();
    const records: ChangeRecord[] = [];
    let revision = EMPTY_REVISION;
    await engine.load((entry) => {
      if (entry.revision <= revision) throw corrupt(entry, `it follows revision ${revision}`);
      revision = entry.revision;
      records.push(replay(buckets, entry));
    });
    const limits = {
      changesMax: options.historyChangesMax ?? HISTORY_CHANGES_MAX,
      charactersMax: options.historyCharactersMax ?? HISTORY_CHARACTERS_MAX,
    };
    return new Store(engine, options, buckets, History.fromLog(records, limits, EMPTY_REVISION), revision);
  }

  /** The newest durable revision. */
  get revision(): number {
    return this.#revision;
  }

  /** The oldest revision that `changesSince` and `list` at a past revision can answer. */
  get oldestRevision(): number {
    return this.#history.oldestRevision;
  }

  /** The durable state. */
  get(bucket: string, key: string): Stored | undefined {
    return this.#buckets.get(bucket)?.get(key);
  }

  /** The newest state, including writes that are not durable yet: what a writer bases its change on. */
  latest(bucket: string, key: string): Stored | undefined {
    const staged = this.#overlay.get(bucket)?.get(key);
    if (staged === undefined) return this.get(bucket, key);
    return staged.entry.type === 'put' ? staged.stored : undefined;
  }

  /** Creates or replaces. Resolves once durable; rejects with RevisionMismatch, StorageError, or what `encode` throws. */
  put(write: Write): Promise<Stored> {
    return this.#stage('put', write);
  }

  /** Deletes. `encode` gives the last state, with the deletion's revision. Resolves and rejects as `put` does. */
  delete(write: Write): Promise<Stored> {
    return this.#stage('delete', write);
  }

  /** Durable objects in order of their keys. Throws ExpiredRevision for an `at` out of reach. */
  list(bucket: string, options: ListOptions = {}): Listing {
    const at = options.at ?? this.#revision;
    if (at > this.#revision) throw new ExpiredRevision(at, this.oldestRevision, this.#revision);
    const found = this.#buckets.get(bucket) ?? new Bucket(bucket);
    const page = {
      prefix: options.prefix ?? '',
      after: options.after,
      limit: options.limit ?? Number.MAX_SAFE_INTEGER,
    };
    const changes = at === this.#revision ? [] : this.#history.recordsAfter(bucket, at);
    const { items, remaining } =
      changes.length === 0
        ? listNow(found, page)
        : listPast(found, page, changes, (key, revision) => stored(key, revision, this.#readText(revision)));
    return { items, revision: at, more: remaining > 0, remaining };
  }

  /** How many durable objects there are, with this prefix. */
  count(bucket: string, prefix = ''): number {
    const range = this.#buckets.get(bucket)?.range(prefix);
    return range === undefined ? 0 : range.end - range.start;
  }

  /** The buckets that hold durable objects, in order. */
  buckets(): string[] {
    return [...this.#buckets.values()]
      .filter((bucket) => bucket.size > 0)
      .map((bucket) => bucket.name)
      .sort();
  }

  /**
   * Calls back after each durable change of a bucket, in order of commits, when reads show it and before its writer
   * is answered; with an interest, after those that concern it, and perhaps others. Listeners must not throw. Answers
   * a function that ends it.
   */
  subscribe(bucket: string, listener: ChangeListener, interest?: Interest): () => void {
    const audience = this.#audiences.get(bucket) ?? new Audience();
    this.#audiences.set(bucket, audience);
    return audience.add(listener, interest);
  }

  /**
   * Every durable change of a bucket after a revision, in order; none for a future one. Throws ExpiredRevision at
   * once, or during a slow iteration that the history overtakes. Changes that come meanwhile are included, so one
   * who subscribes in the same turn in which the iteration ends sees every change once.
   */
  changesSince(bucket: string, revision: number): Iterable<Change> {
    this.#history.assertKnown(revision);
    return this.#replayedChanges(bucket, revision);
  }

  /** Resolves after others have had their turn; at once where there is no clock to wait by. */
  async pause(): Promise<void> {
    if (this.#clock !== undefined) await sleep(this.#clock, 0);
  }

  /** Commits what is staged, then closes the engine. Later writes are refused. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#committer.idle();
    await this.#engine.close();
  }

  /**
   * Whether what `latest` says of this object is there to stay: waits for the staged write of it, if there is one, and
   * answers false when that has failed. What was concluded from `latest` must be told to nobody before.
   */
  async settled(bucket: string, key: string): Promise<boolean> {
    const staged = this.#overlay.get(bucket)?.get(key);
    if (staged === undefined) return true;
    return staged.done.then(
      () => true,
      () => false,
    );
  }

  #stage(type: 'put' | 'delete', write: Write): Promise<Stored> {
    const { promise, resolve, reject } = deferred<Stored>();
    try {
      if (this.#closed) throw new StorageError('storage is closed', { fatal: true });
      this.#committer.assertWorking();
      const latest = this.latest(write.bucket, write.key);
      const previous = latest?.revision ?? 0;
      if (previous !== write.expected || (type === 'delete' && latest === undefined)) {
        throw new RevisionMismatch(write.key, write.expected, latest);
      }
      // One copy of each name, however many changes carry it.
      const bucket = this.#buckets.get(write.bucket)?.name ?? write.bucket;
      const key = latest?.key ?? ownCopy(write.key);
      const revision = this.#nextRevision;
      const text = ownCopy(write.encode(revision));
      if (this.#nextRevision !== revision) throw new Error('a write was staged while another was being encoded');
      this.#nextRevision = revision + 1;
      const entry: LogEntry = { revision, type, bucket, key, text, previous };
      const staged: StagedWrite = { entry, stored: stored(key, revision, text), done: promise, resolve, reject };
      const overlay = this.#overlay.get(bucket);
      if (overlay !== undefined) overlay.set(key, staged);
      else this.#overlay.set(bucket, new Map([[key, staged]]));
      write.onStaged?.(staged.stored);
      this.#committer.stage(staged);
    } catch (error) {
      reject(error as Error);
    }
    return promise;
  }

  #committed(writes: readonly StagedWrite[], dropped: number): void {
    this.#history.dropped(dropped);
    for (const write of writes) {
      this.#apply(write);
      write.resolve(write.stored);
    }
  }

  #apply(write: StagedWrite): void {
    const { entry } = write;
    const bucket = bucketOf(this.#buckets, entry.bucket);
    const old = entry.type === 'put' ? bucket.set(write.stored) : bucket.delete(entry.key);
    if ((old?.revision ?? 0) !== entry.previous) throw corrupt(entry, `it replaces revision ${old?.revision ?? 0}`);
    this.#revision = entry.revision;
    this.#history.push(recordOf(entry));
    const overlay = this.#overlay.get(entry.bucket);
    if (overlay?.get(entry.key) === write) overlay.delete(entry.key);
    this.#notify({
      revision: entry.revision,
      type: entry.type,
      bucket: entry.bucket,
      key: entry.key,
      stored: write.stored,
      previous: () => old,
    });
  }

  #notify(change: Change): void {
    for (const listener of this.#audiences.get(change.bucket)?.of(change) ?? []) {
      try {
        listener(change);
      } catch (error) {
        // Whatever that listener keeps is now out of step with the store, which only a restart can mend.
        this.#fatal(new StorageError(`a listener of ${change.bucket} failed`, { fatal: true, cause: error }));
      }
    }
  }

  #failed(writes: readonly StagedWrite[], error: StorageError): void {
    this.#overlay.clear();
    for (const write of writes) write.reject(error);
    if (error.fatal) this.#fatal(error);
  }

  #fatal(error: StorageError): void {
    if (this.#hasFailed) return;
    this.#hasFailed = true;
    this.#onFatal(error);
  }

  *#replayedChanges(bucket: string, revision: number): Generator<Change> {
    for (const record of this.#history.follow(bucket, revision)) {
      const { key, previous } = record;
      const live = this.get(bucket, key);
      yield {
        revision: record.revision,
        type: record.type,
        bucket: record.bucket,
        key,
        stored: live?.revision === record.revision ? live : this.#pastState(key, record.revision),
        previous: () => (previous === 0 ? undefined : this.#pastState(key, previous)),
      };
    }
  }

  /** A state that is no longer live. Most watchers of the past need only a few texts of those that they pass by. */
  #pastState(key: string, revision: number): Stored {
    return new PastState(key, revision, () => this.#readText(revision));
  }

  #readText(revision: number): string {
    const entry = this.#engine.read(revision);
    if (entry === undefined) throw new ExpiredRevision(revision, this.#history.oldestRevision);
    return entry.text;
  }
}

/** Brings the buckets up to an entry of the log, and answers what the history keeps of it. */
function replay(buckets: Map<string, Bucket>, entry: LogEntry): ChangeRecord {
  const bucket = bucketOf(buckets, entry.bucket);
  const live = bucket.get(entry.key);
  if (live !== undefined && live.revision !== entry.previous)
    throw corrupt(entry, `it replaces revision ${live.revision}`);
  const key = live?.key ?? entry.key;
  if (entry.type === 'put') bucket.set(stored(key, entry.revision, entry.text));
  else bucket.delete(key);
  return { ...recordOf(entry), bucket: bucket.name, key };
}

/**
 * A flat copy. What `encode` answers may be glued together from slices of earlier texts, and the engine's strings
 * would keep those alive for as long as the object lives.
 */
function ownCopy(text: string): string {
  return Buffer.from(text, 'utf8').toString('utf8');
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

function deferred<T>(): Deferred<T> {
  let resolve: Deferred<T>['resolve'] = () => undefined;
  let reject: Deferred<T>['reject'] = () => undefined;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

function bucketOf(buckets: Map<string, Bucket>, name: string): Bucket {
  const found = buckets.get(name);
  if (found !== undefined) return found;
  const created = new Bucket(name);
  buckets.set(name, created);
  return created;
}

function corrupt(entry: LogEntry, why: string): StorageError {
  const what = `revision ${entry.revision} of ${entry.bucket} ${entry.key}`;
  return new StorageError(`the log is inconsistent at ${what}: ${why}, not ${entry.previous}`, { fatal: true });
}
