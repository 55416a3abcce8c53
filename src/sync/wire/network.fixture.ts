import type { Clock, Random } from '../../env/ports.ts';
import { SyncError } from '../channel.ts';
import { decodeFrame, encodeFrame } from './codec.ts';
import type { Frame } from './frame.ts';
import type { Link, LinkHandlers, Network } from './link.ts';

/**
 * For tests: streams between clusters that run in one process, in the time of a clock. Like TCP they neither reorder nor
 * repeat, and break anywhere: what is on its way when a stream is cut arrives up to some frame, or not at all.
 */

/** One way of a stream. */
class Pipe {
  readonly #clock: Clock;
  readonly #delayMs: () => number;
  handlers: LinkHandlers | undefined;
  /** Until when everything before it is on its way: order is kept. */
  #lastMs = 0;
  /** Frames behind this one are lost; undefined: none are. */
  #lostFrom: number | undefined;
  #count = 0;
  #isEnded = false;
  readonly #early: (() => void)[] = [];

  constructor(clock: Clock, delayMs: () => number) {
    this.#clock = clock;
    this.#delayMs = delayMs;
  }

  listen(handlers: LinkHandlers): void {
    this.handlers = handlers;
    for (const event of this.#early.splice(0)) event();
  }

  push(frame: Frame): void {
    const bytes = encodeFrame(frame);
    const number = this.#count++;
    this.#after(() => {
      if (this.#lostFrom === undefined || number < this.#lostFrom) this.handlers?.frame(decodeFrame(bytes));
    });
  }

  /** Nothing more comes; said behind what is on its way. */
  end(error: SyncError): void {
    this.#after(() => {
      if (this.#isEnded) return;
      this.#isEnded = true;
      this.handlers?.ended(error);
    });
  }

  /** Loses what is sent from now on, and a part of what is on its way. */
  lose(arriving: number): void {
    this.#lostFrom ??= Math.max(0, this.#count - arriving);
  }

  mute(): void {
    this.#isEnded = true;
    this.handlers = { frame: () => undefined, ended: () => undefined };
  }

  #after(event: () => void): void {
    this.#lastMs = Math.max(this.#clock.now() + this.#delayMs(), this.#lastMs);
    this.#clock.setTimer(() => (this.handlers ? event() : this.#early.push(event)), this.#lastMs - this.#clock.now());
  }
}

interface Wire {
  readonly ends: readonly [string, string];
  readonly pipes: readonly [Pipe, Pipe];
}

interface Listener {
  accept(link: Link): void;
}

export interface FixtureNetworkOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly delayMsMax: number;
}

/** All clusters of a test. Addresses are cluster ids, with anything behind a slash. */
export class FixtureNetwork {
  readonly #options: FixtureNetworkOptions;
  readonly #listeners = new Map<string, Listener>();
  readonly #wires = new Set<Wire>();
  isDown = false;

  constructor(options: FixtureNetworkOptions) {
    this.#options = options;
  }

  /** How many streams stand. */
  get streams(): number {
    return this.#wires.size;
  }

  listen(cluster: string, listener: Listener): void {
    this.#listeners.set(cluster, listener);
  }

  /** The network as one cluster sees it. */
  of(own: string): Network {
    return {
      connect: async (connectURL) => {
        await this.#pause();
        const peer = connectURL.split('/', 1)[0] ?? '';
        const listener = this.#listeners.get(peer);
        if (this.isDown || !listener) throw new SyncError('Unreachable', `nobody answers at ${connectURL}`);
        const [link, farLink] = this.#wire(own, peer);
        listener.accept(farLink);
        await this.#pause();
        return link;
      },
    };
  }

  /**
   * Breaks all streams of a cluster. `isSilent`: nobody is told, as when a middlebox forgets a connection. Otherwise both
   * ends hear of it, each in its own time.
   */
  cut(cluster: string, isSilent: boolean): void {
    for (const wire of this.#wires) {
      if (!wire.ends.includes(cluster)) continue;
      this.#wires.delete(wire);
      for (const pipe of wire.pipes) {
        pipe.lose(Math.floor(this.#options.random.number() * 4));
        if (isSilent) pipe.mute();
        else pipe.end(new SyncError('Disconnected', 'the connection broke'));
      }
    }
  }

  /** The process of a cluster is gone: it hears nothing, and its peers hear that. */
  kill(cluster: string): void {
    this.#listeners.delete(cluster);
    for (const wire of this.#wires) {
      const at = wire.ends.indexOf(cluster);
      if (at >= 0) wire.pipes[at === 0 ? 0 : 1].mute();
    }
    this.cut(cluster, false);
  }

  #wire(one: string, other: string): [Link, Link] {
    const delay = (): number => this.#options.random.number() * this.#options.delayMsMax;
    const pipes: [Pipe, Pipe] = [new Pipe(this.#options.clock, delay), new Pipe(this.#options.clock, delay)];
    const wire: Wire = { ends: [one, other], pipes };
    this.#wires.add(wire);
    const end = (peer: string, incoming: Pipe, outgoing: Pipe): Link => ({
      peer,
      validUntilMs: Number.POSITIVE_INFINITY,
      check: () => undefined,
      listen: (handlers) => incoming.listen(handlers),
      send: (frame) => outgoing.push(frame),
      close: () => {
        incoming.mute();
        outgoing.end(new SyncError('Disconnected', 'the peer closed the connection'));
        this.#wires.delete(wire);
      },
    });
    return [end(other, pipes[0], pipes[1]), end(one, pipes[1], pipes[0])];
  }

  #pause(): Promise<void> {
    const { clock, random, delayMsMax } = this.#options;
    return new Promise((resolve) => void clock.setTimer(resolve, random.number() * delayMsMax));
  }
}
