import type { Clock, Random } from '../env/ports.ts';
import { SyncError, UnprovenError } from '../sync/channel.ts';
import { decodeFrame, encodeFrame } from '../sync/wire/codec.ts';
import type { Frame } from '../sync/wire/frame.ts';
import type { Link, LinkHandlers, Network } from '../sync/wire/link.ts';
import type { SimulatedProcess } from './process.ts';
import type { Tracer } from './trace.ts';

/** A process as far as streams end in it. */
type Speaker = Pick<SimulatedProcess, 'clock' | 'killed'>;

/** One end of streams: a process of the synchronization controller of some cluster. */
export interface SyncEnd {
  readonly cluster: string;
  readonly speaker: Speaker;
  /** Whether another cluster is trusted in this one. */
  isKnown(cluster: string): boolean;
}

interface Listener extends SyncEnd {
  accept(link: Link): void;
}

export interface SyncNetworkOptions {
  /** The network's own. */
  readonly clock: Clock;
  readonly random: Random;
  readonly trace: Tracer;
  readonly delayMsMax: number;
}

/** How long whoever is cut off dials before it gives up. */
const CONNECT_TIMEOUT_MS = 10_000;
/** Of what is on its way when a stream breaks, so many frames at most still arrive. */
const ARRIVING_MAX = 4;

/**
 * What lies between the synchronization controllers of several clusters. Streams neither reorder nor repeat, and break
 * anywhere: what is on its way then arrives up to some frame. Two clusters can be cut off from each other, which nobody is told.
 */
export class SyncNetwork {
  readonly #options: SyncNetworkOptions;
  readonly #listeners = new Map<string, Listener>();
  readonly #wires = new Set<Wire>();
  readonly #cuts = new Map<string, number>();

  constructor(options: SyncNetworkOptions) {
    this.#options = options;
  }

  /** From now on this process is who answers at an address, until it is dead or somebody else does. */
  listen(address: string, listener: Listener): void {
    const { killed } = listener.speaker;
    this.#listeners.set(address, listener);
    killed.addEventListener('abort', () => this.stopListening(address, listener), { once: true });
  }

