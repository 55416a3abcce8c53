import { describe, expect, it } from 'vitest';
import {
  agedPriority,
  comesBefore,
  earliestDeadlineMs,
  effectivePriority,
  isOlder,
  nextLiftMs,
  type Rank,
} from './order.ts';

const rank = (uid: string, priority: number, createdMs: number, deadlineMs?: number): Rank => ({
  uid,
  priority,
  createdMs,
  deadlineMs,
});

describe('the effective priority', () => {
  it.each([
    ['none', undefined, [], 0],
    ['its own class', 'user-triggered', [], 50],
    ['a class that nobody knows', 'very-urgent', [], 0],
    ['a name that objects inherit', 'constructor', [], 0],
    ['the highest of its causes', undefined, [0, 100, 20], 100],
    ['its own class above its causes', 'system-critical', [20], 100],
  ])('is that of %s', (_name, ownClass, causes, expected) => {
    const served = causes.map((priority) => ({ cause: 'User' as const, priority }));
    expect(effectivePriority(ownClass, served)).toBe(expected);
  });

  it('is none for causes that name none', () => {
    expect(effectivePriority(undefined, [{ cause: 'User' }])).toBe(0);
    expect(effectivePriority(undefined)).toBe(0);
  });
});

describe('the deadline', () => {
  it('is the earliest of all causes', () => {
    const causes = ['2026-01-01T00:00:09Z', undefined, '2026-01-01T00:00:05Z', 'soon'].map((deadline) => ({
      cause: 'Preemption' as const,
      ...(deadline === undefined ? {} : { deadline }),
    }));
    expect(earliestDeadlineMs(causes)).toBe(Date.UTC(2026, 0, 1, 0, 0, 5));
    expect(earliestDeadlineMs([{ cause: 'User' }])).toBeUndefined();
  });
});

describe('the order of those that wait', () => {
  it.each([
    ['a higher class', rank('z', 50, 9), rank('a', 20, 1, 5)],
    ['an earlier deadline', rank('z', 20, 9, 5), rank('a', 20, 1, 6)],
    ['a deadline at all', rank('z', 20, 9, 5), rank('a', 20, 1)],
    ['an older one', rank('z', 20, 1), rank('a', 20, 9)],
    ['the lesser UID of two of one moment', rank('a', 20, 1), rank('z', 20, 1)],
  ])('puts first %s', (_name, first, second) => {
    expect(comesBefore(first, second)).toBe(true);
    expect(comesBefore(second, first)).toBe(false);
  });

  it('looks at nothing but age where there are no priorities', () => {
    expect(isOlder(rank('z', 0, 1), rank('a', 100, 2, 3))).toBe(true);
  });
});

describe('ageing', () => {
  it.each([
    [0, 99, 0, 1],
    [0, 100, 20, 100],
    [0, 250, 50, undefined],
    [0, 100_000, 50, undefined],
    [20, 199, 50, undefined],
    [20, 0, 20, 100],
    [50, 100_000, 50, undefined],
    [100, 100_000, 100, undefined],
    [0, -5, 0, 100],
  ])('makes of %i after %i ms %i, and more in %s ms', (priority, waitedMs, expected, nextMs) => {
    expect(agedPriority(priority, waitedMs, 100)).toBe(expected);
    expect(nextLiftMs(priority, waitedMs, 100)).toBe(nextMs);
  });

  it('is off at 0', () => {
    expect(agedPriority(0, 100_000, 0)).toBe(0);
    expect(nextLiftMs(0, 100_000, 0)).toBeUndefined();
  });
});
