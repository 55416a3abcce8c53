import { SyncError, UnprovenError } from '../channel.ts';
import { parseAddress } from './address.ts';
import type { AddressRules } from './address-rules.ts';
import type { Link, Network } from './link.ts';

/**
 * The network for addresses that users choose. What is not allowed is not dialed; and of addresses at which nobody who is
 * trusted has been seen yet only so many are dialed at once, so that nobody can have whole networks searched.
 */

/** Each takes ten seconds at most. */
const UNPROVEN_MAX = 32;
/** How many addresses are remembered at which somebody was. */
const PROVEN_MAX = 1024;

export interface GuardedNetworkOptions {
  readonly network: Network;
  /** What administrators allow; undefined: anything. */
  readonly rules: () => AddressRules | undefined;
}

export class GuardedNetwork implements Network {
  readonly #options: GuardedNetworkOptions;
  /** Addresses at which a cluster that is trusted has proven itself, the oldest first. */
  readonly #proven = new Set<string>();
  readonly #waiting = new Set<() => void>();
  #dials = 0;

  constructor(options: GuardedNetworkOptions) {
    this.#options = options;
  }

  async connect(connectURL: string, signal: AbortSignal): Promise<Link> {
    const address = parseAddress(connectURL);
    const { authority } = address;
    const rules = this.#options.rules();
    if (rules && !rules.allow(address))
      throw new SyncError('NotAllowed', `the administrators of this cluster do not allow to dial ${authority}`);
    // What is listed, or was seen to be a cluster's, is nothing that we could give away.
    if (rules || this.#proven.has(authority)) return this.#connectOpenly(connectURL, authority, signal);
    await this.#enter(signal);
    try {
      return this.#noted(authority, await this.#options.network.connect(connectURL, signal));
    } finally {
      this.#leave();
    }
  }

  async #connectOpenly(connectURL: string, authority: string, signal: AbortSignal): Promise<Link> {
    try {
      return this.#noted(authority, await this.#options.network.connect(connectURL, signal));
    } catch (error) {
      throw error instanceof UnprovenError ? new SyncError(error.code, error.message, error.cause) : error;
    }
  }

  #noted(authority: string, link: Link): Link {
    this.#proven.delete(authority);
    this.#proven.add(authority);
    const [oldest] = this.#proven;
    if (this.#proven.size > PROVEN_MAX && oldest !== undefined) this.#proven.delete(oldest);
    return link;
  }

  async #enter(signal: AbortSignal): Promise<void> {
    while (this.#dials >= UNPROVEN_MAX && !signal.aborted) await this.#turn(signal);
    if (signal.aborted) throw new SyncError('Closed', 'the address is not wanted any more');
    this.#dials++;
  }

  #leave(): void {
    this.#dials--;
    const [next] = this.#waiting;
    next?.();
  }

  #turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const go = (): void => {
        this.#waiting.delete(go);
        signal.removeEventListener('abort', go);
        resolve();
      };
      this.#waiting.add(go);
      signal.addEventListener('abort', go, { once: true });
    });
  }
}
