import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { restrictNodes } from './node-restriction.ts';
import type { AdmissionRequest } from './review.ts';

/** Node `h` is to be heard since the API's data was restored, which knows nothing of its pod. */
const webhook = restrictNodes({ unheard: () => ['h'] });
const { signal } = new AbortController();

const runner = (node: string) => ({ node, nodeUID: `${node}-uid`, podUID: `${node}-pod` });
const [A, B] = [runner('a'), runner('b')];

type Status = Record<string, unknown>;

function guest(status: Status, more: object = {}): KubeObject {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'vm', namespace: 'ns', ...more },
    spec: { domain: {} },
    status,
  };
}

/** What a node hears: `ok`, or why not. */
async function answer(node: string, old: KubeObject, next: KubeObject, more: Partial<AdmissionRequest> = {}) {
  const verdict = await webhook(
    {
      uid: 'u',
      operation: 'UPDATE',
      resource: { group: 'kubevirt.io', version: 'v1', resource: 'virtualmachineinstances' },
      subResource: 'status',
      userInfo: { username: `system:node:${node}`, groups: ['system:nodes', 'system:authenticated'] },
      object: next,
      oldObject: old,
      ...more,
    },
    signal,
  );
  return verdict.allowed ? 'ok' : (verdict.status.message ?? '');
}

/** The same, for a change of the status alone. */
const change = (node: string, status: Status, changed: Status, more: object = {}): Promise<string> =>
  answer(node, guest(status, more), guest({ ...status, ...changed }, more));

const SCHEDULED = { phase: 'Scheduled', nodeName: 'a', activePods: { 'a-pod': 'a' } };
const RUNNING = { ...SCHEDULED, phase: 'Running', rightToRun: { epoch: 4, holder: A } };
const MOVING = {
  ...RUNNING,
  activePods: { 'a-pod': 'a', 'b-pod': 'b' },
  rightToRun: { epoch: 4, holder: A, successor: B },
};
const LEFT = { ...RUNNING, rightToRun: { epoch: 5 } };
const NOTHING = /has nothing to do with this guest/;