  /** Nobody is reached there any more, unless another one is by now. */
  stopListening(address: string, { speaker }: Pick<SyncEnd, 'speaker'>): void {
    if (this.#listeners.get(address)?.speaker === speaker) this.#listeners.delete(address);
  }

  /** The network as one process sees it. */
  of(own: SyncEnd): Network {
    own.speaker.killed.addEventListener('abort', () => this.#died(own.speaker), { once: true });
    return { connect: (address, signal) => this.#connect(own, address, signal) };
  }

  /** Breaks the streams of a cluster, with or without a sign. */
  breakStreams(cluster: string, isSilent: boolean): void {
    const { trace, random } = this.#options;
    trace.add(cluster, `all its streams break${isSilent ? ', and nobody hears of it' : ''}`);
    for (const wire of this.#wires) {
      if (!wire.ends.some((end) => end.cluster === cluster)) continue;
      for (const pipe of wire.pipes) pipe.lose(Math.floor(random.number() * ARRIVING_MAX));
      if (!isSilent) this.#broken(wire);
    }
  }

  /** For now nothing goes between these two; it does again when the answer is called. */
  cut(one: string, other: string): () => void {
    const pair = pairOf(one, other);
    this.#options.trace.add(one, `is cut off from ${other}`);
    this.#cuts.set(pair, (this.#cuts.get(pair) ?? 0) + 1);
    return () => this.#cuts.set(pair, Math.max(0, (this.#cuts.get(pair) ?? 0) - 1));
  }

  /** Everybody is reached again. */
  heal(): void {
    this.#cuts.clear();
  }

  #isCut(one: SyncEnd, other: SyncEnd): boolean {
    return (this.#cuts.get(pairOf(one.cluster, other.cluster)) ?? 0) > 0;
  }

  async #connect(own: SyncEnd, address: string, signal: AbortSignal): Promise<Link> {
    await this.#pause(own, this.#delayMs());
    const listener = this.#listeners.get(address);
    if (listener && this.#isCut(own, listener)) await this.#pause(own, CONNECT_TIMEOUT_MS);
    if (!listener || listener.speaker.killed.aborted || this.#isCut(own, listener) || signal.aborted)
      throw new SyncError('Unreachable', `nobody answers at ${address}`);
    if (!own.isKnown(listener.cluster)) throw new UnprovenError('NotTrusted', untrusted(listener, own));
    if (!listener.isKnown(own.cluster)) throw new SyncError('NotTrusted', untrusted(own, listener));
    const [near, far] = this.#wire(own, listener);
    listener.speaker.clock.setTimer(() => listener.accept(far), 0);
    await this.#pause(own, this.#delayMs());
    return near;
  }

  #wire(one: SyncEnd, other: SyncEnd): readonly [Link, Link] {
    const { clock } = this.#options;
    const pipe = (to: SyncEnd, from: SyncEnd): Pipe =>
      new Pipe({ clock, to, delayMs: () => this.#delayMs(), isCut: () => this.#isCut(from, to) });
    const pipes = [pipe(one, other), pipe(other, one)] as const;
    const wire: Wire = { ends: [one, other], pipes };
    this.#wires.add(wire);
    const link = (end: SyncEnd, peer: SyncEnd, incoming: Pipe, outgoing: Pipe): Link => ({
      peer: peer.cluster,
      validUntilMs: Number.POSITIVE_INFINITY,
      check: () => {
        if (!end.isKnown(peer.cluster)) throw new SyncError('NotTrusted', untrusted(peer, end));
      },
      listen: (handlers) => incoming.listen(handlers),
      send: (frame) => outgoing.push(frame),
      close: () => {
        incoming.mute();
        outgoing.end(new SyncError('Disconnected', 'the peer closed the connection'));
        this.#wires.delete(wire);
      },
    });
    return [link(one, other, pipes[0], pipes[1]), link(other, one, pipes[1], pipes[0])];
  }

  /** A process is dead: whoever it spoke with hears that. */
  #died(speaker: Speaker): void {
    for (const wire of this.#wires) if (wire.ends.some((end) => end.speaker === speaker)) this.#broken(wire);
  }

  #broken(wire: Wire): void {
    this.#wires.delete(wire);
    for (const pipe of wire.pipes) {
      pipe.lose(ARRIVING_MAX);
      pipe.end(new SyncError('Disconnected', 'the connection broke'));
    }
  }

  #delayMs(): number {
    return this.#options.random.number() * this.#options.delayMsMax;
  }

  #pause({ speaker }: SyncEnd, delayMs: number): Promise<void> {
    return new Promise((resolve) => void speaker.clock.setTimer(resolve, delayMs));
  }
}

interface Wire {
  readonly ends: readonly [SyncEnd, SyncEnd];
  /** What each of the ends hears. */
  readonly pipes: readonly [Pipe, Pipe];
}

interface PipeOptions {
  readonly clock: Clock;
  readonly to: SyncEnd;
  readonly delayMs: () => number;
  readonly isCut: () => boolean;
}

/** One way of a stream. */
class Pipe {
  readonly #options: PipeOptions;
  #handlers: LinkHandlers | undefined;
  #count = 0;
  /** Frames from this one on are lost; undefined: none are. */
  #lostFrom: number | undefined;
  #isMute = false;
  /** What is on its way: whatever arrives next is the first of it. */
  readonly #onWay: (() => void)[] = [];
  /** What has arrived before anybody listened. */
  readonly #early: (() => void)[] = [];

  constructor(options: PipeOptions) {
    this.#options = options;
  }

  listen(handlers: LinkHandlers): void {
    this.#handlers = handlers;
    for (const event of this.#early.splice(0)) event();
  }

  push(frame: Frame): void {
    const bytes = encodeFrame(frame);
    const number = this.#count++;
    this.#later(() => {
      // Like a connection through which nothing comes: what is lost once, and all behind it, never arrives.
      if (this.#options.isCut()) this.#lostFrom ??= number;
      if (this.#lostFrom === undefined || number < this.#lostFrom) this.#handlers?.frame(decodeFrame(bytes));
    });
  }

  /** Nothing more comes, which is said behind what is on its way; while the way is cut nobody hears it. */
  end(error: SyncError): void {
    this.#later(() => {
      if (this.#isMute || this.#options.isCut()) return;
      this.#isMute = true;
      this.#handlers?.ended(error);
    });
  }

  /** Loses what is sent from now on, and all but so much of what is on its way. */
  lose(arriving: number): void {
    this.#lostFrom ??= Math.max(0, this.#count - arriving);
  }

  /** Whoever listened does not any more. */
  mute(): void {
    this.#isMute = true;
    this.#handlers = { frame: () => undefined, ended: () => undefined };
  }

  /** In its time and order, once the process that is to hear it is awake; a dead one hears nothing. */
  #later(event: () => void): void {
    const { clock, to, delayMs } = this.#options;
    this.#onWay.push(event);
    const arrive = (): void => {
      const first = this.#onWay.shift();
      if (!first) return;
      if (this.#handlers) first();
      else this.#early.push(first);
    };
    clock.setTimer(() => void to.speaker.clock.setTimer(arrive, 0), delayMs());
  }
}

function untrusted(peer: SyncEnd, by: SyncEnd): string {
  return `cluster ${peer.cluster} is not among those that ${by.cluster} trusts`;
}

function pairOf(one: string, other: string): string {
  return [one, other].toSorted().join(' ');
}
