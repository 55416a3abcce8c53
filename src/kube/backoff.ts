import type { Random } from '../env/ports.ts';

/**
 * Growing delays between attempts: each twice the last up to a maximum, and each drawn from its upper half, so that
 * clients that failed together do not return together.
 */
export class Backoff {
  readonly #random: Random;
  readonly #baseMs: number;
  readonly #maxMs: number;
  #attempts = 0;

  constructor(random: Random, options: { readonly baseMs: number; readonly maxMs: number }) {
    this.#random = random;
    this.#baseMs = options.baseMs;
    this.#maxMs = options.maxMs;
  }

  /** How long to wait before the next attempt. */
  next(): number {
    const limitMs = Math.min(this.#maxMs, this.#baseMs * 2 ** this.#attempts);
    // Past the maximum the exponent says nothing any more, and must not grow until it is infinite.
    if (limitMs < this.#maxMs) this.#attempts++;
    return limitMs * (0.5 + this.#random.number() / 2);
  }

  /** The attempt went well: the next delay is the shortest again. */
  reset(): void {
    this.#attempts = 0;
  }
}
