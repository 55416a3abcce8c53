import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { queueOf } from '../queue/queue.ts';
import {
  ago,
  condition,
  guestOf,
  holderOf,
  ledgerOf,
  migrationOf,
  NOW_MS,
  seenOf,
  targetPodOf,
} from '../seen/seen.fixture.ts';
import { type MigrationScene, whyMigration } from './why-migration.ts';

const LEDGER = ledgerOf({}, holderOf('web', 'node-1', 'node-2'));

function answer(migration: VirtualMachineInstanceMigration, scene: Partial<MigrationScene> = {}) {
  const guest = scene.guest ?? guestOf('web', 'node-1');
  const { targetPod } = scene;
  const seen = seenOf({
    guests: [guest],
    migrations: [migration],
    ledger: LEDGER,
    targetPods: targetPod ? [targetPod] : [],
  });
  return whyMigration({ migration, guest, targetPod, queue: queueOf(seen), nowMs: NOW_MS, ...scene });
}

const began = (phase: string, seconds: number): object => ({
  phaseTransitionTimestamps: [{ phase, phaseTransitionTimestamp: ago(seconds) }],
});
const state = (more: object): object => ({ migrationState: { sourceNode: 'node-1', targetNode: 'node-2', ...more } });
const failed = (reason: string, message: string): object => ({
  conditions: [condition('migrationFailed', 'True', message, reason)],
});
const copying = guestOf('web', 'node-1', {
  migrationState: {
    migrationUid: 'migration-web',
    progress: { percent: 42, secondsLeft: 12 },
    decisions: [{ decision: 'Throttle', reason: 'Slow', message: 'the guest writes faster than it can be copied' }],
  },
});
const postCopy = guestOf('web', 'node-1', { migrationState: { migrationUid: 'migration-web', mode: 'PostCopy' } });

describe('a migration', () => {
  it.each<
    [string, VirtualMachineInstanceMigration, Partial<MigrationScene>, string, string, string, string | undefined]
  >([
    [
      'that begins',
      migrationOf('web'),
      {},
      'has its slots',
      'somebody asked for it (class: user-triggered)',
      'A pod is made',
      'godwit migrate-cancel web -n shop',
    ],
    [
      'that looks for a node',
      migrationOf('web', 'Scheduling'),
      { targetPod: targetPodOf('web') },
      'A node is being found',
      'asked',
      'within 14m',
      'migrate-cancel',
    ],
    [
      'whose pod starts',
      migrationOf('web', 'Scheduling'),
      { targetPod: targetPodOf('web', 'node-2') },
      'started on node-2',
      'asked',
      'once its pod runs',
      undefined,
    ],
    [
      'that waits at its target',
      migrationOf('web', 'Scheduled', { status: began('Scheduled', 600) }),
      { targetPod: targetPodOf('web', 'node-2') },
      'ready on node-2',
      'asked',
      'another 50m',
      undefined,
    ],
    [
      'that prepares',
      migrationOf('web', 'PreparingTarget', { status: { ...state({}), ...began('PreparingTarget', 60) } }),
      {},
      'being started on node-2',
      'asked',
      'another 4m',
      undefined,
    ],
    [
      'that is ready',
      migrationOf('web', 'TargetReady', { status: state({}) }),
      {},
      'The machine on node-2 is ready',
      'asked',
      'begins to copy',
      undefined,
    ],
    [
      'that copies',
      migrationOf('web', 'Running', { status: state({}) }),
      { guest: copying },
      'being copied, to node-2: 42%, 12s left.',
      'The guest writes faster than it can be copied.',
      'stands still for a moment',
      'migrate-cancel',
    ],
    [
      'that has no way back',
      migrationOf('web', 'Running', { status: state({}) }),
      { guest: postCopy },
      'runs at the target already',
      'asked',
      'no way back',
      undefined,
    ],
    [
      'that is stopped',
      migrationOf('web', 'Running', {
        status: { conditions: [condition('migrationAbortRequested', 'True', 'the migration was deleted')] },
      }),
      {},
      'being stopped',
      'The migration was deleted.',
      'goes on where it is',
      undefined,
    ],
    [
      'that has moved its guest',
      migrationOf('web', 'Succeeded', {
        status: state({ startTimestamp: ago(20), endTimestamp: ago(5), downtimeMs: 43 }),
      }),
      {},
      'moved from node-1 to node-2',
      'The copy took 15s, the guest stood still for 43 ms.',
      'Nothing',
      undefined,
    ],
    [
      'that failed',
      migrationOf('web', 'Failed', {
        status: failed('TargetPodUnschedulable', 'unschedulable pod timeout period exceeded'),
      }),
      {},
      'failed (TargetPodUnschedulable); the guest goes on',
      'Unschedulable pod timeout',
      'unless somebody asks',
      'give a node room',
    ],
    [
      'that failed as nobody knows',
      migrationOf('web', 'Failed', { status: failed('SomethingNew', 'who knows') }),
      {},
      'failed (SomethingNew)',
      'Who knows.',
      'unless somebody',
      'kubectl describe vmim',
    ],
    [
      'that the other half contradicts',
      migrationOf('web', 'Failed', { status: failed('PeerContradicted', 'it was reclaimed') }),
      {},
      'failed (PeerContradicted)',
      'It was reclaimed.',
      'unless somebody',
      'halt or delete the VirtualMachine of the other side',
    ],
    [
      'of a drain that failed',
      migrationOf('web', 'Failed', {
        status: { ...failed('TargetPodDown', 'it ended'), causes: [{ cause: 'APIEviction' }] },
      }),
      {},
      'failed',
      'It ended.',
      'tried again by itself',
      'godwit migrate web -n shop --watch',
    ],
    [
      'of a drain',
      migrationOf('web', 'Pending', {
        status: { effectivePriority: 100, causes: [{ cause: 'APIEviction', deadline: '2026-05-01T12:05:00Z' }] },
      }),
      {},
      'slots',
      'its node is being drained, and it has to be gone by 2026-05-01T12:05:00Z (class: system-critical)',
      'pod',
      undefined,
    ],
  ])('%s', (_, migration, scene, stateText, why, next, action) => {
    const told = answer(migration, scene);
    expect(told.subject).toBe('migration shop/move-web of shop/web');
    expect(told.state).toContain(stateText);
    expect(told.why.join('\n')).toContain(why);
    expect(told.next).toContain(next);
    if (action !== undefined) expect(told.actions.join('\n')).toContain(action);
  });
});
