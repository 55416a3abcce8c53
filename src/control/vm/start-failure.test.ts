import { describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { guestOf, machineOf } from './machines.fixture.ts';
import { retryDelaySeconds, startFailureAfter } from './start-failure.ts';

describe('the delay before the next try', () => {
  it.each([
    [0, 10, 15],
    [1, 10, 15],
    [2, 40, 60],
    [3, 90, 135],
    [4, 160, 240],
    [5, 250, 300],
    [6, 300, 300],
    [100, 300, 300],
  ])('after %d failures', (count, least, most) => {
    const { random } = testEnv();
    for (let draw = 0; draw < 50; draw++) {
      const seconds = retryDelaySeconds(count, random);
      expect(seconds).toBeGreaterThanOrEqual(least);
      expect(seconds).toBeLessThanOrEqual(most);
    }
  });
});

describe('what is counted as a failure to start', () => {
  const env = testEnv();
  const known = { consecutiveFailCount: 2, lastFailedVMIUID: 'guest-0', retryAfterTimestamp: '2026-01-01T00:00:00Z' };
  const machine = machineOf({ runStrategy: 'Always' }, { startFailure: known });
  it('a guest that ended before it ran, once', () => {
    const failure = startFailureAfter(machine, guestOf('Failed'), env);
    expect(failure).toMatchObject({ consecutiveFailCount: 3, lastFailedVMIUID: 'guest-1' });
    const next = machineOf({ runStrategy: 'Always' }, { startFailure: failure });
    expect(startFailureAfter(next, guestOf('Failed'), env)).toBe(failure);
  });
  it('not one that ran, which clears the count', () => {
    const ran = { status: { phaseTransitionTimestamps: [{ phase: 'Running' as const }] } };
    expect(startFailureAfter(machine, guestOf('Failed', ran), env)).toBeUndefined();
    expect(startFailureAfter(machine, guestOf('Running'), env)).toBeUndefined();
  });
  it('nothing changes while a guest is on its way, or there is none', () => {
    expect(startFailureAfter(machine, guestOf('Scheduling'), env)).toBe(known);
    expect(startFailureAfter(machine, undefined, env)).toBe(known);
  });
  it('nothing where users start guests themselves', () => {
    const manual = machineOf({ runStrategy: 'Manual' }, { startFailure: known });
    expect(startFailureAfter(manual, guestOf('Failed'), env)).toBeUndefined();
  });
});
