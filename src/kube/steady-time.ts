import type { Clock } from '../env/ports.ts';

/**
 * A clock's time without its steps backwards: while a wall clock that was set back catches up, this one goes on from
 * where it was. What waits for a moment then waits a little longer, not for as long as the clock was set back.
 */
export class SteadyTime {
  readonly #clock: Clock;
  #lastMs: number;
  #offsetMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#lastMs = clock.now();
  }

  now(): number {
    const nowMs = this.#clock.now() + this.#offsetMs;
    if (nowMs < this.#lastMs) this.#offsetMs += this.#lastMs - nowMs;
    else this.#lastMs = nowMs;
    return this.#lastMs;
  }
}