describe('the right to run', () => {
  it.each<[string, string, Status, Status, RegExp]>([
    ['starts what was given to it', 'a', SCHEDULED, { rightToRun: { epoch: 1, holder: A } }, /^ok$/],
    ['starts nothing else', 'c', SCHEDULED, { rightToRun: { epoch: 1, holder: runner('c') } }, NOTHING],
    ['starts for nobody else', 'a', SCHEDULED, { rightToRun: { epoch: 1, holder: B } }, /not its own/],
    [
      'starts in no pod but its own',
      'a',
      SCHEDULED,
      { rightToRun: { epoch: 1, holder: { ...A, podUID: 'other' } } },
      /launcher pod/,
    ],
    [
      'starts nothing that was given to another, though it has a pod of it',
      'b',
      { ...SCHEDULED, activePods: { 'a-pod': 'a', 'b-pod': 'b' } },
      { rightToRun: { epoch: 1, holder: B } },
      /given to node "a"/,
    ],
    [
      'starts nothing again that has ended',
      'a',
      { ...LEFT, phase: 'Failed' },
      { rightToRun: { epoch: 6, holder: A } },
      /ended/,
    ],
    ['names who is next', 'a', RUNNING, { rightToRun: { epoch: 4, holder: A, successor: B } }, /^ok$/],
    [
      'does not name itself as the next',
      'b',
      { ...MOVING, rightToRun: RUNNING.rightToRun },
      { rightToRun: MOVING.rightToRun },
      /may not reserve/,
    ],
    ['gives up moving', 'a', MOVING, { rightToRun: { epoch: 4, holder: A } }, /^ok$/],
    ['declines what is to come to it', 'b', MOVING, { rightToRun: { epoch: 4, holder: A } }, /^ok$/],
    [
      'does not give up for others',
      'c',
      { ...MOVING, activePods: { x: 'c' } },
      { rightToRun: { epoch: 4, holder: A } },
      /may not abort/,
    ],
    ['takes what is to come to it', 'b', MOVING, { rightToRun: { epoch: 5, holder: B } }, /^ok$/],
    [
      'takes nothing that is not for it',
      'c',
      { ...MOVING, activePods: { x: 'c' } },
      { rightToRun: { epoch: 5, holder: runner('c') } },
      /steps of the protocol/,
    ],
    ['is not taken from by the one that leaves', 'a', MOVING, { rightToRun: { epoch: 5, holder: B } }, /may not take/],
    ['goes on after a refusal', 'a', MOVING, { rightToRun: { epoch: 5, holder: A } }, /^ok$/],
    ['says that its guest is dead', 'a', RUNNING, { rightToRun: { epoch: 5 } }, /^ok$/],
    ["does not say so of another's", 'b', MOVING, { rightToRun: { epoch: 5 } }, /may not seize/],
    ['raises an epoch that its journal is ahead of', 'a', RUNNING, { rightToRun: { epoch: 9, holder: A } }, /^ok$/],
    ['raises none that is no business of it', 'c', RUNNING, { rightToRun: { epoch: 9, holder: A } }, NOTHING],
    ['raises one of a restored record', 'h', RUNNING, { rightToRun: { epoch: 9, holder: A } }, /^ok$/],
    ['raises nothing else then', 'h', RUNNING, { rightToRun: { epoch: 9, holder: A }, phase: 'Failed' }, NOTHING],
    ["does not say then that another's is dead", 'h', RUNNING, { rightToRun: { epoch: 5 } }, /may not seize/],
    ['nor takes it', 'h', RUNNING, { rightToRun: { epoch: 5, holder: runner('h') } }, /steps of the protocol/],
    ['nor starts it', 'h', LEFT, { rightToRun: { epoch: 6, holder: runner('h') } }, /launcher pod that it runs/],
    ['says then where it has gone', 'h', LEFT, { rightToRun: { epoch: 6, holder: B, across: true } }, /^ok$/],
    ['does not lower an epoch', 'a', RUNNING, { rightToRun: { epoch: 3, holder: A } }, /steps of the protocol/],
    ['does not forget the record', 'a', RUNNING, { rightToRun: undefined }, /steps of the protocol/],
    ['tells of processors that it plugged in', 'a', RUNNING, { currentCPUTopology: { sockets: 4 } }, /^ok$/],
    ['tells of memory that it plugged in', 'a', RUNNING, { memory: { guestCurrent: '2Gi' } }, /^ok$/],
    ['tells nothing of those of others', 'c', RUNNING, { currentCPUTopology: { sockets: 4 } }, NOTHING],
    ['notes its volumes', 'a', RUNNING, { rightToRun: { ...RUNNING.rightToRun, volumes: [] } }, /^ok$/],
    [
      "does not note those of another's",
      'b',
      MOVING,
      { rightToRun: { ...MOVING.rightToRun, volumes: [] } },
      /may not keep/,
    ],
  ])('%s', async (_, node, old, changed, expected) => expect(await change(node, old, changed)).toMatch(expected));

  it('starts nothing that is being deleted', async () => {
    const going = { deletionTimestamp: '2026-01-01T00:00:00Z' };
    expect(await change('a', SCHEDULED, { rightToRun: { epoch: 1, holder: A } }, going)).toMatch(/being deleted/);
    expect(await change('a', RUNNING, { rightToRun: { epoch: 5 }, phase: 'Succeeded' }, going)).toBe('ok');
  });
});

