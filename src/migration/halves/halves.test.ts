import { describe, expect, it } from 'vitest';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import { applySource, applyTarget } from './apply.ts';
import type { SourceHalf, TargetHalf } from './half.ts';
import { RECEIVING, RUNNER_HERE, RUNNER_THERE, SENDING, sourceGuest, targetGuest } from './halves.fixture.ts';
import { HALF_BYTES_MAX, parseSourceHalf, parseTargetHalf } from './parse.ts';
import { sourceHalf, targetHalf } from './project.ts';

const KEY = `${'a'.repeat(43)}=`;
const NODE = { apiVersion: 'v1', kind: 'Node', metadata: { annotations: { 'godwit.io/agent-keys': KEY } } };
const NEEDS = { 'cpu-vendor.node.kubevirt.io/AMD': 'true', 'machine-type.node.kubevirt.io/q35': 'true' };
const AT = '2026-05-01T12:00:00Z';
const LATER = '2026-05-01T12:00:09Z';
const LETTER = { kind: 'grant', epoch: 3, migrationUid: 'uid-send', sourcePodUID: 'a', targetPodUID: 'b' } as const;

const source: SourceHalf = { uid: 'uid-send', name: 'web', namespace: 'shop', vmiUID: 'guest-here' };
const target: TargetHalf = { uid: 'uid-receive', name: 'new', namespace: 'shop', vmiUID: 'guest-there' };

describe('what a half tells', () => {
  it('is nothing but who it is, where the guest is in another migration', () => {
    const others = sourceGuest({ migrationUid: 'uid-other', sourceNode: 'node-z', progress: { percent: 3 } });
    expect(sourceHalf({ migration: SENDING, guest: others, node: undefined })).toEqual(source);
    const receiving = targetGuest({ targetState: { migrationUID: 'uid-other' }, targetNode: 'node-z' });
    expect(targetHalf({ migration: RECEIVING, guest: receiving, node: undefined })).toEqual(target);
    const { vmiUID: _, ...nobody } = target;
    expect(targetHalf({ migration: RECEIVING, guest: undefined, node: undefined })).toEqual(nobody);
  });

  it('is what the other side needs, and no more', () => {
    const sourceState = {
      migrationUID: 'uid-send',
      virtualMachineInstanceUID: 'guest-here',
      node: 'node-a',
      pod: 'pod-a',
      runner: RUNNER_HERE,
      epoch: 3,
      slots: 'reserved' as const,
      nodeSelectors: NEEDS,
      volumes: [{ name: 'root', sizeBytes: 1, isBlock: false }],
      syncAddress: 'nobody needs it',
    };
    const state = { sourceState, startTimestamp: AT, mode: 'PreCopy' as const, sourceLetter: LETTER, targetNode: 'x' };
    expect(sourceHalf({ migration: SENDING, guest: sourceGuest(state), node: NODE })).toEqual({
      ...source,
      node: 'node-a',
      pod: 'pod-a',
      runner: RUNNER_HERE,
      epoch: 3,
      slots: 'reserved',
      nodeSelectors: NEEDS,
      volumes: [{ name: 'root', sizeBytes: 1, isBlock: false }],
      agentKeys: [KEY],
      startTimestamp: AT,
      mode: 'PreCopy',
      letter: LETTER,
    });
  });

  it('is that no memory comes any more, where its machine has ended before all of it was over', () => {
    const away = { epoch: 4, holder: RUNNER_THERE, across: true } as const;
    const half = (state: MigrationState, rightToRun: RightToRun = away): SourceHalf =>
      sourceHalf({ migration: SENDING, guest: sourceGuest(state, { rightToRun }), node: undefined });
    expect(half({ mode: 'PostCopy' }).hasEnded).toBe(true);
    expect(
      half({ mode: 'PostCopy' }, { epoch: 3, holder: RUNNER_HERE, successor: RUNNER_THERE }).hasEnded,
    ).toBeUndefined();
    expect(half({ mode: 'PostCopy', completed: true }).hasEnded).toBeUndefined();
    expect(half({ mode: 'PreCopy' }).hasEnded).toBeUndefined();
  });

  it('says how it ended in words that the other side takes, however many there are of them here', () => {
    const failed = {
      type: 'migrationFailed',
      status: 'True',
      reason: 'R'.repeat(500),
      message: '🐦'.repeat(5000),
    } as const;
    const over = { ...SENDING, status: { phase: 'Failed' as const, conditions: [failed] } };
    const half = sourceHalf({ migration: over, guest: undefined, node: undefined });
    expect(half.verdict).toEqual({ phase: 'Failed', reason: 'R'.repeat(128), message: '🐦'.repeat(2048) });
    expect(parseSourceHalf(half)).toEqual({ half });
  });

  it('says how it ended, by its own migration alone, and that it is wanted no more', () => {
    const over = {
      ...SENDING,
      metadata: { ...SENDING.metadata, deletionTimestamp: AT },
      status: {
        phase: 'Failed' as const,
        phaseTransitionTimestamps: [{ phase: 'Failed' as const, phaseTransitionTimestamp: AT }],
        conditions: [{ type: 'migrationFailed', status: 'True' as const, reason: 'Canceled', message: 'why' }],
      },
    };
    const guest = sourceGuest({ completed: true, abortRequested: true });
    expect(sourceHalf({ migration: over, guest, node: undefined })).toMatchObject({
      isGone: true,
      abortRequested: true,
      verdict: { phase: 'Failed', reason: 'Canceled', message: 'why', time: AT },
    });
    expect(sourceHalf({ migration: SENDING, guest, node: undefined }).verdict).toBeUndefined();
  });
});

