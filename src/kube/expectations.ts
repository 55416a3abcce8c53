import type { Clock } from '../env/ports.ts';
import { SteadyTime } from './steady-time.ts';

/**
 * What a controller has done and not yet seen in its cache. A controller that creates three pods and is called again
 * before its watch has told of them would create three more; so it says what it expects, and waits until it has seen
 * it.
 *
 * Creations are counted. Deletions are told apart by UID, since one deletion is seen several times: when the deletion
 * timestamp appears, and when the object goes. What is not seen within five minutes is not expected any longer: a watch
 * event may be lost, and a controller must not wait for it for ever.
 */
export const EXPECTATION_MS_MAX = 5 * 60_000;

interface Expectation {
  creations: number;
  readonly deletions: Set<string>;
  readonly sinceMs: number;
}

export class Expectations {
  readonly #time: SteadyTime;
  readonly #expected = new Map<string, Expectation>();

  constructor(clock: Clock) {
    this.#time = new SteadyTime(clock);
  }

  /**
   * Says what the controller is about to do for a key; to be called before it does. Replaces what was expected: a
   * controller acts only when that has been met.
   */
  expect(key: string, about: { readonly creations?: number; readonly deletions?: Iterable<string> }): void {
    const { creations = 0, deletions = [] } = about;
    const expected: Expectation = { creations, deletions: new Set(deletions), sinceMs: this.#time.now() };
    this.#expected.set(key, expected);
    this.#settle(key, expected);
  }

  /** An object of the key's was created; also to be called where the creation failed, and so will never be seen. */
  creationObserved(key: string, count = 1): void {
    const expected = this.#expected.get(key);
    if (!expected) return;
    expected.creations -= count;
    this.#settle(key, expected);
  }

  /** An object of the key's is being deleted, or is gone, or its deletion failed. */
  deletionObserved(key: string, uid: string): void {
    const expected = this.#expected.get(key);
    if (!expected?.deletions.delete(uid)) return;
    this.#settle(key, expected);
  }

  /** True when all that was expected has been seen, or has taken too long. */
  isSatisfied(key: string): boolean {
    const expected = this.#expected.get(key);
    if (!expected) return true;
    if (this.#time.now() - expected.sinceMs <= EXPECTATION_MS_MAX) return false;
    this.#expected.delete(key);
    return true;
  }

  /** How long until a key is satisfied even if nothing more is seen; undefined when it is now. For a requeue. */
  expiresInMs(key: string): number | undefined {
    const expected = this.#expected.get(key);
    return expected && Math.max(0, expected.sinceMs + EXPECTATION_MS_MAX - this.#time.now()) + 1;
  }

  /** Expects nothing any more, because the key's object is gone. */
  forget(key: string): void {
    this.#expected.delete(key);
  }

  /** What has been met need not be remembered. */
  #settle(key: string, expected: Expectation): void {
    if (expected.creations <= 0 && expected.deletions.size === 0) this.#expected.delete(key);
  }
}
