import { describe, expect, it } from 'vitest';
import type { RunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import { RECEIVER_ANNOTATION, RESTORE_STRATEGY_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { type Decision, decide, openRequests } from './decide.ts';
import { guestOf, machineOf } from './machines.fixture.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const NONE: Decision = { action: 'none' };
const START: Decision = { action: 'start', isReceiver: false };
const STOP: Decision = { action: 'stop', isRerun: false };
const RERUN: Decision = { action: 'stop', isRerun: true };

const asked = (...stateChangeRequests: NonNullable<NonNullable<VirtualMachine['status']>['stateChangeRequests']>) => ({
  stateChangeRequests,
});
const started = (runStrategy: RunStrategy) => ({ runStrategy });

describe('what to do', () => {
  describe.each<[RunStrategy, { [situation: string]: Decision }]>([
    [
      'Always',
      { fresh: START, gone: START, startAsked: START, Running: NONE, Succeeded: STOP, Failed: STOP, stopAsked: STOP },
    ],
    [
      'RerunOnFailure',
      { fresh: START, gone: NONE, startAsked: START, Running: NONE, Succeeded: STOP, Failed: RERUN, stopAsked: STOP },
    ],
    [
      'Manual',
      { fresh: NONE, gone: NONE, startAsked: START, Running: NONE, Succeeded: NONE, Failed: NONE, stopAsked: STOP },
    ],
    [
      'Once',
      { fresh: START, gone: NONE, startAsked: START, Running: NONE, Succeeded: NONE, Failed: NONE, stopAsked: STOP },
    ],
    [
      'Halted',
      {
        fresh: NONE,
        gone: NONE,
        startAsked: { action: 'setStrategy', strategy: 'Always' },
        Running: STOP,
        Succeeded: STOP,
        Failed: STOP,
        stopAsked: STOP,
      },
    ],
  ])('%s', (runStrategy, expected) => {
    const machine = (status: VirtualMachine['status'] = started(runStrategy)) => machineOf({ runStrategy }, status);
    it.each<[string, Decision]>([
      ['fresh', decide(machine({}), undefined, NOW)],
      ['gone', decide(machine(), undefined, NOW)],
      ['startAsked', decide(machine({ ...started(runStrategy), ...asked({ action: 'Start' }) }), undefined, NOW)],
      ['Running', decide(machine(), guestOf('Running'), NOW)],
      ['Succeeded', decide(machine(), guestOf('Succeeded'), NOW)],
      ['Failed', decide(machine(), guestOf('Failed'), NOW)],
      ['stopAsked', decide(machine(asked({ action: 'Stop', uid: 'guest-1' })), guestOf('Running'), NOW)],
    ])('%s', (situation, decision) => expect(decision).toEqual(expected[situation]));
  });

  it('knows the older way to say it', () => {
    expect(decide(machineOf({ running: true }), undefined, NOW)).toEqual(START);
    expect(decide(machineOf({ running: false }), guestOf('Running'), NOW)).toEqual(STOP);
  });
  it('leaves a guest alone that is going already', () => {
    expect(decide(machineOf({ runStrategy: 'Halted' }), guestOf('Running', { isGoing: true }), NOW)).toEqual(NONE);
  });
  it('ends the guest of a machine that is deleted, unless the guest is to outlive it', () => {
    const going = (...finalizers: string[]): VirtualMachine => {
      const machine = machineOf({ runStrategy: 'Always' });
      return { ...machine, metadata: { ...machine.metadata, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers } };
    };
    expect(decide(going('foregroundDeletion'), guestOf('Running'), NOW)).toEqual(STOP);
    expect(decide(going('orphan'), guestOf('Running'), NOW)).toEqual(NONE);
    expect(decide(going('orphan'), undefined, NOW)).toEqual(NONE);
  });
  it('ignores requests for other guests, and those that are not the first', () => {
    const machine = machineOf(
      { runStrategy: 'Manual' },
      asked({ action: 'Start' }, { action: 'Stop', uid: 'guest-1' }),
    );
    expect(decide(machine, guestOf('Running'), NOW)).toEqual(NONE);
    const other = machineOf({ runStrategy: 'Manual' }, asked({ action: 'Stop', uid: 'guest-0' }));
    expect(decide(other, guestOf('Running'), NOW)).toEqual(NONE);
  });
  it('waits after failures, unless a user does without waiting', () => {
    const startFailure = { consecutiveFailCount: 1, retryAfterTimestamp: '2026-01-01T00:00:10Z' };
    const wait = { action: 'wait', untilMs: NOW + 10_000 };
    expect(decide(machineOf({ runStrategy: 'Always' }, { startFailure }), undefined, NOW)).toEqual(wait);
    expect(decide(machineOf({ runStrategy: 'RerunOnFailure' }, { startFailure }), undefined, NOW)).toEqual(wait);
    expect(decide(machineOf({ runStrategy: 'Always' }, { startFailure }), undefined, NOW + 10_000)).toEqual(START);
  });
  it('ends the guest of a machine that is deleted, and makes no other', () => {
    const machine = machineOf({ runStrategy: 'Always' });
    machine.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
    expect(decide(machine, guestOf('Running'), NOW)).toEqual(STOP);
    expect(decide(machine, undefined, NOW)).toEqual(NONE);
  });
  it('makes no guest of a machine whose guest went elsewhere', () => {
    const rightToRun = { epoch: 7, grantedAway: true };
    for (const runStrategy of ['Always', 'RerunOnFailure', 'Once'] as const)
      expect(decide(machineOf({ runStrategy }, { rightToRun }), undefined, NOW)).toEqual(NONE);
    const startAsked = { rightToRun, ...asked({ action: 'Start' }) };
    expect(decide(machineOf({ runStrategy: 'Manual' }, startAsked), undefined, NOW)).toEqual(NONE);
  });
  it('lets a guest that went elsewhere come back', () => {
    const rightToRun = { epoch: 7, grantedAway: true };
    const receiver = machineOf({ runStrategy: 'WaitAsReceiver' }, { rightToRun });
    expect(decide(receiver, undefined, NOW)).toEqual({ action: 'start', isReceiver: true });
  });
  it('waits as a receiver, then takes the strategy that it was told', () => {
    const machine = machineOf({ runStrategy: 'WaitAsReceiver' });
    expect(decide(machine, undefined, NOW)).toEqual({ action: 'start', isReceiver: true });
    const waiting = guestOf('WaitingForSync');
    waiting.metadata.annotations = { [RECEIVER_ANNOTATION]: 'true' };
    expect(decide(machine, waiting, NOW)).toEqual(NONE);
    const come = guestOf('Running');
    come.status = { ...come.status, rightToRun: { epoch: 2, holder: { node: 'a', nodeUID: 'b', podUID: 'c' } } };
    expect(decide(machine, come, NOW)).toEqual(NONE);
    machine.metadata.annotations = { [RESTORE_STRATEGY_ANNOTATION]: 'Always' };
    expect(decide(machine, come, NOW)).toEqual({ action: 'setStrategy', strategy: 'Always' });
  });
});

describe('requests that are still open', () => {
  const START_REQUEST = { action: 'Start' } as const;
  const STOP_REQUEST = { action: 'Stop', uid: 'guest-1' } as const;
  it.each([
    ['a stop, while the guest is there', [STOP_REQUEST], guestOf('Running'), NONE, [STOP_REQUEST]],
    ['a stop, when the guest is gone', [STOP_REQUEST], undefined, NONE, []],
    ['a stop of an earlier guest', [{ action: 'Stop', uid: 'guest-0' } as const], guestOf('Running'), NONE, []],
    ['a start, before there is a guest', [START_REQUEST], undefined, START, [START_REQUEST]],
    ['a start, when there is one', [START_REQUEST], guestOf('Pending'), NONE, []],
    ['a start, while the old one goes', [START_REQUEST], guestOf('Running', { isGoing: true }), NONE, [START_REQUEST]],
    ['a restart, in between', [STOP_REQUEST, START_REQUEST], undefined, NONE, [START_REQUEST]],
    ['a guest that is run again', [], guestOf('Failed'), RERUN, [START_REQUEST]],
    ['the same, said before', [START_REQUEST], guestOf('Failed'), RERUN, [START_REQUEST]],
  ])('%s', (_, requests, guest, decision, expected) => {
    expect(openRequests(requests, guest, decision)).toEqual(expected);
  });
});
