import { describe, expect, it } from 'vitest';
import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { answerTo, type EvictedPod, isFinished } from './eviction-answer.ts';

const HOLDER = { node: 'node01', nodeUID: 'n', podUID: 'pod' };

function guestOf(
  evictionStrategy: EvictionStrategy | undefined,
  isMigratable: boolean,
  status: VirtualMachineInstanceStatus = {},
): VirtualMachineInstance {
  const liveMigratable = { type: 'LiveMigratable', status: isMigratable ? 'True' : 'False' } as const;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'vm-cirros', namespace: 'default', uid: 'guest' },
    spec: { domain: { devices: {} }, ...(evictionStrategy ? { evictionStrategy } : {}) },
    status: {
      phase: 'Running',
      nodeName: 'node01',
      rightToRun: { epoch: 1, holder: HOLDER },
      conditions: [liveMigratable],
      ...status,
    },
  };
}

function podOf(metadata: EvictedPod['metadata'] = {}, nodeName = 'node01'): EvictedPod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'virt-launcher-vm-cirros-wn5v4', namespace: 'default', uid: 'pod', ...metadata },
    spec: { nodeName },
    status: { phase: 'Running' },
  };
}

/** An answer in one word; with what is said where it is no. */
function answered(pod: EvictedPod, guest: VirtualMachineInstance, configuration: KubeVirtConfiguration = {}): string {
  const answer = answerTo(pod, guest, configuration);
  return answer.kind === 'deny' ? `deny: ${answer.message}` : answer.kind;
}

const REFUSED = 'deny: VMI vm-cirros is configured with an eviction strategy but is not live-migratable';
const TARGET = 'deny: Eviction request for target Pod';