describe('a migration', () => {
  const state = { migrationUid: 'm', sourceNode: 'a', sourcePod: 'pod-a', targetNode: 'b', targetPod: 'pod-b' };
  const before = { ...MOVING, migrationState: state };
  const gone = { ...before, rightToRun: { epoch: 5, holder: B } };
  const says = (node: string, status: Status, fields: object): Promise<string> =>
    change(node, status, { migrationState: { ...state, ...fields } });
  const failure = {
    completed: true,
    failed: true,
    failureReason: 'why',
    abortStatus: 'Succeeded',
    endTimestamp: 'now',
  };
  const success = {
    completed: true,
    endTimestamp: 'now',
    downtimeMs: 7,
    mode: 'PostCopy',
    targetNodeDomainDetected: true,
  };
  const progress = { startTimestamp: 'now', mode: 'PreCopy', progress: { percent: 1 }, decisions: [], channel: {} };
  const half = { mode: 'PostCopy', progress: { percent: 50 } };
  const ahead = { ...gone, migrationState: { ...state, ...half } };
  /** As the controllers leave it when the source's pod has ended. */
  const left = { ...gone, nodeName: 'b', activePods: { 'b-pod': 'b' } };
  const over = { ...before, rightToRun: { epoch: 6 }, migrationState: { ...state, completed: true } };
  const waits = { targetNodeAddress: '10.0.0.1', targetDirectMigrationNodePorts: { 1: 0 }, targetRunner: B };

  it.each<[string, string, Status, object, RegExp]>([
    ['is begun by its source', 'a', before, progress, /^ok$/],
    ['fails by the word of its source', 'a', before, failure, /^ok$/],
    ['fails by nobody, once the guest has gone', 'a', gone, failure, /may not write status.migrationState.completed/],
    ['is told more of by its source, once the guest has gone', 'a', gone, { progress: { percent: 99 } }, /^ok$/],
    ['is told more of when the pod at its source is over', 'a', left, { progress: { percent: 99 } }, /^ok$/],
    ['is told nothing else of by then', 'a', left, failure, /may not write status.migrationState.completed/],
    ['is told of by no stranger', 'c', left, { progress: { percent: 99 } }, NOTHING],
    [
      'is no less far once the guest has gone',
      'a',
      ahead,
      { ...half, progress: { percent: 9 } },
      /may not write .*progress/,
    ],
    ['is post-copy to its end', 'a', ahead, { ...half, mode: 'PreCopy' }, /may not write .*mode/],
    ['turns out to be post-copy', 'a', gone, { mode: 'PostCopy' }, /^ok$/],
    [
      'is not written about by its old source',
      'a',
      gone,
      { sourceLetter: { kind: 'aborted' } },
      /may not write .*Letter/,
    ],
    ['has begun when it did', 'a', gone, { startTimestamp: 'now' }, /may not write .*startTimestamp/],
    ['fails not after a guest that arrived and ended', 'a', over, failure, /may not write .*failed/],
    ['succeeds not by the word of its source', 'a', before, success, /may not write/],
    ['is waited for by its target', 'b', before, waits, /^ok$/],
    ['is waited for in no pod of others', 'b', before, { targetRunner: A }, /launcher pod that it runs/],
    ['is waited for in no pod that nobody knows', 'b', before, { targetRunner: { ...B, podUID: 'x' } }, /launcher pod/],
    ['succeeds once its target has the guest', 'b', gone, success, /^ok$/],
    ['succeeds not before', 'b', before, success, /may not write/],
    ['fails not by the word of its target', 'b', before, failure, /may not write/],
    ['is not begun by its target', 'b', before, progress, /may not write/],
    ['is written about by its source', 'a', before, { sourceLetter: { kind: 'grant' } }, /^ok$/],
    ['is written about by its target', 'b', before, { targetLetter: { kind: 'taken' } }, /^ok$/],
    ['is not written about in the name of others', 'a', before, { targetLetter: { kind: 'taken' } }, /may not write/],
    ['is not diverted', 'a', before, { targetNode: 'c' }, /may not write status.migrationState.targetNode/],
    ['is not given other options', 'a', before, { migrationConfiguration: {} }, /may not write/],
  ])('%s', async (_, node, status, fields, expected) => {
    expect(await says(node, status, fields)).toMatch(expected);
  });
  it('is not for bystanders', async () => {
    const status = { ...before, activePods: { 'a-pod': 'a', 'b-pod': 'b', 'c-pod': 'c' } };
    expect(await says('c', status, progress)).toMatch(/no side of the migration/);
  });
  it('is neither made nor forgotten by nodes', async () => {
    expect(await change('a', MOVING, { migrationState: state })).toMatch(/may not write/);
    expect(await change('a', left, { currentCPUTopology: { sockets: 4 } })).toMatch(NOTHING);
    expect(await change('a', before, { migrationState: undefined })).toMatch(/may not write/);
  });
});

