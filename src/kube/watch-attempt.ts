import type { KubeObject } from '../api/meta.ts';
import type { Clock, Timer } from '../env/ports.ts';
import type { WatchEvent } from './client.ts';

/** The events of one watch, which ends by itself when nothing comes for too long. */
export class WatchAttempt<T extends KubeObject> {
  readonly #clock: Clock;
  readonly #silenceMsMax: number;
  readonly #stop = new AbortController();
  readonly #parent: AbortSignal;
  readonly #onParentAbort = (): void => this.#end();
  #iterator: AsyncIterator<WatchEvent<T>> | undefined;
  #timer: Timer;
  #lastMs: number;
  #isSilent = false;
  /** Ends the wait for the next event, however long the transport takes to notice. */
  #giveUp: (() => void) | undefined;

  constructor(clock: Clock, silenceMsMax: number, signal: AbortSignal) {
    this.#clock = clock;
    this.#silenceMsMax = silenceMsMax;
    this.#parent = signal;
    this.#lastMs = clock.now();
    this.#timer = clock.setTimer(() => this.#look(), silenceMsMax);
    signal.addEventListener('abort', this.#onParentAbort, { once: true });
    if (signal.aborted) this.#onParentAbort();
  }

  /** Ends the request, and with it the events. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  /** Whether it was ended for its silence. */
  get isSilent(): boolean {
    return this.#isSilent;
  }

  /** Begins to follow; `open` makes the request with this attempt's signal. */
  async open(open: () => Promise<AsyncIterable<WatchEvent<T>>>): Promise<void> {
    this.#iterator = (await open())[Symbol.asyncIterator]();
  }

  /** The next event; undefined when there are no more, or it was ended. Rejects as the client does. */
  async next(): Promise<WatchEvent<T> | undefined> {
    if (!this.#iterator || this.#stop.signal.aborted) return undefined;
    const given = new Promise<undefined>((resolve) => (this.#giveUp = () => resolve(undefined)));
    const result = await Promise.race([this.#iterator.next(), given]);
    this.#lastMs = this.#clock.now();
    return result?.done ? undefined : result?.value;
  }

  /** Ends the request and frees what it holds. */
  close(): void {
    this.#timer.cancel();
    this.#parent.removeEventListener('abort', this.#onParentAbort);
    this.#end();
    // The iterator has nothing more to say, and how a connection that nobody reads breaks is of no interest.
    this.#iterator?.return?.().catch(() => undefined);
  }

  /** One timer for all events: it looks how long ago the last one was, and waits for the rest. */
  #look(): void {
    const restMs = this.#lastMs + this.#silenceMsMax - this.#clock.now();
    if (restMs > 0) {
      this.#timer = this.#clock.setTimer(() => this.#look(), restMs);
      return;
    }
    this.#isSilent = true;
    this.#end();
  }

  #end(): void {
    this.#stop.abort(this.#parent.reason);
    this.#giveUp?.();
  }
}
