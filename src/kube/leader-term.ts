import type { Clock, Timer } from '../env/ports.ts';

/** The time for which a leader may lead, from before it asked for it. */
export class Term {
  readonly #clock: Clock;
  readonly #startMs: number;
  readonly #durationMs: number;
  readonly #timer: Timer;
  #hasEnded = false;
  /** Called when the time is over, unless it was cancelled. */
  onEnd: () => void = () => undefined;

  constructor(clock: Clock, durationMs: number) {
    this.#clock = clock;
    this.#startMs = clock.now();
    this.#durationMs = durationMs;
    this.#timer = clock.setTimer(() => {
      this.#hasEnded = true;
      this.onEnd();
    }, durationMs);
  }

  /** A machine that slept has timers that did not run, but its clock tells. Whichever is first ends the term. */
  get isOver(): boolean {
    return this.#hasEnded || this.#clock.now() - this.#startMs >= this.#durationMs;
  }

  cancel(): void {
    this.#timer.cancel();
  }
}
