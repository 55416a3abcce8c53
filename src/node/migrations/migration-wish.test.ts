import { describe, expect, it } from 'vitest';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { LauncherPod } from '../guests/launcher-pod.ts';
import {
  type AskedPod,
  askedAttempt,
  isReplaced,
  migrationWish,
  partIn,
  type Patience,
  patienceOf,
} from './migration-wish.ts';

const runner = (name: string): Runner => ({ node: `node-${name}`, nodeUID: `uid-${name}`, podUID: `pod-${name}` });
const [A, B] = [runner('a'), runner('b')];
const ATTEMPT: Attempt = { epoch: 3, source: A, target: B, sourceMigrationUID: 'm', targetMigrationUID: 'm' };
const HANDED_OFF: MigrationState = {
  migrationUid: 'm',
  sourceNode: 'node-a',
  sourcePod: 'web-a',
  targetNode: 'node-b',
  targetPod: 'web-b',
};
const READY: MigrationState = { ...HANDED_OFF, targetNodeAddress: '10.0.0.2', targetRunner: B };
const BEGUN: MigrationState = { ...READY, startTimestamp: '2026-01-01T00:00:00Z' };

const HOLDING: Standing = { kind: 'holding', epoch: 3, mustContinue: false, isCompleted: false };
const RESERVED: Standing = { ...HOLDING, reserved: ATTEMPT };
const GRANTED: Standing = { kind: 'granted', attempt: ATTEMPT, isPostCopy: false };
const RECEIVING: Standing = { kind: 'receiving', attempt: ATTEMPT };
const NONE: Standing = { kind: 'none' };

interface Circumstances {
  readonly guest?: Partial<VirtualMachineInstance['metadata']>;
  readonly pod?: Partial<LauncherPod['metadata']>;
  readonly phase?: 'Running' | 'Failed';
}

function asked(side: 'a' | 'b', migrationState: MigrationState | undefined, more: Circumstances = {}): AskedPod {
  const { phase = 'Running' } = more;
  return {
    self: side === 'a' ? A : B,
    guest: {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      metadata: { name: 'web', ...more.guest },
      spec: { domain: { devices: {} } },
      status: { phase, rightToRun: { epoch: 3, holder: A }, ...(migrationState ? { migrationState } : {}) },
    },
    pod: { apiVersion: 'v1', kind: 'Pod', metadata: { name: `web-${side}`, ...more.pod } },
  };
}

const wish = (pod: AskedPod, standing: Standing, canSend = true): string =>
  Object.keys(migrationWish(pod, standing, () => canSend)).join(' ');

const GOING = { deletionTimestamp: '2026-01-01T00:00:00Z' };

