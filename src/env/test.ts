import type { Clock, Env, Logger, Random } from './ports.ts';

/** A logger that keeps nothing. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

/** A small seeded generator (mulberry32): fast, reproducible, unfit for secrets. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const number = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const bytes = (count: number): Uint8Array => Uint8Array.from({ length: count }, () => Math.floor(number() * 256));
  const uuid = (): string => {
    const raw = bytes(16);
    raw[6] = ((raw[6] ?? 0) & 0x0f) | 0x40;
    raw[8] = ((raw[8] ?? 0) & 0x3f) | 0x80;
    const hex = Buffer.from(raw).toString('hex');
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  };
  return { number, bytes, uuid };
}

/** A clock that moves only when told to. Timers fire in order of their due time, then of their setting. */
export class ManualClock implements Clock {
  #nowMs: number;
  #sequence = 0;
  readonly #timers = new Map<number, { dueMs: number; callback: () => void }>();

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  setTimer(callback: () => void, delayMs: number): { cancel(): void } {
    const id = this.#sequence++;
    this.#timers.set(id, { dueMs: this.#nowMs + Math.max(0, delayMs), callback });
    return { cancel: () => void this.#timers.delete(id) };
  }

  advance(byMs: number): void {
    const endMs = this.#nowMs + byMs;
    for (;;) {
      const due = [...this.#timers]
        .filter(([, timer]) => timer.dueMs <= endMs)
        .sort(([a, x], [b, y]) => x.dueMs - y.dueMs || a - b)[0];
      if (!due) break;
      this.#timers.delete(due[0]);
      this.#nowMs = due[1].dueMs;
      due[1].callback();
    }
    this.#nowMs = endMs;
  }
}

/** An environment for unit tests: silent, seeded, with a clock that stands still until advanced. */
export function testEnv(seed = 1): Env & { readonly clock: ManualClock } {
  return { clock: new ManualClock(), random: seededRandom(seed), log: silentLogger };
}
