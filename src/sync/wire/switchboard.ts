import type { Env } from '../../env/ports.ts';
import { type Channel, type ChannelListener, type Dialer, SyncError } from '../channel.ts';
import { Conversation } from './conversation.ts';
import { DialedAddress } from './dialed-address.ts';
import { type Introduction, type VersionRange, VERSIONS } from './frame.ts';
import type { Link, Network } from './link.ts';
import { Session, type Stranger } from './session.ts';
import type { StreamMetrics } from './stream-metrics.ts';

/**
 * Which stream carries the conversation with each peer. Either side may dial, for pairs of which it is the source, and one
 * stream is enough for both directions; so streams can meet. The rules, which both sides follow by themselves:
 *
 * - Nobody says hello while a stream to that peer stands. A hello therefore means that its sender has none, whatever this
 *   side believes; the new stream takes the place of the old one.
 * - Where both say hello at once, the side with the smaller cluster id refuses the other's; its own goes through.
 *
 * A wrong choice would cost a cut and nothing more: what is said survives streams.
 */

export interface SwitchboardOptions {
  readonly env: Env;
  readonly network: Network;
  readonly listener: ChannelListener;
  /** Of this cluster, as its certificates say. */
  readonly clusterId: string;
  /** Of this process, told from every other one. */
  readonly incarnation: string;
  /** PEM of the authorities by which this cluster is known. */
  readonly bundle: () => string;
  /** A peer, on a stream for which it has proven itself, says which authorities it has from now on. */
  readonly renewed: (peer: string, bundle: string) => void;
  readonly versions?: VersionRange;
  readonly metrics?: StreamMetrics | undefined;
}

interface Peer {
  readonly conversation: Conversation;
  /** The hello of this side that has not been answered yet. */
  greeting: Session | undefined;
}

export class Switchboard implements Dialer {
  readonly #options: SwitchboardOptions;
  readonly #peers = new Map<string, Peer>();
  readonly #addresses = new Map<string, DialedAddress>();
  /** Every stream, open or not. */
  readonly #sessions = new Set<Session>();
  #isStopped = false;

  constructor(options: SwitchboardOptions) {
    this.#options = options;
  }

