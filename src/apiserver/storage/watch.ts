import type { Interest } from './audience.ts';
import type { Change } from './model.ts';
import type { Store } from './store.ts';

/**
 * A pull answers at most so much text (and always one): what waits is shared by all watchers, what is joined is not.
 * A replay goes in portions of the same size, and of at most so many changes, so that it lets others have their turn.
 */
const PORTION_CHARACTERS_MAX = 64 * 1024;
const REPLAY_CHANGES_MAX = 500;

export interface WatchOptions {
  /** Changes after this revision are delivered. */
  readonly since: number;
  /** Only keys that begin with this: `namespace/`. */
  readonly prefix?: string;
  /** What all changes have in common that `encode` does not leave out: spares it the others. */
  readonly interest?: Interest;
  /** Ends the watch, and frees what it holds, also while nobody is pulling. */
  readonly signal: AbortSignal;
  /** How much may wait for a consumer that does not pull (counted in UTF-16 units, mostly bytes). */
  readonly bufferBytesMax: number;
  /** The change as this watcher should see it; undefined to leave it out. The same text may be given to many watchers. */
  readonly encode: (change: Change) => string | undefined;
  /** Texts that come before every change. */
  readonly opening?: readonly string[];
  /** The last text of a watch that ends with this error; undefined to let the iteration throw it. */
  readonly farewell?: (error: unknown) => string | undefined;
  /** Called once, however the watch ends. */
  readonly onEnd?: () => void;
}

/** The consumer pulls more slowly than changes come. It can watch again from the last change that it got. */
export class SlowWatcher extends Error {
  constructor(bucket: string, bufferBytesMax: number) {
    super(`a watch of ${bucket} is more than ${bufferBytesMax} bytes behind`);
    this.name = 'SlowWatcher';
  }
}

/** A watch under way. */
export interface BucketWatch extends AsyncIterableIterator<string> {
  /**
   * Puts a text of the caller's own behind every change that is durable so far. While the past is still being
   * replayed there is no such place, and nothing is put.
   */
  insert(text: () => string): void;
  /** Ends the watch behind what is pending, which is still handed over. */
  finish(): void;
}

/**
 * Every change of a bucket after a revision, once and in order. Each pull answers what is pending as one text, or a
 * part of it where that is much.
 * Throws ExpiredRevision at once when the changes are no longer known; the iteration throws it when the history
 * overtakes a replay, SlowWatcher when too much is pending, and what `encode` throws. It ends when the signal aborts.
 */
export function watchBucket(store: Store, bucket: string, options: WatchOptions): BucketWatch {
  return new StoreWatch(store, bucket, options);
}

/**
 * First the past, then the present. The past is pulled from the history at the consumer's pace, which needs no
 * buffer; when it is exhausted, the watch subscribes in the same turn, so that no change is missed or seen twice.
 * From then on changes are pushed into the buffer by the store, a shared string each. Not an async generator,
 * because one that waits for a change cannot be ended by `return`.
 */
class StoreWatch implements BucketWatch {
  readonly #store: Store;
  readonly #bucket: string;
  readonly #options: WatchOptions;
  readonly #onAbort = (): void => this.#end();
  #past: Iterator<Change> | undefined;
  #unsubscribe: (() => void) | undefined;
  #pending: string[] = [];
  #pendingCharacters = 0;
  #failure: { readonly error: unknown } | undefined;
  #isEnded = false;
  #wake: (() => void) | undefined;

