import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { guestOf, podOf } from '../vmi/guests.fixture.ts';
import { launcherName } from '../vmi/launcher-pod.ts';
import { targetPodFacts, targetPodName, targetPodOf } from './target-pod.ts';

const migrationOf = (uid: string, addedNodeSelector?: Record<string, string>): VirtualMachineInstanceMigration => ({
  apiVersion: 'kubevirt.io/v1',
  kind: 'VirtualMachineInstanceMigration',
  metadata: { name: 'move', namespace: 'shop', uid },
  spec: { vmName: 'web', ...(addedNodeSelector ? { addedNodeSelector } : {}) },
});
const OPTIONS = { image: 'launcher:1', configuration: {}, isBlock: () => false };

describe('the pod that a guest moves to', () => {
  it('has one name for each migration, none of which is that of the first', () => {
    const names = ['m-1', 'm-2'].map((uid) => targetPodName(guestOf(), migrationOf(uid)));
    expect(new Set([...names, launcherName(guestOf())]).size).toBe(3);
    expect(names[0]).toMatch(/^virt-launcher-web-[a-z0-9]{5}$/);
    const long = guestOf();
    expect(
      targetPodName({ ...long, metadata: { ...long.metadata, name: 'w'.repeat(253) } }, migrationOf('m')),
    ).toHaveLength(253);
  });

  it('belongs to its guest, and says whose move it is for', () => {
    const { metadata } = targetPodOf(guestOf(), migrationOf('m-1'), {}, OPTIONS);
    expect(metadata).toMatchObject({
      labels: {
        'kubevirt.io': 'virt-launcher',
        'kubevirt.io/created-by': 'guest-1',
        'kubevirt.io/migrationJobUID': 'm-1',
      },
      annotations: { 'kubevirt.io/migrationJobName': 'move' },
      ownerReferences: [{ uid: 'guest-1', controller: true }],
    });
  });

  it('is narrowed by the migration, and never taken elsewhere than its guest wants to be', () => {
    const guest = guestOf({ nodeSelector: { zone: 'a' } });
    const { spec } = targetPodOf(guest, migrationOf('m-1', { zone: 'b', disk: 'fast' }), {}, OPTIONS);
    expect(spec?.nodeSelector).toEqual({
      'kubevirt.io/schedulable': 'true',
      'kubernetes.io/arch': 'amd64',
      zone: 'a',
      disk: 'fast',
    });
  });

  it('is beside no other launcher of its guest, besides what the guest avoids', () => {
    const avoided = { topologyKey: 'zone', labelSelector: { matchLabels: { app: 'web' } } };
    const affinity = { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [avoided] } };
    const { spec } = targetPodOf(guestOf({ affinity }), migrationOf('m-1'), {}, OPTIONS);
    expect(spec?.affinity?.podAntiAffinity?.requiredDuringSchedulingIgnoredDuringExecution).toEqual([
      avoided,
      {
        topologyKey: 'kubernetes.io/hostname',
        labelSelector: { matchLabels: { 'kubevirt.io/created-by': 'guest-1' } },
      },
    ]);
  });

  it('needs what the machine needs', () => {
    const { spec } = targetPodOf(guestOf(), migrationOf('m-1'), { 'godwit.dev/accelerator': 'tcg' }, OPTIONS);
    expect(spec?.nodeSelector).toMatchObject({ 'godwit.dev/accelerator': 'tcg' });
  });
});

describe('what is seen of it', () => {
  const compute = { name: 'compute' };
  it.each([
    ['waits for a node', podOf({ phase: 'Pending' }), { isUp: false, isDown: false, isUnschedulable: false }],
    [
      'fits nowhere',
      podOf({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] }),
      { isUp: false, isUnschedulable: true },
    ],
    ['is bound', podOf({ phase: 'Pending' }, 'node-b'), { nodeName: 'node-b', isUp: false }],
    [
      'runs, and is not ready',
      podOf({ phase: 'Running', containerStatuses: [{ ...compute, ready: false }] }, 'node-b'),
      { isUp: true },
    ],
    [
      'has failed',
      podOf({ phase: 'Failed', message: 'no image' }, 'node-b'),
      { isUp: false, isDown: true, cause: 'no image' },
    ],
    [
      'has ended',
      podOf(
        { phase: 'Running', containerStatuses: [{ ...compute, state: { terminated: { message: 'died' } } }] },
        'node-b',
      ),
      { isUp: false, isDown: true, cause: 'died' },
    ],
  ])('%s', (_what, pod, expected) => {
    expect(targetPodFacts(pod)).toMatchObject(expected);
  });
});
