import type { Clock } from '../../env/ports.ts';
import { LruMap } from '../../kube/lru-map.ts';

/** Answers that are good for a moment; who asks for one that is on its way waits for that. */
export class ShortMemory<T> {
  readonly #clock: Clock;
  readonly #entries: LruMap<string, { readonly answer: Promise<T>; untilMs: number }>;

  constructor(clock: Clock, sizeMax: number) {
    this.#clock = clock;
    this.#entries = new LruMap(sizeMax);
  }

  /** The answer that is known, or a new one, which is kept for as long as it says; failures are not kept. */
  async recall(key: string, keepMs: (answer: T) => number, ask: () => Promise<T>): Promise<T> {
    const known = this.#entries.get(key);
    if (known && this.#clock.now() < known.untilMs) return known.answer;
    const entry = { answer: ask(), untilMs: Number.POSITIVE_INFINITY };
    this.#entries.set(key, entry);
    try {
      const answer = await entry.answer;
      entry.untilMs = this.#clock.now() + keepMs(answer);
      return answer;
    } catch (error) {
      entry.untilMs = Number.NEGATIVE_INFINITY;
      throw error;
    }
  }
}