describe('what is asked of a launcher pod', () => {
  it('depends on which side of the migration it is', () => {
    expect(partIn(asked('a', READY))?.side).toBe('source');
    expect(partIn(asked('b', READY))?.side).toBe('target');
    expect(partIn(asked('b', { ...READY, targetPod: 'web-c' }))).toBeUndefined();
    expect(partIn(asked('a', undefined))).toBeUndefined();
  });

  it('is the same attempt for both', () => {
    expect(askedAttempt(asked('a', READY))).toEqual(ATTEMPT);
    expect(askedAttempt(asked('b', READY))).toEqual(ATTEMPT);
  });

  it('is none before it is known who waits, or where that is somebody else', () => {
    expect(askedAttempt(asked('a', HANDED_OFF))).toBeUndefined();
    expect(askedAttempt(asked('a', { ...READY, targetRunner: runner('c') }))).toBeUndefined();
  });

  it.each<[string, AskedPod, Standing, string]>([
    ['a target receives', asked('b', HANDED_OFF), NONE, 'receive'],
    ['a target receives nothing that is cancelled', asked('b', { ...HANDED_OFF, abortRequested: true }), NONE, ''],
    ['a target receives nothing that is over', asked('b', { ...HANDED_OFF, failed: true }), NONE, ''],
    ['a target receives no guest that is to go', asked('b', HANDED_OFF, { guest: GOING }), NONE, ''],
    ['a target receives no guest that has ended', asked('b', HANDED_OFF, { phase: 'Failed' }), NONE, ''],
    ['a target receives nothing in a pod that is to go', asked('b', HANDED_OFF, { pod: GOING }), NONE, ''],
    ['a source sends', asked('a', READY), HOLDING, 'migrate'],
    ['a source sends not before its target waits', asked('a', HANDED_OFF), HOLDING, ''],
    ['a source begins once', asked('a', BEGUN), HOLDING, ''],
    ['a source goes on', asked('a', BEGUN), RESERVED, ''],
    ['a source gives up what is cancelled', asked('a', { ...BEGUN, abortRequested: true }), RESERVED, 'isCancelled'],
    ['a source gives up for another migration', asked('a', { ...BEGUN, migrationUid: 'n' }), RESERVED, 'isCancelled'],
    ['a source gives up a guest that is to go', asked('a', BEGUN, { guest: GOING }), RESERVED, 'isCancelled'],
    ['a source asks back what is cancelled', asked('a', { ...BEGUN, abortRequested: true }), GRANTED, 'isCancelled'],
    ['a target gives up what never began', asked('b', { ...READY, abortRequested: true }), RECEIVING, 'isCancelled'],
    ['a target lets its source end what has begun', asked('b', { ...BEGUN, abortRequested: true }), RECEIVING, ''],
    [
      'a target gives up what its source has ended',
      asked('b', { ...BEGUN, abortRequested: true, completed: true, failed: true }),
      RECEIVING,
      'isCancelled',
    ],
    ['a target gives up with its pod', asked('b', BEGUN, { pod: GOING }), RECEIVING, 'isCancelled'],
    ['a target waits while nothing is known', { self: B, guest: undefined, pod: undefined }, RECEIVING, ''],
  ])('%s', (_, pod, standing, expected) => expect(wish(pod, standing)).toBe(expected));

  it.each<[string, AskedPod, Standing, string]>([
    ['a source that is held sends', { ...asked('a', READY, { pod: GOING }), patience: 'begin' }, HOLDING, 'migrate'],
    ['a source that is held no longer sends not', asked('a', READY, { pod: GOING }), HOLDING, ''],
    [
      'a source sends not at the last moment',
      { ...asked('a', READY, { pod: GOING }), patience: 'finish' },
      HOLDING,
      '',
    ],
    ['a source that is held goes on', { ...asked('a', BEGUN, { pod: GOING }), patience: 'begin' }, RESERVED, ''],
    ['a source goes on at the last moment', { ...asked('a', BEGUN, { pod: GOING }), patience: 'finish' }, RESERVED, ''],
    ['a source gives up after it', asked('a', BEGUN, { pod: GOING }), RESERVED, 'isCancelled'],
    [
      'a source that is held gives up a guest that is to go',
      { ...asked('a', BEGUN, { pod: GOING, guest: GOING }), patience: 'begin' },
      RESERVED,
      'isCancelled',
    ],
    [
      'a source asks nothing back that went over',
      { ...asked('a', BEGUN, { pod: GOING }), patience: 'finish' },
      GRANTED,
      '',
    ],
  ])('%s', (_, pod, standing, expected) => expect(wish(pod, standing)).toBe(expected));

  it.each<[string, Standing, seconds: number, Patience | undefined]>([
    ['may begin', HOLDING, -1, 'begin'],
    ['may finish when its time is over', RESERVED, 0, 'finish'],
    ['may finish within a moment', RESERVED, 4.9, 'finish'],
    ['may do nothing after that', RESERVED, 5, undefined],
    ['finishes what is all but done', GRANTED, 1000, 'finish'],
    ['receives nothing', RECEIVING, -1, undefined],
    ['receives nothing, though it has not begun', NONE, -1, undefined],
  ])('a pod that is held %s', (_, standing, seconds, patience) => {
    const hold = { cause: 'Preemption', untilMs: 9_000_000, deadlineMs: 9_999_000, mover: 'Us' } as const;
    expect(patienceOf(hold, standing, hold.untilMs + seconds * 1000)).toBe(patience);
    expect(patienceOf(undefined, standing, 0)).toBeUndefined();
  });

  it('a source sends not before its target was opened', () => expect(wish(asked('a', READY), HOLDING, false)).toBe(''));
});

/** The same guest as two objects, whose nodes and pods are called alike. */
const ACROSS = {
  sourceState: { virtualMachineInstanceUID: 'guest-a', migrationUID: 'm', runner: A, epoch: 3 },
  targetState: { virtualMachineInstanceUID: 'guest-b', migrationUID: 'n' },
} satisfies MigrationState;
const FAR_B = { ...B, node: 'node-a' };
const FAR: MigrationState = { ...HANDED_OFF, ...ACROSS, targetNode: 'node-a', targetPod: 'web-a' };
const FAR_ATTEMPT: Attempt = { ...ATTEMPT, target: FAR_B, targetMigrationUID: 'n', across: { targetEpoch: 4 } };

function across(side: 'a' | 'b', state: MigrationState, rightToRun?: RightToRun): AskedPod {
  const { guest, pod } = asked(side, state, { guest: { uid: `guest-${side}` }, pod: { name: 'web-a' } });
  const { rightToRun: held, ...status } = guest?.status ?? {};
  const record = side === 'a' ? held : rightToRun;
  return {
    self: side === 'a' ? A : FAR_B,
    pod,
    guest: guest && { ...guest, status: { ...status, ...(record ? { rightToRun: record } : {}) } },
  };
}

