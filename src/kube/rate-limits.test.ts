import { describe, expect, it } from 'vitest';
import { ManualClock } from '../env/test.ts';
import { DEFAULT_RATE_LIMITS, KeyBackoff, TokenBucket } from './rate-limits.ts';
import { SteadyTime } from './steady-time.ts';

describe('the backoff of a key', () => {
  it('doubles from 5 ms to 1000 s, as in client-go', () => {
    const backoff = new KeyBackoff(DEFAULT_RATE_LIMITS);
    const delays = Array.from({ length: 20 }, () => backoff.delayMs('a'));
    expect(delays.slice(0, 5)).toEqual([5, 10, 20, 40, 80]);
    expect(delays[17]).toBe(655_360);
    expect(delays.slice(18)).toEqual([1_000_000, 1_000_000]);
  });
  it('is that of one key alone, and ends when the key is forgotten', () => {
    const backoff = new KeyBackoff(DEFAULT_RATE_LIMITS);
    backoff.delayMs('a');
    backoff.delayMs('a');
    expect(backoff.delayMs('b')).toBe(5);
    expect(backoff.failuresOf('a')).toBe(2);
    backoff.forget('a');
    expect(backoff.failuresOf('a')).toBe(0);
    expect(backoff.delayMs('a')).toBe(5);
  });
  it('does not overflow after very many failures', () => {
    const backoff = new KeyBackoff(DEFAULT_RATE_LIMITS);
    let last = 0;
    for (let failure = 0; failure < 3000; failure++) last = backoff.delayMs('a');
    expect(last).toBe(1_000_000);
  });
});

describe('a token bucket', () => {
  it('lets a burst pass, and then as many as come back', () => {
    const bucket = new TokenBucket(10, 3, 0);
    expect([0, 0, 0, 0, 0].map((nowMs) => bucket.reserve(nowMs, 1e6))).toEqual([0, 0, 0, 100, 200]);
    expect(bucket.reserve(1000, 1e6)).toBe(0);
    expect(bucket.reserve(1e9, 1e6)).toBe(0);
  });
  it('runs up no debt past the longest wait', () => {
    const bucket = new TokenBucket(10, 1, 0);
    const waits = Array.from({ length: 10_000 }, () => bucket.reserve(0, 1000));
    expect(Math.max(...waits)).toBe(1000);
    expect(bucket.reserve(1000, 1000)).toBeLessThanOrEqual(100);
  });
  it('refuses what would have to wait where nobody waits', () => {
    const bucket = new TokenBucket(1 / 300, 2, 0);
    expect([0, 0, 0].map((nowMs) => bucket.tryTake(nowMs))).toEqual([true, true, false]);
    expect(bucket.tryTake(299_000)).toBe(false);
    expect(bucket.tryTake(300_001)).toBe(true);
    expect(bucket.tryTake(300_001)).toBe(false);
  });
});

describe('steady time', () => {
  it('goes on from where it was when the clock is set back', () => {
    const clock = new ManualClock(1_000_000);
    let offsetMs = 0;
    const time = new SteadyTime({ now: () => clock.now() + offsetMs, setTimer: clock.setTimer.bind(clock) });
    clock.advance(10);
    expect(time.now()).toBe(1_000_010);
    offsetMs = -3_600_000;
    expect(time.now()).toBe(1_000_010);
    clock.advance(5);
    expect(time.now()).toBe(1_000_015);
    offsetMs = 0;
    expect(time.now()).toBe(1_000_015 + 3_600_000);
  });
});
