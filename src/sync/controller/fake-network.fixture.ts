import { deepEqual } from '../../machinery/equal.ts';
import {
  type Channel,
  type ChannelListener,
  type Dialer,
  type OfferedHalf,
  Refusal,
  type Role,
  SyncError,
  UnprovenError,
} from '../channel.ts';

/** Clusters that reach each other by promises alone: what the real way promises, without the way. */
export class FakeNetwork {
  /** What was said: `from to role key`. */
  readonly messages: string[] = [];
  readonly #members = new Map<string, Member>();
  readonly #addresses = new Map<string, string>();
  /** Who is told what instead of hearing from the other. */
  readonly #cuts = new Map<string, SyncError>();

  /**
   * A process of a cluster that can be reached at an address, once it is ready. A new one takes the place of an older one
   * of the cluster.
   */
  join(cluster: string, address: string, listener: ChannelListener, ready: Promise<void>): Dialer {
    this.leave(cluster);
    const member = new Member(this, cluster, listener);
    void this.#add(member, address, ready);
    return member;
  }

  async #add(member: Member, address: string, ready: Promise<void>): Promise<void> {
    await ready;
    this.#members.set(member.cluster, member);
    this.#addresses.set(address, member.cluster);
    for (const each of this.#members.values()) each.tryAll();
  }

  /** The process of a cluster is dead. */
  leave(cluster: string): void {
    const member = this.#members.get(cluster);
    if (!member) return;
    this.#members.delete(cluster);
    member.die();
    for (const other of this.#members.values()) other.lost(cluster, new SyncError('Disconnected', 'it is gone'));
  }

  cut(one: string, other: string): void {
    this.#cuts.set(pairOf(one, other), new SyncError('Unreachable', 'nobody answers'));
    this.#lose(one, other, new SyncError('Silent', 'nothing was heard for too long'));
  }

  /** One of them lets the other in no more. */
  distrust(one: string, other: string): void {
    const error = new SyncError('NotTrusted', 'the trust in this cluster was revoked');
    this.#cuts.set(pairOf(one, other), error);
    this.#lose(one, other, error);
  }

  #lose(one: string, other: string, error: SyncError): void {
    this.#members.get(one)?.lost(other, error);
    this.#members.get(other)?.lost(one, error);
  }