describe('a half that arrives', () => {
  it.each<[string, unknown, RegExp]>([
    ['nothing', undefined, /must be an object/],
    ['a list', [], /must be an object/],
    ['nobody', {}, /uid: Required/],
    ['an empty UID', { ...source, uid: '' }, /uid: must not be empty/],
    ['a name that is none', { ...source, name: '../x' }, /^name: /],
    ['a namespace that is none', { ...source, namespace: 'a/b' }, /^namespace: /],
    ['a number for a text', { ...source, node: 1 }, /node.*must be string|node.*Invalid/],
    ['an epoch from before the first', { ...source, epoch: 0 }, /epoch/],
    ['an epoch that is no number', { ...source, epoch: 'x' }, /epoch/],
    ['a key that is none', { ...source, agentKeys: ['x'] }, /agentKeys/],
    ['too many keys', { ...source, agentKeys: Array.from({ length: 9 }, () => KEY) }, /agentKeys/],
    [
      'a text that is too long',
      { ...source, selinuxContext: 'x'.repeat(3000) },
      /selinuxContext.*Too long|may not be more/,
    ],
    ['a label that is none', { ...source, nodeSelectors: { 'a b': 'c' } }, /nodeSelectors/],
    ['an address that is none', { ...source, identity: { macAddresses: { net: 'x' } } }, /macAddresses/],
    ['a UUID that is none', { ...source, identity: { firmwareUUID: 'x,y' } }, /firmwareUUID/],
    ['a letter of a kind that nobody knows', { ...source, letter: { ...LETTER, kind: 'x' } }, /kind/],
    ['a verdict that is none', { ...source, verdict: { phase: 'Running' } }, /phase/],
    ['a volume without a size', { ...source, volumes: [{ name: 'root', isBlock: false }] }, /sizeBytes/],
    ['more than there can be', { ...source, decisions: Array.from({ length: 65 }, () => ({})) }, /decisions/],
    ['too much', { ...source, extra: 'x'.repeat(HALF_BYTES_MAX) }, /bytes/],
    ['the letter of the other side', { ...source, letter: { ...LETTER, kind: 'taken' } }, /letter/],
  ])('is refused for %s', (_what, json, problem) => {
    const parsed = parseSourceHalf(json);
    expect('problem' in parsed && parsed.problem).toMatch(problem);
  });

  it('is refused if it cannot even be text', () => {
    const circle: Record<string, unknown> = { ...target };
    circle['circle'] = circle;
    expect(parseTargetHalf(circle)).toHaveProperty('problem');
  });

  it('loses what nobody here knows, and what says nothing', () => {
    const json = JSON.parse('{"__proto__": {"uid": "x"}, "constructor": 1, "toString": 2, "node": null}') as object;
    expect(parseTargetHalf({ ...target, ...json, newer: { than: 'us' } })).toEqual({ half: target });
  });
});

