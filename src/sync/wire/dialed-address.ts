import type { Env, Timer } from '../../env/ports.ts';
import { errorMessage } from '../../api/error-message.ts';
import { Backoff } from '../../kube/backoff.ts';
import { type ChannelListener, SyncError, UnprovenError } from '../channel.ts';
import type { Link, Network } from './link.ts';
import type { StreamMetrics } from './stream-metrics.ts';

/**
 * An address that a user gave, dialed for as long as it is wanted: at once, then with growing pauses, unless a stream to
 * the peer behind it stands. Which peer that is can change, as names and load balancers do: only a dial tells.
 */

const PAUSE = { baseMs: 500, maxMs: 30_000 };
/** A stream that has held for so long was a good one: the pause after it is the shortest again. */
const STEADY_MS = 30_000;

export interface DialedAddressOptions {
  readonly env: Env;
  readonly network: Network;
  readonly listener: Pick<ChannelListener, 'unreachable'>;
  readonly connectURL: string;
  /** A stream stands to a peer that has proven itself, and nothing has been said yet. */
  readonly answered: (link: Link) => void;
  /** Whether a stream stands already to the peer that was there last. */
  readonly isReached: () => boolean;
  readonly metrics?: StreamMetrics | undefined;
}

export class DialedAddress {
  readonly #options: DialedAddressOptions;
  readonly #backoff: Backoff;
  readonly #stopped = new AbortController();
  #peer: string | undefined;
  /** Why it could not be reached last. */
  #reason: string | undefined;
  #pause: Timer | undefined;
  #steady: Timer | undefined;
  #isDialing = false;

  constructor(options: DialedAddressOptions) {
    this.#options = options;
    this.#backoff = new Backoff(options.env.random, PAUSE);
  }

  get connectURL(): string {
    return this.#options.connectURL;
  }

  /** Who was there when it was dialed last. */
  get peer(): string | undefined {
    return this.#peer;
  }

  start(): void {
    // It never rejects.
    void this.#dial();
  }

  /** What it may have failed for is another: nobody has to wait for the end of a long pause, nor is the next one long. */
  dialAnew(): void {
    this.#backoff.reset();
    this.#pause?.cancel();
    void this.#dial();
  }

  stop(): void {
    this.#stopped.abort();
    this.#pause?.cancel();
    this.#steady?.cancel();
  }

  /** A stream to the peer stands. */
  reached(): void {
    this.#reason = undefined;
    this.#pause?.cancel();
    this.#steady?.cancel();
    this.#steady = this.#options.env.clock.setTimer(() => this.#backoff.reset(), STEADY_MS);
    this.#options.isReached();
  }

  /** It does not any more. */
  lost(): void {
    this.#steady?.cancel();
    this.#dialLater();
  }

  /** The dial came to nothing. */
  failed(error: SyncError): void {
    if (this.#stopped.signal.aborted) return;
    this.#options.metrics?.dialFailed(error.code);
    // Two that dial each other at once are no failure: the other stream is about to stand.
    if (error.code !== 'Superseded') this.#options.listener.unreachable(this.connectURL, error);
    this.retry(error);
  }

  /** The dial came to nothing, and nobody need know. */
  retry(error: SyncError): void {
    // Whoever gave the address may not learn all of it, so whoever reads the log does: once, while it stays the same.
    const isNews = error.message !== this.#reason;
    this.#reason = error.message;
    this.#options.env.log[isNews ? 'warn' : 'debug']('an address of another cluster is dialed again', {
      connectURL: this.connectURL,
      code: error.code,
      reason: error.message,
    });
    this.#dialLater();
  }

  #dialLater(): void {
    if (this.#stopped.signal.aborted) return;
    this.#pause?.cancel();
    this.#pause = this.#options.env.clock.setTimer(() => void this.#dial(), this.#backoff.next());
  }

  async #dial(): Promise<void> {
    if (this.#isDialing || this.#stopped.signal.aborted || this.#options.isReached()) return;
    this.#isDialing = true;
    try {
      const link = await this.#options.network.connect(this.connectURL, this.#stopped.signal);
      this.#isDialing = false;
      if (this.#stopped.signal.aborted) return link.close();
      this.#peer = link.peer;
      this.#options.answered(link);
    } catch (error) {
      this.#isDialing = false;
      this.failed(error instanceof SyncError ? error : new UnprovenError('Unreachable', errorMessage(error), error));
    }
  }
}
