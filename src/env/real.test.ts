import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { realClock } from './real.ts';

describe('the real clock', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('waits as long as asked, also beyond what Node can wait at once', () => {
    const callback = vi.fn<() => void>();
    realClock.setTimer(callback, 2 ** 33);
    vi.advanceTimersByTime(2 ** 33 - 1);
    expect(callback).not.toHaveBeenCalled();
    vi.advanceTimersByTime(1);
    expect(callback).toHaveBeenCalledOnce();
  });

  it('can be cancelled in the middle of a long wait', () => {
    const callback = vi.fn<() => void>();
    const timer = realClock.setTimer(callback, 2 ** 33);
    vi.advanceTimersByTime(2 ** 32);
    timer.cancel();
    vi.advanceTimersByTime(2 ** 33);
    expect(callback).not.toHaveBeenCalled();
  });
});