describe('how a guest is', () => {
  const since = (phase: string) => [{ phase, phaseTransitionTimestamp: '2026-01-01T00:00:00Z' }];
  const paused = [{ type: 'Paused', status: 'True' }];
  const failed = [{ type: 'Synchronized', status: 'False', reason: 'Killed', message: 'by SIGKILL' }];

  it.each<[string, string, Status, Status, RegExp]>([
    [
      'runs, says its holder',
      'a',
      { ...RUNNING, phase: 'Scheduled' },
      { phase: 'Running', phaseTransitionTimestamps: since('Running') },
      /^ok$/,
    ],
    [
      'runs, says who takes the right with it',
      'a',
      SCHEDULED,
      { phase: 'Running', rightToRun: { epoch: 1, holder: A } },
      /^ok$/,
    ],
    ['runs, says who has no right', 'a', SCHEDULED, { phase: 'Running' }, /may not say that the guest is "Running"/],
    ['ended, says its holder', 'a', RUNNING, { phase: 'Succeeded' }, /^ok$/],
    ['ended, says who held it last', 'a', LEFT, { phase: 'Failed' }, /^ok$/],
    ['failed, and why, says its holder', 'a', RUNNING, { phase: 'Failed', conditions: failed }, /^ok$/],
    ['failed, and why, says a stranger', 'c', RUNNING, { conditions: failed }, NOTHING],
    ['ended, says its successor', 'b', MOVING, { phase: 'Failed' }, /does not execute/],
    ['ended, says a stranger', 'c', RUNNING, { phase: 'Failed' }, NOTHING],
    ['ended and is back', 'a', { ...LEFT, phase: 'Failed' }, { phase: 'Running' }, /has ended/],
    ['waits again', 'a', RUNNING, { phase: 'Pending' }, /may not say/],
    ['stands still, says its holder', 'a', RUNNING, { conditions: paused }, /^ok$/],
    ['stands still, says its successor', 'b', MOVING, { conditions: paused }, /does not execute/],
    ['goes on', 'a', { ...RUNNING, conditions: paused }, { conditions: [] }, /^ok$/],
  ])('%s', async (_, node, old, changed, expected) => expect(await change(node, old, changed)).toMatch(expected));

  it('is not said in the words of the controllers', async () => {
    const ready = (status: string) => ({ type: 'Ready', status });
    const old = { ...RUNNING, conditions: [ready('False'), { type: 'LiveMigratable', status: 'False' }] };
    expect(await change('a', old, { conditions: [ready('True'), ...old.conditions.slice(1)] })).toMatch(
      /no conditions but Paused/,
    );
    expect(await change('a', old, { conditions: [ready('False')] })).toMatch(/no conditions but Paused/);
    expect(await change('a', old, { conditions: [...old.conditions.toReversed(), ...paused] })).toBe('ok');
  });

  it.each(['activePods', 'evacuationNodeName', 'migrationState', 'launcherContainerImageVersion'])(
    'does not change %s',
    async (field) => expect(await change('a', RUNNING, { [field]: {} })).toMatch(`may not write status.${field}`),
  );

  it.each<[string, string, Status, Status, RegExp]>([
    ['that it came, with the right', 'b', MOVING, { rightToRun: { epoch: 5, holder: B }, nodeName: 'b' }, /^ok$/],
    ['that it is here, as the record says', 'a', { ...RUNNING, nodeName: 'b' }, { nodeName: 'a' }, /^ok$/],
    ['that it came, without the right', 'b', MOVING, { nodeName: 'b' }, /may say where a guest is/],
    ['that it went', 'a', MOVING, { nodeName: 'b' }, /may say where a guest is/],
    ['that it is nowhere', 'a', RUNNING, { nodeName: undefined }, /may say where a guest is/],
    ['where it is that is not here', 'a', LEFT, { nodeName: 'b' }, /may say where a guest is/],
    [
      'that it is here, where it is away',
      'a',
      { ...RUNNING, nodeName: 'b', rightToRun: { epoch: 5, holder: A, across: true } },
      { nodeName: 'a' },
      /may say where a guest is|nothing to do/,
    ],
  ])('is said by a node: %s', async (_, node, old, changed, expected) =>
    expect(await change(node, old, changed)).toMatch(expected),
  );

  it('may be told in more detail', async () => {
    expect(await change('a', RUNNING, { guestOSInfo: { name: 'x' }, interfaces: [] })).toBe('ok');
  });
});

describe('anything else', () => {
  it.each<[string, Partial<AdmissionRequest>]>([
    ['a guest itself', { subResource: '' }],
    ['a new guest', { operation: 'CREATE', subResource: '', oldObject: null }],
    ['the end of a guest', { operation: 'DELETE', subResource: '', object: null }],
    ['a machine', { resource: { group: 'kubevirt.io', version: 'v1', resource: 'virtualmachines' } }],
  ])('is not written by nodes: %s', async (_, more) =>
    expect(await answer('a', guest(RUNNING), guest(RUNNING), more)).toMatch(/nothing but the status of guests/),
  );

  it('is not looked at where no node writes', async () => {
    const userInfo = {
      username: 'system:serviceaccount:kubevirt:godwit-controller',
      groups: ['system:serviceaccounts'],
    };
    expect(await answer('', guest(RUNNING), guest({ ...RUNNING, nodeName: 'b' }), { userInfo })).toBe('ok');
  });

  it.each([
    ['system:node:', ['system:nodes']],
    ['mallory', ['system:nodes']],
  ])('is refused to %s, a node that does not say which', async (username, groups) =>
    expect(await answer('', guest(RUNNING), guest(RUNNING), { userInfo: { username, groups } })).toMatch(
      /could not determine/,
    ),
  );
});