describe('a half that is applied', () => {
  const receiver = (state: MigrationState = {}, status = {}) => ({
    migration: RECEIVING,
    guest: targetGuest(state, status),
  });
  const sender = (state: MigrationState = {}, status = {}) => ({
    migration: SENDING,
    guest: sourceGuest(state, status),
  });

  it('is what one record would have said', () => {
    const half: SourceHalf = {
      ...source,
      node: 'node-a',
      pod: 'pod-a',
      runner: RUNNER_HERE,
      epoch: 3,
      agentKeys: [KEY],
      nodeSelectors: NEEDS,
      startTimestamp: AT,
      mode: 'PreCopy',
      letter: LETTER,
    };
    const told = applySource(receiver(), half);
    expect(told?.migrationState).toMatchObject({
      migrationUid: 'uid-send',
      sourceNode: 'node-a',
      sourcePod: 'pod-a',
      startTimestamp: AT,
      mode: 'PreCopy',
      sourceLetter: LETTER,
      sourceState: {
        runner: RUNNER_HERE,
        epoch: 3,
        virtualMachineInstanceUID: 'guest-here',
        agentKeys: [KEY],
        nodeSelectors: NEEDS,
      },
      targetState: { migrationUID: 'uid-receive' },
    });
    expect(told?.sourceMigrationState).toMatchObject({
      vmiUID: 'guest-here',
      migrationUid: 'uid-send',
      node: 'node-a',
      nodeLabelSelectors: NEEDS,
    });
  });

  it('tells a target that its source has ended, unless all is over there', () => {
    const ended = { ...source, hasEnded: true };
    expect(applySource(receiver(), ended)?.migrationState?.sourceState?.hasEnded).toBe(true);
    const over = receiver({ migrationUid: 'uid-send', completed: true });
    expect(applySource(over, ended)?.migrationState?.sourceState?.hasEnded).toBeUndefined();
  });

  it('writes no progress anew that all has come, unless more was sent', () => {
    const progress = { percent: 100, transferredBytes: 7, time: AT };
    const over = receiver({ migrationUid: 'uid-send', completed: true, progress });
    const told = (transferredBytes: number): unknown =>
      applySource(over, { ...source, progress: { ...progress, transferredBytes, time: LATER } })?.migrationState
        ?.progress;
    expect(told(7)).toEqual(progress);
    expect(told(8)).toMatchObject({ transferredBytes: 8, time: LATER });
  });

  it('tells a source where its guest goes', () => {
    const half: TargetHalf = {
      ...target,
      node: 'node-b',
      pod: 'pod-b',
      runner: RUNNER_THERE,
      nodeAddress: '10.0.0.2',
      directMigrationNodePorts: { '1': 0 },
      migrationConfiguration: { maxDowntimeMs: 7 },
      downtimeMs: 42,
    };
    expect(applyTarget(sender(), half)?.migrationState).toMatchObject({
      targetNode: 'node-b',
      targetPod: 'pod-b',
      targetRunner: RUNNER_THERE,
      targetNodeAddress: '10.0.0.2',
      migrationConfiguration: { maxDowntimeMs: 7 },
      downtimeMs: 42,
    });
  });

  it('tells a source that its guest is there, unless that was promised to nobody', () => {
    const half: TargetHalf = { ...target, verdict: { phase: 'Succeeded', time: AT } };
    const { completed, targetState } = applyTarget(sender(), half)?.migrationState ?? {};
    expect(completed).toBeUndefined();
    expect(targetState?.verdict?.phase).toBe('Succeeded');
    const reserved = { rightToRun: { epoch: 3, holder: RUNNER_HERE, successor: RUNNER_THERE, across: true } };
    const there = { completed: true, endTimestamp: AT, progress: { percent: 100, summary: '100%', time: AT } };
    expect(applyTarget(sender({}, reserved), half)?.migrationState).toMatchObject(there);
    const away = { rightToRun: { epoch: 4, holder: RUNNER_THERE, across: true } };
    expect(applyTarget(sender({}, away), half)?.migrationState).toMatchObject(there);
    const told = { progress: { percent: 40, transferredBytes: 4, remainingBytes: 6, secondsLeft: 3 } };
    const { progress } = applyTarget(sender(told, away), half)?.migrationState ?? {};
    expect(progress).toEqual({ percent: 100, transferredBytes: 4, remainingBytes: 0, summary: '100%', time: AT });
  });

  it.each<[string, SourceHalf, MigrationState]>([
    ['another source was heard before', source, { migrationUid: 'uid-first' }],
    ['the guest is in another pair', source, { targetState: { migrationUID: 'uid-z' } }],
    [
      'the state is of a guest that was before',
      source,
      { targetState: { migrationUID: 'uid-receive', virtualMachineInstanceUID: 'guest-before' } },
    ],
    ['it says that it is this very guest', { ...source, vmiUID: 'guest-there' }, {}],
    ['it says that it is this very migration', { ...source, uid: 'uid-receive' }, {}],
  ])('is nobody’s where %s', (_what, half, state) => expect(applySource(receiver(state), half)).toBeUndefined());

  it.each<[string, TargetHalf, MigrationState]>([
    ['another target was heard before', target, { targetState: { migrationUID: 'uid-first' } }],
    ['the guest is in another migration', target, { migrationUid: 'uid-z' }],
    ['the guest has not been asked', target, { sourceState: {} }],
    ['it says that it is this very guest', { ...target, vmiUID: 'guest-here' }, {}],
  ])('tells a source nothing where %s', (_what, half, state) =>
    expect(applyTarget(sender(state), half)).toBeUndefined(),
  );

  it('says of nobody else that it failed', () => {
    const verdict = { phase: 'Failed' as const, reason: 'X', message: 'why' };
    const [here, there] = [
      applyTarget(sender(), { ...target, verdict }),
      applySource(receiver(), { ...source, verdict }),
    ];
    for (const told of [here, there]) {
      expect(told?.migrationState?.failed).toBeUndefined();
      expect(told?.migrationState?.completed).toBeUndefined();
    }
    expect(here?.migrationState?.targetState?.verdict).toEqual(verdict);
    expect(there?.migrationState?.sourceState?.verdict).toEqual(verdict);
    // Said once.
    const later = applySource(receiver(there?.migrationState), { ...source, verdict: { phase: 'Succeeded' } });
    expect(later?.migrationState?.sourceState?.verdict).toEqual(verdict);
  });

  it('changes nothing that agents rest on once they have begun, but where they are', () => {
    const begun = { targetRunner: RUNNER_THERE, targetNode: 'node-b', targetPod: 'pod-b', startTimestamp: AT };
    const half = { ...target, runner: { ...RUNNER_THERE, podUID: 'x' }, node: 'x', pod: 'x', nodeAddress: '10.0.0.9' };
    expect(applyTarget(sender(begun), half)?.migrationState).toMatchObject({ ...begun, targetNodeAddress: '10.0.0.9' });
    const told = { targetNode: 'node-b', sourceState: { runner: RUNNER_HERE, epoch: 3 }, migrationUid: 'uid-send' };
    expect(
      applySource(receiver(told), { ...source, runner: RUNNER_THERE, epoch: 9, identity: { firmwareUUID: 'x' } }),
    ).toMatchObject({ migrationState: { sourceState: { runner: RUNNER_HERE, epoch: 3 } } });
  });

  it('takes nothing back: neither a cancel, nor progress, nor a guest that has gone over', () => {
    const state = {
      migrationUid: 'uid-send',
      abortRequested: true,
      mode: 'PostCopy' as const,
      progress: { percent: 40 },
      startTimestamp: AT,
    };
    const half: SourceHalf = { ...source, mode: 'PreCopy', progress: { percent: 30 } };
    expect(applySource(receiver(state), half)?.migrationState).toMatchObject(state);
  });

  it('brings no letters and no cancels once it is over', () => {
    const over = { migrationUid: 'uid-send', completed: true, failed: true };
    const told = applySource(receiver(over), { ...source, abortRequested: true, letter: LETTER, startTimestamp: AT });
    const { abortRequested, sourceLetter, startTimestamp } = told?.migrationState ?? {};
    expect([abortRequested, sourceLetter, startTimestamp]).toEqual([undefined, undefined, undefined]);
    const failed = { completed: true, failed: true };
    const arrived: TargetHalf = { ...target, verdict: { phase: 'Succeeded' }, domainDetected: true };
    expect(applyTarget(sender(failed), arrived)?.migrationState).toMatchObject(failed);
    expect(applyTarget(sender(failed), arrived)?.migrationState?.targetNodeDomainDetected).toBeUndefined();
  });

  it('comes to rest: what was applied once changes nothing more', () => {
    const once = applySource(receiver(), { ...source, node: 'node-a' });
    expect(applySource(receiver(once?.migrationState), { ...source, node: 'node-a' })).toEqual(once);
  });
});
