import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { LauncherPod } from '../resources.ts';
import { heldUp, type HeldUpFacts } from './held-up.ts';

const holder = { node: 'node-a', nodeUID: 'a', podUID: 'pod-a' };
const successor = { node: 'node-b', nodeUID: 'b', podUID: 'pod-b' };

const guest = (status: VirtualMachineInstance['status'] = {}): VirtualMachineInstance => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstance',
  metadata: { name: 'web' },
  spec: { domain: { devices: {} } },
  status: { phase: 'Running', rightToRun: { epoch: 1, holder }, ...status },
});
const migration: VirtualMachineInstanceMigration = {
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstanceMigration',
  metadata: { name: 'move', uid: 'move-1' },
  spec: { vmName: 'web' },
};
const pod = (isUnschedulable = false): LauncherPod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'target' },
  status: {
    conditions: isUnschedulable ? [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] : [],
  },
});
const began = { startTimestamp: '2026-01-01T00:00:00Z' };

describe('what holds a migration up', () => {
  it.each<[string, string | undefined, Partial<HeldUpFacts>]>([
    ['nothing', undefined, {}],
    ['that its guest does not run', 'NotMovable', { guest: guest({ phase: 'Scheduled' }) }],
    ['that nobody executes its guest', 'NotMovable', { guest: guest({ rightToRun: { epoch: 1 } }) }],
    ['a quota', 'Quota', { isOverQuota: true }],
    ['that no node takes its pod', 'NoNode', { pod: pod(true) }],
    ['nothing, once its pod has a node', undefined, { pod: pod(), isOverQuota: true }],
    [
      'that its guest is reserved for another node',
      'Busy',
      { guest: guest({ rightToRun: { epoch: 1, holder, successor } }) },
    ],
    [
      'an older migration that its source is at',
      'Busy',
      { guest: guest({ migrationState: { migrationUid: 'old', ...began } }) },
    ],
    [
      'the same, with a pod',
      'Busy',
      { guest: guest({ migrationState: { migrationUid: 'old', ...began } }), pod: pod() },
    ],
    [
      'nothing of an older migration that is over',
      undefined,
      { guest: guest({ migrationState: { migrationUid: 'old', completed: true, ...began } }) },
    ],
    [
      'nothing of what it has begun itself',
      undefined,
      {
        guest: guest({
          rightToRun: { epoch: 1, holder, successor },
          migrationState: { migrationUid: 'move-1', ...began },
        }),
        pod: pod(),
      },
    ],
  ])('is %s', (_, kind, facts) => {
    const common = { migration, guest: guest(), pod: undefined, isHalf: false, others: [], isOverQuota: false };
    expect(heldUp({ ...common, deadlineMs: undefined, nowMs: 0, ...facts })?.kind).toBe(kind);
  });
});
