import type { Clock, Timer } from '../../env/ports.ts';
import { Refusal } from '../channel.ts';

/**
 * What sources have sent before anybody here receives under their keys. Each waits for its counterpart for a while and
 * belongs to the cluster that sent it first; what one cluster can leave here is bounded. Nobody is told that a half is
 * known for good while it is only here, so that it comes again when this process starts anew.
 */

export interface EarlyLimits {
  /** How long a half waits for its counterpart. */
  readonly patienceMs: number;
  /** How many may wait of one cluster. */
  readonly halvesMax: number;
  /** How much they may take, of one cluster, as JSON. */
  readonly bytesMax: number;
}

/** Room for some thousands of pairs that are about to be, and for no more than a cluster could do harm with. */
export const EARLY_LIMITS: EarlyLimits = { patienceMs: 10 * 60_000, halvesMax: 4096, bytesMax: 32 * 1024 * 1024 };

interface Waiting<H> {
  readonly peer: string;
  readonly half: H;
  readonly bytes: number;
  readonly sinceMs: number;
  readonly timer: Timer;
  readonly resolve: () => void;
  readonly reject: (refusal: Refusal) => void;
}

/** A half that waits, and how to tell its sender what became of it. */
export interface EarlyHalf<H> {
  readonly peer: string;
  readonly half: H;
  /** Its sender may be told that it is known for good. */
  readonly resolve: () => void;
  readonly reject: (refusal: Refusal) => void;
}

interface Usage {
  halves: number;
  bytes: number;
}

export class EarlyHalves<H extends object> {
  readonly #clock: Clock;
  readonly #limits: EarlyLimits;
  readonly #waiting = new Map<string, Waiting<H>>();
  readonly #usage = new Map<string, Usage>();

  constructor(clock: Clock, limits: EarlyLimits = EARLY_LIMITS) {
    this.#clock = clock;
    this.#limits = limits;
  }

  get size(): number {
    return this.#waiting.size;
  }

  /**
   * Keeps a half until it is taken, or too old. A newer one of the same cluster takes the place of an older one, whose
   * time goes on. Rejects with a `Refusal`.
   */
  async keep(peer: string, key: string, half: H): Promise<void> {
    const older = this.#waiting.get(key);
    if (older && older.peer !== peer) throw keyTaken();
    const bytes = JSON.stringify(half).length;
    this.#checkRoom(peer, { halves: older ? 0 : 1, bytes: bytes - (older?.bytes ?? 0) });
    if (older) this.#remove(key, older).resolve();
    const sinceMs = older?.sinceMs ?? this.#clock.now();
    const leftMs = Math.max(0, sinceMs + this.#limits.patienceMs - this.#clock.now());
    return new Promise((resolve, reject) => {
      const timer = this.#clock.setTimer(() => this.#expire(key), leftMs);
      this.#waiting.set(key, { peer, half, bytes, sinceMs, timer, resolve, reject });
      this.#use(peer, 1, bytes);
    });
  }

  /** Who waits under a key. */
  peek(key: string): Pick<EarlyHalf<H>, 'peer' | 'half'> | undefined {
    return this.#waiting.get(key);
  }

  /** What waits under a key, which is the caller's from now on: it has to tell what becomes of it. */
  take(key: string): EarlyHalf<H> | undefined {
    const found = this.#waiting.get(key);
    return found && this.#remove(key, found);
  }

  /** The cluster takes back what it has sent. */
  drop(peer: string, key: string): void {
    const found = this.#waiting.get(key);
    if (found?.peer === peer) this.#remove(key, found).resolve();
  }

  #expire(key: string): void {
    const minutes = Math.round(this.#limits.patienceMs / 60_000);
    this.take(key)?.reject(
      new Refusal('SyncTimeout', `nobody has received under this key within ${minutes} minutes: make the target again`),
    );
  }

  #checkRoom(peer: string, more: Usage): void {
    const { halves = 0, bytes = 0 } = this.#usage.get(peer) ?? {};
    const { halvesMax, bytesMax } = this.#limits;
    if (halves + more.halves <= halvesMax && bytes + more.bytes <= bytesMax) return;
    throw new Refusal('TooManyEarly', 'too many migrations of this cluster wait for their targets; it is tried again');
  }

  #remove(key: string, found: Waiting<H>): Waiting<H> {
    found.timer.cancel();
    this.#waiting.delete(key);
    this.#use(found.peer, -1, -found.bytes);
    return found;
  }

  #use(peer: string, halves: number, bytes: number): void {
    const used = this.#usage.get(peer) ?? { halves: 0, bytes: 0 };
    const next = { halves: used.halves + halves, bytes: used.bytes + bytes };
    if (next.halves === 0) this.#usage.delete(peer);
    else this.#usage.set(peer, next);
  }
}

/** What a cluster is told that uses the key of another one. */
export function keyTaken(): Refusal {
  return new Refusal('KeyTaken', 'another cluster has sent under this key: choose a key that nobody else can have');
}
