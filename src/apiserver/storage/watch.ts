import type { Change } from './model.ts';
import type { Store } from './store.ts';

/** A replay goes in portions of at most so many changes and so much text, so that a long one lets others have their turn. */
const REPLAY_CHANGES_MAX = 500;
const REPLAY_CHARACTERS_MAX = 256 * 1024;

export interface WatchOptions {
  /** Changes after this revision are delivered. */
  readonly since: number;
  /** Only keys that begin with this: `namespace/`. */
  readonly prefix?: string;
  /** Ends the watch, and frees what it holds, also while nobody is pulling. */
  readonly signal: AbortSignal;
  /** How much may wait for a consumer that does not pull (counted in UTF-16 units, mostly bytes). */
  readonly bufferBytesMax: number;
  /** The change as this watcher should see it; undefined to leave it out. The same text may be given to many watchers. */
  readonly encode: (change: Change) => string | undefined;
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
}

/**
 * Every change of a bucket after a revision, once and in order. Each pull answers all that is pending as one text.
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
    options.signal.addEventListener('abort', this.#onAbort, { once: true });
    if (options.signal.aborted) this.#end();
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<string>> {
    if (this.#wake !== undefined) throw new Error('a watch is pulled twice at once');
    if (this.#past !== undefined) this.#replay(this.#past);
    while (this.#pending.length === 0 && !this.#isEnded) {
      if (this.#past === undefined) await this.#change();
      else {
        await this.#store.pause();
        if (this.#past !== undefined) this.#replay(this.#past);
      }
    }
    return this.#take();
  }

  insert(text: () => string): void {
    if (this.#past === undefined && !this.#isEnded) this.#push(text());
  }

  async return(): Promise<IteratorResult<string>> {
    this.#end();
    return { done: true, value: undefined };
  }

  /** Resolves when something is pending, or the watch has ended. */
  async #change(): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
    this.#wake = undefined;
  }

  /** Takes a portion of the past, and subscribes to the present when there is no more. */
  #replay(past: Iterator<Change>): void {
    try {
      for (let count = 0; count < REPLAY_CHANGES_MAX && this.#pendingCharacters < REPLAY_CHARACTERS_MAX; count++) {
        const { done, value } = past.next();
        if (done) {
          this.#past = undefined;
          this.#unsubscribe = this.#store.subscribe(this.#bucket, (change) => this.#onChange(change));
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

  #take(): IteratorResult<string> {
    if (this.#failure !== undefined) {
      const { error } = this.#failure;
      this.#failure = undefined;
      throw error;
    }
    if (this.#isEnded) return { done: true, value: undefined };
    const value = this.#pending.length === 1 ? (this.#pending[0] as string) : this.#pending.join('');
    this.#pending = [];
    this.#pendingCharacters = 0;
    return { done: false, value };
  }

  #fail(error: unknown): void {
    this.#failure = { error };
    this.#end();
  }

  #end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#past = undefined;
    this.#pending = [];
    this.#pendingCharacters = 0;
    this.#unsubscribe?.();
    this.#options.signal.removeEventListener('abort', this.#onAbort);
    this.#wake?.();
  }
}