  heal(one: string, other: string): void {
    this.#cuts.delete(pairOf(one, other));
    for (const member of this.#members.values()) member.tryAll();
  }

  /** One of them needs the way no more; it is there for as long as the other does. */
  part(one: string, other: string): void {
    if (this.#members.get(other)?.wants(one) === true) return;
    this.#members.get(one)?.lost(other, new SyncError('Closed', 'no migration needs the stream any more'));
    this.#members.get(other)?.lost(one, new SyncError('Closed', 'no migration needs the stream any more'));
  }

  /** Whatever leads to a cluster besides its own address. */
  lead(address: string, cluster: string): void {
    this.#addresses.set(address, cluster);
    for (const member of this.#members.values()) member.tryAll();
  }

  /** The addresses that a cluster dials. */
  wanted(cluster: string): readonly string[] {
    return this.#members.get(cluster)?.wanted ?? [];
  }

  at(address: string): string | undefined {
    return this.#addresses.get(address);
  }

  /** What is between two clusters. */
  cutBetween(one: string, other: string): SyncError | undefined {
    return this.#cuts.get(pairOf(one, other));
  }

  /** Who is there for this cluster. */
  reach(from: string, to: string): Member | undefined {
    return this.#cuts.has(pairOf(from, to)) ? undefined : this.#members.get(to);
  }
}

function pairOf(one: string, other: string): string {
  return [one, other].sort().join(' ');
}

class Member implements Dialer {
  readonly cluster: string;
  readonly listener: ChannelListener;
  readonly #network: FakeNetwork;
  readonly #wanted = new Set<string>();
  /** Addresses at which somebody was. */
  readonly #proven = new Set<string>();
  readonly #channels = new Map<string, FakeChannel>();
  #isDead = false;

  constructor(network: FakeNetwork, cluster: string, listener: ChannelListener) {
    this.#network = network;
    this.cluster = cluster;
    this.listener = listener;
  }

  get isDead(): boolean {
    return this.#isDead;
  }

  die(): void {
    this.#isDead = true;
  }

  dial(connectURL: string): void {
    if (this.#wanted.has(connectURL)) return;
    this.#wanted.add(connectURL);
    queueMicrotask(() => this.#try(connectURL));
  }

  hangUp(connectURL: string): void {
    this.#wanted.delete(connectURL);
    const peer = this.#network.at(connectURL);
    if (peer !== undefined && !this.wants(peer)) this.#network.part(this.cluster, peer);
  }

  get wanted(): readonly string[] {
    return [...this.#wanted];
  }

  /** Whether it dials this cluster. */
  wants(cluster: string): boolean {
    return [...this.#wanted].some((connectURL) => this.#network.at(connectURL) === cluster);
  }

  channel(peer: string): Channel | undefined {
    return this.#channels.get(peer);
  }

  tryAll(): void {
    for (const connectURL of this.#wanted) this.#try(connectURL);
  }

  lost(peer: string, error: SyncError): void {
    const channel = this.#channels.get(peer);
    if (this.#isDead || !channel?.isOpen) return;
    channel.isOpen = false;
    this.listener.closed(peer, error);
    queueMicrotask(() => this.tryAll());
  }

  #try(connectURL: string): void {
    if (this.#isDead || !this.#wanted.has(connectURL)) return;
    const cluster = this.#network.at(connectURL);
    if (cluster === this.cluster)
      return this.listener.unreachable(connectURL, new SyncError('OwnCluster', 'it leads back to this cluster'));
    const peer = cluster === undefined ? undefined : this.#network.reach(this.cluster, cluster);
    const Cause = this.#proven.has(connectURL) ? SyncError : UnprovenError;
    const cut = cluster === undefined ? undefined : this.#network.cutBetween(this.cluster, cluster);
    if (!peer)
      return this.listener.unreachable(
        connectURL,
        new Cause(cut?.code ?? 'Unreachable', cut?.message ?? 'nobody answers'),
      );
    this.#proven.add(connectURL);
    peer.open(this.cluster);
    this.listener.reached(connectURL, this.open(peer.cluster));
  }

  open(peer: string): FakeChannel {
    const channel = this.#channels.get(peer) ?? new FakeChannel(this.#network, this, peer);
    this.#channels.set(peer, channel);
    if (channel.isOpen) return channel;
    channel.open();
    this.listener.opened(channel);
    channel.sendAll();
    return channel;
  }
}

class FakeChannel implements Channel {
  readonly peer: string;
  isOpen = false;
  readonly #network: FakeNetwork;
  readonly #member: Member;
  /** What has been offered and not been settled, and what was acknowledged last. */
  readonly #offers = new Map<string, { readonly update: OfferedHalf; isSettled: boolean }>();

  /** The process that was talked to last. */
  #spokenTo: Member | undefined;

  constructor(network: FakeNetwork, member: Member, peer: string) {
    this.#network = network;
    this.#member = member;
    this.peer = peer;
  }

  /** A process that starts anew is told everything again. */
  open(): void {
    this.isOpen = true;
    const member = this.#network.reach(this.#member.cluster, this.peer);
    if (member !== this.#spokenTo) for (const offer of this.#offers.values()) offer.isSettled = false;
    this.#spokenTo = member;
  }

  offer(update: OfferedHalf): void {
    const id = `${update.role} ${update.key}`;
    const before = this.#offers.get(id);
    if (before && deepEqual(before.update.half, update.half)) return;
    this.#offers.set(id, { update, isSettled: false });
    if (this.isOpen) void this.#send(id);
  }

  withdraw(key: string, role: Role): void {
    this.#offers.delete(`${role} ${key}`);
  }

  sendAll(): void {
    for (const [id, { isSettled }] of this.#offers) if (!isSettled) void this.#send(id);
  }

  async #send(id: string): Promise<void> {
    await Promise.resolve();
    const { cluster, listener } = this.#member;
    const offer = this.#offers.get(id);
    const to = this.#network.reach(cluster, this.peer);
    if (!offer || offer.isSettled || !to || this.#member.isDead) return;
    const { key, role, half } = offer.update;
    this.#network.messages.push(`${cluster} ${this.peer} ${role} ${key}`);
    const sent = half === undefined ? undefined : (JSON.parse(JSON.stringify(half)) as unknown);
    const isHeard = (): boolean =>
      !this.#member.isDead && !to.isDead && this.#offers.get(id) === offer && this.isOpen && !offer.isSettled;
    try {
      await to.listener.received(cluster, { key, role, half: sent });
      if (!isHeard()) return;
      offer.isSettled = true;
      listener.acknowledged(this.peer, offer.update);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (!isHeard()) return;
      offer.isSettled = true;
      listener.refused(this.peer, offer.update, error);
    }
  }
}