describe('what is asked of the launcher pods of two objects', () => {
  it('depends on which object they are of, whatever they are called', () => {
    expect(partIn(across('a', FAR))?.side).toBe('source');
    expect(partIn(across('b', FAR))?.side).toBe('target');
    const { virtualMachineInstanceUID: _, ...rest } = ACROSS.sourceState;
    const stranger = { ...FAR, sourceState: { ...rest, virtualMachineInstanceUID: 'guest-x' } };
    expect(partIn(across('a', stranger))).toBeUndefined();
  });

  it('is the same attempt for both, though each has a record of its own', () => {
    const told = { ...FAR, targetNodeAddress: '10.0.0.2', targetRunner: FAR_B };
    const ready = { ...told, targetState: { ...ACROSS.targetState, agentKeys: ['key'] } };
    expect(askedAttempt(across('a', ready))).toEqual(FAR_ATTEMPT);
    // Nobody could tell its agent from others.
    expect(askedAttempt(across('a', told))).toBeUndefined();
    expect(askedAttempt(across('b', FAR))).toEqual(FAR_ATTEMPT);
    expect(askedAttempt(across('b', FAR, { epoch: 17 }))).toEqual(FAR_ATTEMPT);
  });

  it('is none before the other side was heard', () => {
    const { runner: _, ...nobody } = ACROSS.sourceState;
    expect(askedAttempt(across('b', { ...FAR, sourceState: nobody }))).toBeUndefined();
    const { epoch: _epoch, ...never } = ACROSS.sourceState;
    expect(askedAttempt(across('b', { ...FAR, sourceState: never }))).toBeUndefined();
    expect(askedAttempt(across('a', FAR))).toBeUndefined();
  });

  it('lets a source go whose target says how it ended', () => {
    const granted: Standing = { kind: 'granted', attempt: FAR_ATTEMPT, isPostCopy: true };
    const { attempt: _, ...rest } = granted;
    const within: Standing = { ...rest, attempt: ATTEMPT };
    const done = { ...FAR, completed: true };
    expect(wish(across('a', FAR), granted)).toBe('');
    expect(wish(across('a', done), granted)).toBe('isCancelled isPeerDone');
    const verdict = { phase: 'Succeeded' as const };
    const said = { ...FAR, targetState: { ...ACROSS.targetState, verdict } };
    expect(wish(across('a', said), granted)).toBe('isPeerDone');
    expect(wish(across('a', { ...done, migrationUid: 'later' }), granted)).toBe('isCancelled');
    expect(wish(across('a', done), within)).toBe('isCancelled');
  });

  it('is an attempt of two migrations also where they are of one object', () => {
    const pair = {
      sourceState: { virtualMachineInstanceUID: 'guest', migrationUID: 'm' },
      targetState: { virtualMachineInstanceUID: 'guest', migrationUID: 'n' },
    };
    for (const side of ['a', 'b'] as const)
      expect(askedAttempt(asked(side, { ...READY, ...pair }, { guest: { uid: 'guest' } }))).toEqual({
        ...ATTEMPT,
        targetMigrationUID: 'n',
      });
  });

  it('is over only by the word of the source, since nobody else sees its record', () => {
    const { guest } = across('b', { ...FAR, migrationUid: 'later' });
    expect(isReplaced(guest, FAR_ATTEMPT)).toBe(false);
  });
});

describe('a try whose end nobody heard', () => {
  const C = runner('c');
  const NEXT: MigrationState = { ...BEGUN, migrationUid: 'next', targetNode: 'node-c' };

  it.each<[string, MigrationState | undefined, RightToRun, boolean]>([
    ['is over once another one was asked for', NEXT, { epoch: 3, holder: A }, true],
    ['is over once another one has begun', NEXT, { epoch: 3, holder: A, successor: C }, true],
    ['may go on while it is asked for', BEGUN, { epoch: 3, holder: A }, false],
    ['may go on while nobody says what is asked for', undefined, { epoch: 3, holder: A }, false],
    ['may have been granted while its target is on record', NEXT, { epoch: 3, holder: A, successor: B }, false],
    ['is for others to judge once the right has gone on', NEXT, { epoch: 4, holder: A }, false],
    ['is for others to judge where the right is elsewhere', NEXT, { epoch: 3, holder: C }, false],
  ])('%s', (_, migrationState, rightToRun, expected) => {
    const { guest } = asked('b', migrationState);
    expect(isReplaced(guest && { ...guest, status: { ...guest.status, rightToRun } }, ATTEMPT)).toBe(expected);
  });

  it('is not judged where nothing is known of its guest', () => expect(isReplaced(undefined, ATTEMPT)).toBe(false));
});