describe('the eviction of a launcher pod', () => {
  it.each<[EvictionStrategy, isMigratable: boolean, string]>([
    ['None', true, 'allow'],
    ['None', false, 'allow'],
    ['LiveMigrate', true, 'mark'],
    ['LiveMigrate', false, REFUSED],
    ['LiveMigrateIfPossible', true, 'mark'],
    ['LiveMigrateIfPossible', false, 'allow'],
    ['External', true, 'mark'],
    ['External', false, 'mark'],
  ])('asked for first, %s, migratable %s: %s', (strategy, isMigratable, answer) => {
    expect(answered(podOf(), guestOf(strategy, isMigratable))).toBe(answer);
    expect(answered(podOf(), guestOf(undefined, isMigratable), { evictionStrategy: strategy })).toBe(answer);
  });

  it.each<[EvictionStrategy, isMigratable: boolean]>([
    ['LiveMigrate', true],
    ['LiveMigrateIfPossible', true],
    ['External', true],
    ['External', false],
  ])('asked for again, %s, migratable %s, is left to the budget', (strategy, isMigratable) => {
    const marked = guestOf(strategy, isMigratable, { evacuationNodeName: 'node01' });
    expect(answered(podOf(), marked)).toBe('leave-to-budget');
    const elsewhere = guestOf(strategy, isMigratable, { evacuationNodeName: 'node02' });
    expect(answered(podOf(), elsewhere)).toBe('mark');
  });

  it('is granted where nobody says anything of a strategy', () => {
    expect(answered(podOf(), guestOf(undefined, true))).toBe('allow');
  });

  it('is refused where the guest is yet to come there from another object', () => {
    for (const strategy of ['None', 'LiveMigrate', 'LiveMigrateIfPossible', 'External'] as const) {
      const { rightToRun: _, nodeName: _nodeName, ...status } = guestOf(strategy, false).status ?? {};
      const guest = { ...guestOf(strategy, false), status: { ...status, phase: 'WaitingForSync' as const } };
      guest.metadata.annotations = { 'kubevirt.io/create-migration-target': 'true' };
      expect(answered(podOf(), guest)).toBe(TARGET);
    }
  });
  it('of a guest that cannot move is one that stays blocked', () => {
    expect(answerTo(podOf(), guestOf('LiveMigrate', false), {})).toMatchObject({ isBlocked: true });
    expect(answerTo(podOf({ uid: 'other' }), guestOf('LiveMigrate', false), {})).toMatchObject({ isBlocked: false });
  });

  it.each<[string, EvictedPod, VirtualMachineInstanceStatus, string]>([
    ['that the guest is to move to', podOf({ uid: 'target' }, 'node02'), {}, TARGET],
    ['that is not scheduled yet', podOf({ uid: 'target' }, ''), {}, TARGET],
    ['on the same node that is not the one which executes it', podOf({ uid: 'other' }), {}, TARGET],
    ['that it has just come to', podOf({}, 'node02'), {}, TARGET],
    ['where nobody has said who executes it', podOf({}, 'node02'), { rightToRun: { epoch: 1 } }, TARGET],
    [
      'that it has left for good',
      podOf({ uid: 'source' }),
      { nodeName: 'node02', migrationState: { completed: true, sourcePod: 'virt-launcher-vm-cirros-wn5v4' } },
      'allow',
    ],
    [
      'that it has left with memory still there',
      podOf({ uid: 'source' }),
      { nodeName: 'node02', migrationState: { mode: 'PostCopy', sourcePod: 'virt-launcher-vm-cirros-wn5v4' } },
      TARGET,
    ],
    [
      'that it stayed in',
      podOf(),
      { migrationState: { completed: true, failed: true, sourcePod: 'virt-launcher-vm-cirros-wn5v4' } },
      'mark',
    ],
  ])('of a pod %s', (_, pod, status, answer) => {
    expect(answered(pod, guestOf('LiveMigrate', true, status))).toBe(answer);
  });

  it.each<EvictionStrategy>(['LiveMigrate', 'LiveMigrateIfPossible', 'External'])(
    'of a pod that is terminating would cut its time short: %s',
    (strategy) => {
      const pod = podOf({ deletionTimestamp: '2026-01-01T00:00:00Z' });
      for (const evacuationNodeName of ['node01', ''])
        expect(answered(pod, guestOf(strategy, true, { evacuationNodeName }))).toContain(
          'deny: Eviction request for terminating Pod',
        );
      expect(answered(pod, guestOf('None', true))).toBe('allow');
    },
  );

  it('of a pod that holds a guest on its way would cut its time short, though the guest could not begin to move', () => {
    const pod: EvictedPod = {
      ...podOf({ deletionTimestamp: '2026-01-01T00:05:45Z', deletionGracePeriodSeconds: 345 }),
      spec: { nodeName: 'node01', terminationGracePeriodSeconds: 345 },
    };
    const preemption = { cause: 'Preemption', podUID: 'pod', deadline: '2026-01-01T00:05:45Z' } as const;
    const status: VirtualMachineInstanceStatus = {
      evacuationNodeName: 'node01',
      evacuationCauses: [preemption],
      migrationState: { sourcePod: 'virt-launcher-vm-cirros-wn5v4', startTimestamp: '2026-01-01T00:00:10Z' },
    };
    const answer = answered(pod, guestOf('LiveMigrateIfPossible', false, status));
    expect(answer).toContain('deny: Eviction request for terminating Pod');
    expect(answered(pod, guestOf('LiveMigrateIfPossible', false, { ...status, migrationState: {} }))).toBe('allow');
  });

  it.each<[string, VirtualMachineInstance]>([
    ['is being deleted', { ...guestOf('LiveMigrate', true), metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } }],
    ['has ended', guestOf('LiveMigrate', true, { phase: 'Succeeded' })],
    ['has failed', guestOf('External', true, { phase: 'Failed' })],
  ])('is granted when the guest %s', (_, guest) => {
    expect(answered(podOf(), guest)).toBe('allow');
  });

  it.each<[EvictionStrategy, string]>([
    ['LiveMigrate', 'deny: VMI "default/vm-cirros" is not on a node yet'],
    ['External', 'deny: VMI "default/vm-cirros" is not on a node yet'],
    ['LiveMigrateIfPossible', 'allow'],
    ['None', 'allow'],
  ])('of a guest that is on no node yet: %s', (strategy, answer) => {
    const { rightToRun: _, nodeName: _node, ...status } = guestOf(strategy, true).status ?? {};
    expect(answered(podOf(), { ...guestOf(strategy, true), status: { ...status, phase: 'Scheduling' } })).toBe(answer);
  });

  it.each(['Succeeded', 'Failed'])('is not looked at where the pod has %s', (phase) => {
    expect(isFinished({ ...podOf(), status: { phase } })).toBe(true);
    expect(isFinished(podOf())).toBe(false);
  });
});
