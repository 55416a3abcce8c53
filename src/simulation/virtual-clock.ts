import type { Clock, Timer } from '../env/ports.ts';
import { type HeapItem, IndexedHeap } from '../kube/indexed-heap.ts';

/** What a run starts at: a moment that no machine is at, so that a real clock that slips in is seen at once. */
export const START_MS = Date.UTC(2030, 0, 1);

/** So many timers in one millisecond, and time will never go on: something asks again and again for no delay. */
const FIRED_AT_ONCE_MAX = 100_000;

interface VirtualTimer extends HeapItem {
  readonly dueMs: number;
  readonly callback: () => void;
}

/** Time has come to a standstill, by a loop that waits for nothing. */
export class TimeStandsStill extends Error {
  constructor(nowMs: number) {
    super(`more than ${FIRED_AT_ONCE_MAX} timers fired at ${nowMs} ms: something waits for no time at all, forever`);
    this.name = 'TimeStandsStill';
  }
}

/**
 * Time that passes only when nothing else is left to do: it jumps from timer to timer, and what lies between costs
 * nothing. Timers fire in order of their due time, then of their setting, one at a time.
 */
export class VirtualClock implements Clock {
  readonly #timers = new IndexedHeap<VirtualTimer>();
  #nowMs = START_MS;
  #sequence = 0;
  #firedAtOnce = 0;

  /** Whole milliseconds, as clocks tell them; inside, time is finer. */
  now(): number {
    return Math.floor(this.#nowMs);
  }

  /** Milliseconds since the start, not rounded. */
  get elapsedMs(): number {
    return this.#nowMs - START_MS;
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const dueMs = this.#nowMs + Math.max(0, delayMs);
    const timer: VirtualTimer = { position: -1, dueMs, callback };
    this.#timers.push(timer, dueMs, this.#sequence++);
    return {
      cancel: () => {
        if (timer.position !== -1) this.#timers.remove(timer);
      },
    };
  }

  /** Goes to the next timer and fires it; false, at `endMs` since the start, where none is due by then. */
  fireNext(endMs: number): boolean {
    const first = this.#timers.first;
    if (!first || first.dueMs > START_MS + endMs) {
      this.#nowMs = Math.max(this.#nowMs, START_MS + endMs);
      return false;
    }
    this.#timers.remove(first);
    this.#firedAtOnce = Math.floor(first.dueMs) === Math.floor(this.#nowMs) ? this.#firedAtOnce + 1 : 0;
    if (this.#firedAtOnce > FIRED_AT_ONCE_MAX) throw new TimeStandsStill(this.#nowMs);
    this.#nowMs = first.dueMs;
    first.callback();
    return true;
  }
}

/** Less than this is no time: sums of fractions are not exact. */
const ROUNDING_MS = 0.01;

/** The clock of one process: wrong by some offset, and dead when the process is. */
export class ProcessClock implements Clock {
  readonly #clock: VirtualClock;
  /** How far it is ahead of the others. */
  offsetMs: number;
  #isStopped = false;
  #resumesMs = 0;

  constructor(clock: VirtualClock, offsetMs = 0) {
    this.#clock = clock;
    this.offsetMs = offsetMs;
  }

  now(): number {
    return this.#clock.now() + Math.trunc(this.offsetMs);
  }

  setTimer(callback: () => void, delayMs: number): Timer {
    const fire = (): void => {
      const waitMs = this.#resumesMs - this.#clock.elapsedMs;
      if (this.#isStopped) return;
      if (waitMs > ROUNDING_MS) timer = this.#clock.setTimer(fire, waitMs);
      else callback();
    };
    let timer = this.#clock.setTimer(fire, delayMs);
    return { cancel: () => timer.cancel() };
  }

  /** For so long no timer fires; those that are due meanwhile fire afterwards, as after a machine has slept. */
  pause(durationMs: number): void {
    this.#resumesMs = this.#clock.elapsedMs + durationMs;
  }

  /** No timer fires any more. */
  stop(): void {
    this.#isStopped = true;
  }
}
