import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { restrictNodes } from './node-restriction.ts';

/**
 * What nodes may write of guests that go to another object, or come from one. The nodes of both clusters are called alike:
 * `a` is the source's here, and the target's there.
 */

const webhook = restrictNodes({ unheard: () => [] });
const { signal } = new AbortController();
const runner = (node: string, of = 'here') => ({ node, nodeUID: `${of}-${node}`, podUID: `${of}-${node}-pod` });
const [HERE, THERE] = [runner('a'), runner('a', 'there')];

type Status = Record<string, unknown>;

const guest = (uid: string, status: Status): KubeObject => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'vm', namespace: 'ns', uid },
  spec: { domain: {} },
  status,
});

/** What a node hears that changes the status of a guest: `ok`, or why not. */
async function change(uid: string, node: string, status: Status, changed: Status): Promise<string> {
  const verdict = await webhook(
    {
      uid: 'u',
      operation: 'UPDATE',
      resource: { group: 'kubevirt.io', version: 'v1', resource: 'virtualmachineinstances' },
      subResource: 'status',
      userInfo: { username: `system:node:${node}`, groups: ['system:nodes', 'system:authenticated'] },
      object: guest(uid, { ...status, ...changed }),
      oldObject: guest(uid, status),
    },
    signal,
  );
  return verdict.allowed ? 'ok' : (verdict.status.message ?? '');
}

const STATE = {
  migrationUid: 'm',
  sourceNode: 'a',
  sourcePod: 'pod',
  targetNode: 'b',
  targetPod: 'pod',
  sourceState: { virtualMachineInstanceUID: 'source', migrationUID: 'm', runner: HERE, epoch: 4 },
  targetState: { virtualMachineInstanceUID: 'target', migrationUID: 'n' },
};
const says = (fields: object): Status => ({ migrationState: { ...STATE, ...fields } });
const failure = { completed: true, failed: true, failureReason: 'why' };
const success = { completed: true, targetNodeDomainDetected: true };
const NOTHING = /has nothing to do with this guest/;

describe('a guest that goes elsewhere', () => {
  const THERE_B = runner('b', 'there');
  const leaving = {
    phase: 'Running',
    nodeName: 'a',
    activePods: { 'here-a-pod': 'a' },
    rightToRun: { epoch: 4, holder: HERE },
    migrationState: STATE,
  };
  const reserved = { ...leaving, rightToRun: { epoch: 4, holder: HERE, successor: THERE_B, across: true } };
  const given = { epoch: 5, holder: THERE_B, across: true };
  const gone = { ...leaving, rightToRun: given };
  /** Where the node that it went to is called like the one that it left. */
  const goneAlike = { ...leaving, rightToRun: { ...given, holder: THERE } };
  const volumes = [{ name: 'root', sizeBytes: 1, isBlock: false }];
  const { rightToRun } = reserved;

  it.each<[string, string, Status, Status, RegExp]>([
    ['is to go where it was said', 'a', leaving, { rightToRun }, /^ok$/],
    [
      'is not to go to another node here',
      'a',
      leaving,
      { rightToRun: { epoch: 4, holder: HERE, successor: runner('b') } },
      /only where the guest is to go/,
    ],
    ['is given up by its source', 'a', reserved, { rightToRun: leaving.rightToRun }, /^ok$/],
    [
      'is not declined by a node here that is called like the target',
      'b',
      reserved,
      { rightToRun: leaving.rightToRun },
      NOTHING,
    ],
    ['is not taken by one', 'b', reserved, { rightToRun: { epoch: 5, holder: THERE_B } }, NOTHING],
    ['is given by its source', 'a', reserved, { rightToRun: given }, /^ok$/],
    ['is given by nobody else', 'b', reserved, { rightToRun: given }, NOTHING],
    [
      'is not given without saying so',
      'a',
      reserved,
      { rightToRun: { epoch: 5, holder: THERE_B } },
      /steps of the protocol/,
    ],
    ['is not had back by its source', 'a', gone, { rightToRun: { epoch: 6, holder: HERE } }, /steps of the protocol/],
    ['is not given up again', 'a', goneAlike, { rightToRun: { epoch: 6 } }, /may not seize/],
    ['is not given up again by one that is called like the target', 'b', gone, { rightToRun: { epoch: 6 } }, NOTHING],
    [
      'does not run there by the word of its source',
      'a',
      goneAlike,
      { phase: 'Failed' },
      /does not execute this guest/,
    ],
    ['has disks that its source knows', 'a', leaving, says({ sourceState: { ...STATE.sourceState, volumes } }), /^ok$/],
    [
      'has them by the word of nobody else',
      'b',
      leaving,
      says({ sourceState: { ...STATE.sourceState, volumes } }),
      NOTHING,
    ],
    [
      'is of no other epoch for that',
      'a',
      leaving,
      says({ sourceState: { ...STATE.sourceState, volumes, epoch: 9 } }),
      /may not write status.migrationState.sourceState/,
    ],
    [
      'moves by the word of its source',
      'a',
      reserved,
      says({ startTimestamp: 'now', progress: { percent: 1 } }),
      /^ok$/,
    ],
    ['has not moved by the word of its source', 'a', reserved, says(failure), /^ok$/],
    ['has moved, and that is that', 'a', goneAlike, says(failure), /may not write status.migrationState.completed/],
    ['is told more of, once it has gone', 'a', goneAlike, says({ progress: { percent: 99 } }), /^ok$/],
    ['has not arrived by the word of its source', 'a', goneAlike, says(success), /may not write/],
    ['is waited for by nobody here', 'b', reserved, says({ targetNodeAddress: '10.0.0.1' }), NOTHING],
  ])('%s', async (_, node, status, changed, expected) =>
    expect(await change('source', node, status, changed)).toMatch(expected),
  );
});

