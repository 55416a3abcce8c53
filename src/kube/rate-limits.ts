/** How soon a key that failed is tried again: the slower of its own backoff and what all keys may do together. */
export interface RateLimits {
  /** After the first failure; doubled by each further one. */
  readonly baseMs: number;
  readonly maxMs: number;
  /** Retries of all keys together, on average. */
  readonly perSecond: number;
  /** Retries of all keys together that need not wait. */
  readonly burst: number;
}

/** client-go's. No jitter: keys that fail together are spread by the overall limit, and a seed repeats itself. */
export const DEFAULT_RATE_LIMITS: RateLimits = { baseMs: 5, maxMs: 1_000_000, perSecond: 10, burst: 100 };

/** Delays that double with every failure of a key until the key is forgotten. */
export class KeyBackoff {
  readonly #limits: RateLimits;
  readonly #failures = new Map<string, number>();

  constructor(limits: RateLimits) {
    this.#limits = limits;
  }

  /** Counts a failure and answers how long to wait. */
  delayMs(key: string): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    return Math.min(this.#limits.maxMs, this.#limits.baseMs * 2 ** failures);
  }

  failuresOf(key: string): number {
    return this.#failures.get(key) ?? 0;
  }

  forget(key: string): void {
    this.#failures.delete(key);
  }
}

/** Tokens that come back at a steady rate. */
export class TokenBucket {
  readonly #perMs: number;
  readonly #burst: number;
  #tokens: number;
  #atMs: number;

  constructor(perSecond: number, burst: number, nowMs: number) {
    this.#perMs = perSecond / 1000;
    this.#burst = burst;
    this.#tokens = burst;
    this.#atMs = nowMs;
  }

  /** Takes a token if there is one. */
  tryTake(nowMs: number): boolean {
    this.#refill(nowMs);
    if (this.#tokens < 1) return false;
    this.#tokens -= 1;
    return true;
  }

  /**
   * Takes a token in any case and answers how long to wait for it, at most `maxMs`. What would have to wait longer
   * takes none: an outage in which everything fails must not run up debts that are paid for hours after its end.
   */
  reserve(nowMs: number, maxMs: number): number {
    this.#refill(nowMs);
    const waitMs = Math.max(0, (1 - this.#tokens) / this.#perMs);
    if (waitMs > maxMs) return maxMs;
    this.#tokens -= 1;
    return waitMs;
  }

  #refill(nowMs: number): void {
    const elapsedMs = Math.max(0, nowMs - this.#atMs);
    this.#tokens = Math.min(this.#burst, this.#tokens + elapsedMs * this.#perMs);
    this.#atMs = nowMs;
  }
}
