/** How much the hypervisor slows the guest down. It does that by itself; here it is noted. */
export interface Throttle {
  readonly percent: number;
  readonly percentMax: number;
  /** When it last rose. */
  readonly roseAtMs: number | undefined;
  /** Whether it was said that it has begun. */
  readonly isRecorded: boolean;
}

/** The guest has all of its time. */
export const NO_THROTTLE: Throttle = { percent: 0, percentMax: 0, roseAtMs: undefined, isRecorded: false };

/** QEMU takes no more than this. */
const THROTTLE_PERCENT_MAX = 99;
/** QEMU takes more at most once a pass; if it has not for so long it is content, or passes take too long to matter. */
const RISING_MS = 60_000;

export function updateThrottle(before: Throttle, atMs: number, percent: number): Throttle {
  if (percent === before.percent) return before;
  return {
    ...before,
    percent,
    percentMax: Math.max(before.percentMax, percent),
    roseAtMs: percent > before.percentMax ? atMs : before.roseAtMs,
  };
}

/** Whether the guest will soon write less than it does. */
export function isRising(throttle: Throttle, atMs: number): boolean {
  const { percent, roseAtMs } = throttle;
  return roseAtMs !== undefined && percent < THROTTLE_PERCENT_MAX && atMs - roseAtMs < RISING_MS;
}