describe('a guest that comes from elsewhere', () => {
  const B = runner('b');
  const coming = {
    phase: 'WaitingForSync',
    activePods: { 'here-b-pod': 'b' },
    migrationState: { ...STATE, targetRunner: B },
  };
  const arrived = { ...coming, phase: 'Running', rightToRun: { epoch: 9, holder: B } };
  const waits = { targetNodeAddress: '10.0.0.1', targetDirectMigrationNodePorts: { 1: 0 }, targetRunner: B };
  const bare = { ...coming, migrationState: STATE };

  it.each<[string, string, Status, Status, RegExp]>([
    ['is waited for by its target', 'b', bare, says(waits), /^ok$/],
    ['is waited for in no pod of others', 'b', bare, says({ ...waits, targetRunner: runner('a') }), /launcher pod/],
    ['is here by the word of its target', 'b', coming, { rightToRun: arrived.rightToRun, phase: 'Running' }, /^ok$/],
    ['is here by the word of nobody else', 'a', coming, { rightToRun: { epoch: 9, holder: HERE } }, NOTHING],
    [
      'is in no pod but the one that waited',
      'b',
      { ...coming, activePods: { ...coming.activePods, other: 'b' } },
      { rightToRun: { epoch: 9, holder: { ...B, podUID: 'other' } } },
      /waits to be received/,
    ],
    ['is in no epoch of its source', 'b', coming, { rightToRun: { epoch: 4, holder: B } }, /waits to be received/],
    [
      'is not started while nothing is to come',
      'b',
      { ...coming, migrationState: undefined },
      { rightToRun: { epoch: 9, holder: B } },
      /waits to be received/,
    ],
    ['does not run before it is here', 'b', coming, { phase: 'Running' }, /does not execute|may not say/],
    [
      'has arrived by the word of its target',
      'b',
      arrived,
      { migrationState: { ...coming.migrationState, ...success } },
      /^ok$/,
    ],
    [
      'is refused, or taken, in writing',
      'b',
      coming,
      { migrationState: { ...coming.migrationState, targetLetter: { kind: 'refused' } } },
      /^ok$/,
    ],
    [
      'has not come, says its target',
      'b',
      coming,
      { migrationState: { ...coming.migrationState, ...failure } },
      /^ok$/,
    ],
    [
      'has come, and that is that',
      'b',
      arrived,
      { migrationState: { ...coming.migrationState, ...failure } },
      /may not write status.migrationState.failed/,
    ],
    [
      'is written about by no node here that is called like its source',
      'a',
      coming,
      { migrationState: { ...coming.migrationState, sourceLetter: { kind: 'grant' } } },
      NOTHING,
    ],
    [
      'is written about by none, though it has a pod of it',
      'a',
      { ...coming, activePods: { ...coming.activePods, other: 'a' } },
      { migrationState: { ...coming.migrationState, sourceLetter: { kind: 'grant' } } },
      /no side of the migration/,
    ],
    [
      'has disks that only its source knows',
      'b',
      coming,
      { migrationState: { ...coming.migrationState, sourceState: { ...STATE.sourceState, volumes: [] } } },
      /may not write status.migrationState.sourceState/,
    ],
  ])('%s', async (_, node, status, changed, expected) =>
    expect(await change('target', node, status, changed)).toMatch(expected),
  );
});
