import type { Clock } from '../../env/ports.ts';
import { type Channel, type Dialer, type SyncError, UnprovenError } from '../channel.ts';
import type { Problem } from './problem.ts';
import type { Side } from './side.ts';

export interface LinksOptions {
  readonly clock: Clock;
  /** Our own cluster, as others know it. */
  readonly clusterId: string;
  readonly dialer: Dialer;
  /** The way to ourselves. */
  readonly loopback: Channel;
  /** Whether an address is one of ours. */
  readonly isOwnAddress: (connectURL: string) => boolean;
}

/** The way to the other side of a pair, as far as there is one. */
export interface Link {
  readonly channel: Channel | undefined;
  /** Why nothing gets there now. */
  readonly problem: Problem | undefined;
  /** Before this it is not to be told. */
  readonly problemFromMs?: number;
}

/**
 * When it is told that no cluster that is trusted has answered: longer than any dial takes, so that neither from the words
 * nor from the time anybody learns what there is at an address instead.
 */
const UNPROVEN_MS = 12_000;

/** The ways to other clusters: who wants which address, who is behind it, and what is wrong with it. */
export class Links {
  readonly #options: LinksOptions;
  /** Who wants an address to be dialed. */
  readonly #wanted = new Map<string, { readonly those: Set<string>; readonly sinceMs: number }>();
  readonly #reached = new Map<string, Channel>();
  /** Addresses that lead to ourselves, as whoever dialed them last has seen: names, services, whatever is in between. */
  readonly #own = new Set<string>();
  readonly #unreachable = new Map<string, SyncError>();
  readonly #cut = new Map<string, SyncError>();

  constructor(options: LinksOptions) {
    this.#options = options;
  }

  /** Whether the pair of this source is one within our cluster, unless it is bound to another one. */
  isLoop({ connectURL }: Side): boolean {
    return connectURL !== undefined && (this.#own.has(connectURL) || this.#options.isOwnAddress(connectURL));
  }

  /** Keeps an address dialed for as long as this one wants it, also one that leads to ourselves: it may lead elsewhere soon. */
  want(who: string, connectURL: string): void {
    if (this.#options.isOwnAddress(connectURL)) return;
    const wanted = this.#wanted.get(connectURL) ?? { those: new Set(), sinceMs: this.#options.clock.now() };
    this.#wanted.set(connectURL, wanted);
    wanted.those.add(who);
    this.#options.dialer.dial(connectURL);
  }

  unwant(who: string, connectURL: string): void {
    const { those } = this.#wanted.get(connectURL) ?? {};
    if (!those?.delete(who) || those.size > 0) return;
    this.#wanted.delete(connectURL);
    this.#reached.delete(connectURL);
    this.#unreachable.delete(connectURL);
    this.#own.delete(connectURL);
    this.#options.dialer.hangUp(connectURL);
  }

  /** The way to the other side; `peer` is the cluster that the migration is bound to. */
  of(side: Side, peer: string | undefined): Link {
    const { clusterId, loopback } = this.#options;
    if (peer === clusterId || (peer === undefined && this.isLoop(side)))
      return { channel: loopback, problem: undefined };
    return side.role === 'source' ? this.#dialed(side.connectURL ?? '', peer) : this.#called(peer);
  }

  opened({ peer }: Channel): void {
    this.#cut.delete(peer);
  }

  closed(peer: string, error: SyncError): void {
    this.#cut.set(peer, error);
  }

  reached(connectURL: string, channel: Channel): void {
    this.#unreachable.delete(connectURL);
    this.#own.delete(connectURL);
    if (this.#wanted.has(connectURL)) this.#reached.set(connectURL, channel);
  }

  unreachable(connectURL: string, error: SyncError): void {
    if (!this.#wanted.has(connectURL)) return;
    this.#unreachable.set(connectURL, error);
    if (error.code === 'OwnCluster') this.#own.add(connectURL);
  }

  #dialed(connectURL: string, peer: string | undefined): Link {
    const reached = this.#reached.get(connectURL);
    const channel = peer === undefined ? reached : this.#options.dialer.channel(peer);
    if (channel?.isOpen === true) return { channel, problem: undefined };
    if (peer !== undefined && reached?.isOpen === true && reached.peer !== peer) {
      const message = `${connectURL} leads to the cluster ${reached.peer} now, and the other half is in ${peer}`;
      return { channel, problem: { reason: 'OtherCluster', message } };
    }
    const error = this.#unreachable.get(connectURL) ?? (channel && this.#cut.get(channel.peer));
    if (!error || error instanceof UnprovenError) return { channel, ...this.#unproven(connectURL, reached) };
    return { channel, problem: { reason: error.code, message: `no connection to ${connectURL}: ${error.message}` } };
  }

  /** Nobody has proven to be there: the same is said of all such addresses, at the same time. */
  #unproven(connectURL: string, reached: Channel | undefined): Omit<Link, 'channel'> {
    const { sinceMs } = this.#wanted.get(connectURL) ?? {};
    if (sinceMs === undefined || reached !== undefined) return { problem: undefined };
    const message = `no cluster that is trusted here has answered at ${connectURL}: either nobody is there, or it is not in 'godwit trust list'; the log of the synchronization controller says more`;
    return { problem: { reason: 'Unreachable', message }, problemFromMs: sinceMs + UNPROVEN_MS };
  }

  #called(peer: string | undefined): Link {
    const channel = peer === undefined ? undefined : this.#options.dialer.channel(peer);
    if (peer === undefined || channel?.isOpen === true) return { channel, problem: undefined };
    const error = this.#cut.get(peer);
    const { code: reason = 'Disconnected', message: cause = 'it has not called since we started' } = error ?? {};
    return { channel, problem: { reason, message: `no connection from the cluster ${peer}: ${cause}` } };
  }
}
