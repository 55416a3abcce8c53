import { type Clock, sleep } from '../../env/ports.ts';

/** How long one request may hold the processor while others wait. */
const TURN_MS = 5;
/** Looking at the clock costs something too. */
const STEPS_PER_LOOK = 32;

/**
 * Long work cut into short turns. Call `isOver` after each small step, and `next` when it says so:
 * `if (turns.isOver()) await turns.next();`
 */
export class Turns {
  readonly #clock: Clock;
  #startedMs: number;
  #steps = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedMs = clock.now();
  }

  /** Whether it is time to let others go on. */
  isOver(): boolean {
    if (++this.#steps < STEPS_PER_LOOK) return false;
    this.#steps = 0;
    return this.#clock.now() - this.#startedMs >= TURN_MS;
  }

  /** Resolves when others have had their turn. */
  async next(): Promise<void> {
    await sleep(this.#clock, 0);
    this.#startedMs = this.#clock.now();
  }
}
