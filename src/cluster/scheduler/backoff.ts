/** How long pods that could not be placed are left alone, by how often that happened: from 1 s, doubling, to 10 s. */

const BACKOFF_MS = 1000;
const BACKOFF_MS_MAX = 10_000;

export class SchedulingBackoff {
  readonly #attempts = new Map<string, { readonly count: number; readonly lastMs: number }>();

  /** Counts an attempt that failed. */
  add(key: string, nowMs: number): void {
    this.#attempts.set(key, { count: (this.#attempts.get(key)?.count ?? 0) + 1, lastMs: nowMs });
  }

  forget(key: string): void {
    this.#attempts.delete(key);
  }

  /** How long it is until the pod may be tried again. */
  remainingMs(key: string, nowMs: number): number {
    const attempts = this.#attempts.get(key);
    if (!attempts) return 0;
    const delayMs = Math.min(BACKOFF_MS * 2 ** (attempts.count - 1), BACKOFF_MS_MAX);
    return Math.max(0, attempts.lastMs + delayMs - nowMs);
  }
}
