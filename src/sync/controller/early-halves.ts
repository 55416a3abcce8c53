import type { Clock, Timer } from '../../env/ports.ts';
import { Refusal } from '../channel.ts';

/**
 * What sources have sent before anybody here receives under their keys. Each waits for its counterpart for a while and
 * belongs to the cluster that sent it first; what one cluster can leave here is bounded. It is in memory alone: a process
 * that starts anew is told everything again.
 */

export interface EarlyLimits {
  /** How many may wait of one cluster. */
  readonly halvesMax: number;
  /** How much they may take, of one cluster, as JSON. */
  readonly bytesMax: number;
}

/** Room for some thousands of pairs that are about to be, and for no more than a cluster could do harm with. */
const EARLY_LIMITS: EarlyLimits = { halvesMax: 4096, bytesMax: 32 * 1024 * 1024 };

/** A half that waits. */
export interface EarlyHalf<H> {
  readonly peer: string;
  readonly half: H;
}

interface Waiting<H> extends EarlyHalf<H> {
  readonly bytes: number;
  readonly sinceMs: number;
  readonly timer: Timer;
}

interface Usage {
  readonly halves: number;
  readonly bytes: number;
}

export class EarlyHalves<H extends object> {
  readonly #clock: Clock;
  /** How long a half waits for its counterpart, as things are when it comes. */
  readonly #patienceMs: () => number;
  readonly #limits: EarlyLimits;
  readonly #waiting = new Map<string, Waiting<H>>();
  readonly #usage = new Map<string, Usage>();

  constructor(clock: Clock, patienceMs: () => number, limits: EarlyLimits = EARLY_LIMITS) {
    this.#clock = clock;
    this.#patienceMs = patienceMs;
    this.#limits = limits;
  }

  /**
   * Keeps a half until it is taken, or too old. A newer one of the same cluster takes the place of an older one, whose
   * time goes on. Throws a `Refusal`.
   */
  keep(peer: string, key: string, half: H): void {
    const older = this.#waiting.get(key);
    if (older && older.peer !== peer) throw keyTaken();
    const bytes = JSON.stringify(half).length;
    this.#checkRoom(peer, { halves: older ? 0 : 1, bytes: bytes - (older?.bytes ?? 0) });
    if (older) this.#remove(key, older);
    const sinceMs = older?.sinceMs ?? this.#clock.now();
    const leftMs = Math.max(0, sinceMs + this.#patienceMs() - this.#clock.now());
    const timer = this.#clock.setTimer(() => this.drop(peer, key), leftMs);
    this.#waiting.set(key, { peer, half, bytes, sinceMs, timer });
    this.#use(peer, { halves: 1, bytes });
  }

  /** What waits under a key. */
  peek(key: string): EarlyHalf<H> | undefined {
    return this.#waiting.get(key);
  }

  /** The cluster takes back what it has sent, or somebody has taken it. */
  drop(peer: string, key: string): void {
    const found = this.#waiting.get(key);
    if (found?.peer === peer) this.#remove(key, found);
  }

  #checkRoom(peer: string, more: Usage): void {
    const { halves = 0, bytes = 0 } = this.#usage.get(peer) ?? {};
    const { halvesMax, bytesMax } = this.#limits;
    if (halves + more.halves <= halvesMax && bytes + more.bytes <= bytesMax) return;
    throw new Refusal('TooManyEarly', 'too many migrations of this cluster wait for their targets; it is tried again');
  }

  #remove(key: string, { timer, peer, bytes }: Waiting<H>): void {
    timer.cancel();
    this.#waiting.delete(key);
    this.#use(peer, { halves: -1, bytes: -bytes });
  }

  #use(peer: string, more: Usage): void {
    const { halves = 0, bytes = 0 } = this.#usage.get(peer) ?? {};
    const next = { halves: halves + more.halves, bytes: bytes + more.bytes };
    if (next.halves === 0) this.#usage.delete(peer);
    else this.#usage.set(peer, next);
  }
}

/** What a cluster is told that uses the key of another one. */
export function keyTaken(): Refusal {
  return new Refusal('KeyTaken', 'another cluster has sent under this key: choose a key that nobody else can have');
}