  constructor(store: Store, bucket: string, options: WatchOptions) {
    this.#store = store;
    this.#bucket = bucket;
    this.#options = options;
    this.#past = store.changesSince(bucket, options.since)[Symbol.iterator]();
    for (const text of options.opening ?? []) this.#push(text);
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal.aborted) this.#end();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<string>> {
    if (this.#wake !== undefined) return Promise.reject(new Error('a watch is pulled twice at once'));
    // Nothing is waiting in the buffer while the past goes by, so nothing can be too much there.
    if (this.#past !== undefined && this.#pending.length === 0) this.#replay(this.#past);
    const isReady = this.#pending.length > 0 || this.#isEnded;
    const ready = isReady ? Promise.resolve() : this.#past === undefined ? this.#change() : this.#replayed();
    return ready.then(this.#take);
  }

  insert(text: () => string): void {
    if (this.#past === undefined && !this.#isEnded) this.#push(text());
  }

  finish(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#past = undefined;
    this.#unsubscribe?.();
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#options.onEnd?.();
    this.#wake?.();
  }

  async return(): Promise<IteratorResult<string>> {
    this.#end();
    return { done: true, value: undefined };
  }

  /** Resolves when something is pending, or the watch has ended. */
  #change(): Promise<void> {
    return new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }

  /** The same while the past is not exhausted, in portions. */
  async #replayed(): Promise<void> {
    while (this.#past !== undefined && this.#pending.length === 0) {
      await this.#store.pause();
      if (this.#past !== undefined) this.#replay(this.#past);
    }
    if (this.#pending.length === 0 && !this.#isEnded) await this.#change();
  }

  /** Takes a portion of the past, and subscribes to the present when there is no more. */
  #replay(past: Iterator<Change>): void {
    try {
      for (let count = 0; count < REPLAY_CHANGES_MAX && this.#pendingCharacters < PORTION_CHARACTERS_MAX; count++) {
        const { done, value } = past.next();
        if (done) {
          this.#past = undefined;
          const listener = (change: Change): void => this.#onChange(change);
          this.#unsubscribe = this.#store.subscribe(this.#bucket, listener, this.#options.interest);
          return;
        }
        this.#add(value);
      }
    } catch (error) {
      this.#fail(error);
    }
  }

  #onChange(change: Change): void {
    // One who watches from a future revision has seen, elsewhere, what comes before it.
    if (change.revision <= this.#options.since) return;
    try {
      this.#add(change);
    } catch (error) {
      this.#fail(error);
      return;
    }
    // A consumer that is waiting takes everything as soon as this commit is through.
    if (this.#wake === undefined && this.#pendingCharacters > this.#options.bufferBytesMax) {
      this.#fail(new SlowWatcher(this.#bucket, this.#options.bufferBytesMax));
    }
  }

  #add(change: Change): void {
    const { prefix, encode } = this.#options;
    if (prefix !== undefined && !change.key.startsWith(prefix)) return;
    const chunk = encode(change);
    if (chunk !== undefined && chunk !== '') this.#push(chunk);
  }

  #push(chunk: string): void {
    this.#pending.push(chunk);
    this.#pendingCharacters += chunk.length;
    // The puller goes on in a later microtask, when all changes of the same commit are here.
    this.#wake?.();
  }

  /** What is pending, as the answer to a pull. */
  readonly #take = (): IteratorResult<string> => {
    this.#wake = undefined;
    if (this.#failure !== undefined) {
      const { error } = this.#failure;
      this.#failure = undefined;
      const farewell = this.#options.farewell?.(error);
      if (farewell === undefined) throw error;
      return { done: false, value: farewell };
    }
    if (this.#pending.length === 0) return { done: true, value: undefined };
    const portion = this.#portion();
    const value = portion.length === 1 ? (portion[0] as string) : portion.join('');
    this.#pendingCharacters -= value.length;
    return { done: false, value };
  };

  #portion(): string[] {
    const pending = this.#pending;
    if (this.#pendingCharacters > PORTION_CHARACTERS_MAX) {
      let count = 1;
      let characters = (pending[0] as string).length;
      while (count < pending.length && characters < PORTION_CHARACTERS_MAX)
        characters += (pending[count++] as string).length;
      return pending.splice(0, count);
    }
    this.#pending = [];
    return pending;
  }

  #fail(error: unknown): void {
    this.#failure = { error };
    this.#end();
  }

  #end(): void {
    this.#pending = [];
    this.#pendingCharacters = 0;
    this.finish();
  }
}