  dial(connectURL: string): void {
    if (this.#isStopped || this.#addresses.has(connectURL)) return;
    const address = new DialedAddress({
      ...this.#options,
      connectURL,
      answered: (link) => this.#answered(address, link),
      isReached: () => this.#reach(address),
    });
    this.#addresses.set(connectURL, address);
    address.start();
  }

  hangUp(connectURL: string): void {
    const address = this.#addresses.get(connectURL);
    if (!address) return;
    this.#addresses.delete(connectURL);
    address.stop();
    if (address.peer !== undefined) this.#closeUnneeded(address.peer);
  }

  channel(peer: string): Channel | undefined {
    return this.#peers.get(peer)?.conversation;
  }

  /** Takes a stream that a peer has dialed. */
  accept(link: Link): void {
    if (this.#isStopped) return link.close();
    this.#begin(link, { isDialer: false, failed: () => undefined });
  }

  /** Tells all peers by which authorities this cluster is known now. */
  bundleChanged(): void {
    for (const { conversation } of this.#peers.values()) conversation.sendBundle(this.#options.bundle());
  }

  /** Ends streams of peers whose certificates are not trusted any more, and dials those that may be trusted now. */
  trustChanged(): void {
    for (const session of this.#sessions) session.check();
    for (const address of this.#addresses.values()) address.dialAnew();
  }

  /** Ends everything with a peer that is not trusted any more, and forgets what was said. */
  drop(peer: string, error: SyncError): void {
    for (const session of this.#sessions) if (session.peer === peer) session.close(error);
    this.#peers.delete(peer);
  }

  /** Ends everything. */
  stop(): void {
    this.#isStopped = true;
    for (const address of this.#addresses.values()) address.stop();
    this.#addresses.clear();
    const error = new SyncError('Closed', 'the synchronization controller has stopped');
    for (const session of this.#sessions) session.close(error);
  }

  /** True where the address is known to lead to a peer to which a stream stands: it need not be dialed. */
  #reach(address: DialedAddress): boolean {
    const conversation = address.peer === undefined ? undefined : this.#peers.get(address.peer)?.conversation;
    if (!conversation?.isOpen) return false;
    this.#options.listener.reached(address.connectURL, conversation);
    return true;
  }

  /** Somebody is behind an address that was dialed. */
  #answered(address: DialedAddress, link: Link): void {
    const peer = this.#peer(link.peer);
    if (peer.conversation.isOpen) {
      link.close();
      return address.reached();
    }
    if (peer.greeting) {
      link.close();
      return address.retry(new SyncError('Superseded', 'another address of the same peer is being dialed'));
    }
    this.#begin(link, { isDialer: true, failed: (error) => address.failed(error) });
  }

  #begin(link: Link, how: { isDialer: boolean; failed: (error: SyncError) => void }): void {
    const peer = this.#peer(link.peer);
    const { metrics } = this.#options;
    let hasOpened = false;
    let noteEnd: (() => void) | undefined;
    const session: Session = new Session({
      link: metrics ? metrics.metered(link) : link,
      clock: this.#options.env.clock,
      versions: this.#options.versions ?? VERSIONS,
      isDialer: how.isDialer,
      introduce: (stranger) => this.#introduction(peer, stranger),
      admit: () => this.#admit(peer),
      heard: (frame) => peer.conversation.hear(session, frame),
      opened: (_, stranger) => {
        hasOpened = true;
        noteEnd = metrics?.opened(how.isDialer);
        this.#opened(peer, session, stranger);
      },
      closed: (_, error) => {
        this.#sessions.delete(session);
        noteEnd?.();
        if (peer.greeting === session) peer.greeting = undefined;
        if (!hasOpened) how.failed(error);
        this.#closed(peer, session, error);
      },
    });
    this.#sessions.add(session);
    if (how.isDialer) peer.greeting = session;
    session.start();
  }

  #introduction({ conversation }: Peer, stranger: Stranger | undefined): Introduction {
    const { clusterId, incarnation, bundle } = this.#options;
    return { clusterId, incarnation, bundle: bundle(), resume: conversation.resume(stranger?.incarnation) };
  }

  #admit({ greeting, conversation }: Peer): void {
    if (greeting && this.#options.clusterId < conversation.peer)
      throw new SyncError('Superseded', 'both clusters dialed each other, and the other stream is used');
  }

  #opened(peer: Peer, session: Session, stranger: Stranger): void {
    if (peer.greeting === session) peer.greeting = undefined;
    const before = peer.conversation.session;
    peer.conversation.attach(session, stranger);
    before?.close(new SyncError('Superseded', 'another stream has taken the place of this one'));
    for (const address of this.#addresses.values()) {
      if (address.peer === peer.conversation.peer) address.reached();
    }
    this.#closeUnneeded(peer.conversation.peer);
  }

  #closed({ conversation }: Peer, session: Session, error: SyncError): void {
    const wasCurrent = conversation.session === session;
    conversation.detach(session, error);
    if (!wasCurrent || this.#isStopped) return;
    for (const address of this.#addresses.values()) if (address.peer === conversation.peer) address.lost();
  }

  #peer(id: string): Peer {
    const known = this.#peers.get(id);
    if (known) return known;
    const { incarnation, listener, env, renewed } = this.#options;
    const conversation = new Conversation({
      peer: id,
      incarnation,
      listener,
      log: env.log,
      renewed: (bundle) => renewed(id, bundle),
      becameIdle: () => this.#closeUnneeded(id),
    });
    const peer: Peer = { conversation, greeting: undefined };
    this.#peers.set(id, peer);
    return peer;
  }

  /** Whoever has dialed a stream ends it once nobody here wants it, and nothing is left to say on it. */
  #closeUnneeded(id: string): void {
    const conversation = this.#peers.get(id)?.conversation;
    const session = conversation?.session;
    if (!session?.isDialer || !conversation?.isIdle) return;
    for (const address of this.#addresses.values()) if (address.peer === id) return;
    session.close(new SyncError('Closed', 'no migration needs the stream any more'));
  }
}
