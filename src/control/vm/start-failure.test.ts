import { describe, expect, it } from 'vitest';
import { testEnv } from '../../env/test.ts';
import { guestOf, machineOf } from './machines.fixture.ts';
import { crashLoopFailure, retryDelaySeconds, startFailureAfter } from './start-failure.ts';

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

describe('why guests do not start', () => {
  const failing = { consecutiveFailCount: 1 };
  const conditions = [{ type: 'Synchronized', status: 'False' as const, reason: 'Killed', message: 'by SIGKILL' }];
  const told = { reason: 'CrashLoopBackOff', message: 'the guest ended before it ran: Killed: by SIGKILL' };
  const machine = machineOf({ runStrategy: 'Always' });
  it('is what the last one told', () => {
    expect(crashLoopFailure(machine, guestOf('Failed', { status: { conditions } }), failing)).toEqual(told);
  });
  it('is remembered until one has run', () => {
    const known = machineOf({ runStrategy: 'Always' }, { conditions: [{ type: 'Failure', status: 'True', ...told }] });
    expect(crashLoopFailure(known, undefined, failing)).toEqual(told);
    expect(crashLoopFailure(known, guestOf('Scheduling'), failing)).toEqual(told);
    expect(crashLoopFailure(known, guestOf('Running'), undefined)).toBeUndefined();
  });
  it('is not what another failure was', () => {
    const other = { type: 'Failure', status: 'True' as const, reason: 'FailedCreate', message: 'no quota' };
    const { message } = crashLoopFailure(machineOf({}, { conditions: [other] }), undefined, failing) ?? {};
    expect(message).toBe("the guest ended before it ran; 'kubectl events --for vmi/web' may tell more");
  });
});
