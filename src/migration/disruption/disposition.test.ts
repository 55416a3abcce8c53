import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import type { VirtualMachineInstanceStatus } from '../../api/kubevirt/virtual-machine-instance.ts';
import { type Disposition, dispositionOf, disruptionDeadlineMs, holdReserveSeconds } from './disposition.ts';
import { at, DELETED_MS, disruptedGuest, disruptedPod, GATES_ON, marked, taintedNode } from './disruption.fixture.ts';

const NODE = taintedNode([]);
const STUCK: VirtualMachineInstanceStatus = { conditions: [{ type: 'LiveMigratable', status: 'False' }] };
const onlyGate = (gate: string) => ({ developerConfiguration: { featureGates: [gate] } });

function ask(ground: Partial<Parameters<typeof dispositionOf>[0]> = {}): Disposition {
  return dispositionOf({
    pod: disruptedPod(),
    guest: disruptedGuest(),
    configuration: GATES_ON,
    node: NODE,
    ...ground,
  });
}

/** For how many seconds from the deletion on; 0 for not at all. */
function heldFor(ground: Parameters<typeof ask>[0]): number {
  const disposition = ask(ground);
  return disposition === 'stop' ? 0 : (disposition.untilMs - DELETED_MS) / 1000;
}

describe('the guest of a pod that was preempted', () => {
  it('is held until there is just time to shut it down', () => {
    expect(ask()).toEqual({
      cause: 'Preemption',
      untilMs: DELETED_MS + 300_000,
      deadlineMs: DELETED_MS + 345_000,
      mover: 'Us',
    });
  });

  it.each<[EvictionStrategy | undefined, isLiveMigratable: boolean, 'Us' | 'External' | 'stop']>([
    ['LiveMigrate', true, 'Us'],
    ['LiveMigrate', false, 'stop'],
    ['LiveMigrateIfPossible', true, 'Us'],
    ['LiveMigrateIfPossible', false, 'stop'],
    ['External', true, 'External'],
    ['External', false, 'External'],
    ['None', true, 'stop'],
    [undefined, true, 'stop'],
  ])('%s, live-migratable %s: %s', (evictionStrategy, isLiveMigratable, expected) => {
    const { evictionStrategy: _, ...spec } = disruptedGuest().spec;
    const guest = {
      ...disruptedGuest({}, isLiveMigratable ? {} : STUCK),
      spec: { ...spec, ...(evictionStrategy ? { evictionStrategy } : {}) },
    };
    const disposition = ask({ guest });
    expect(disposition === 'stop' ? 'stop' : disposition.mover).toBe(expected);
  });

  it('has the strategy of the cluster where it has none', () => {
    const { evictionStrategy: _, ...spec } = disruptedGuest().spec;
    const configuration = { ...GATES_ON, evictionStrategy: 'LiveMigrate' } as const;
    expect(ask({ guest: { ...disruptedGuest(), spec }, configuration })).not.toBe('stop');
  });

  it.each([
    ['is off', {}, true],
    ['of the other cause alone is on', onlyGate('NoExecuteTaintEvictionLiveMigration'), true],
    ['is on', onlyGate('PreemptionEvictionLiveMigration'), false],
  ])('whose feature %s', (_, configuration, isStopped) => {
    expect(ask({ configuration }) === 'stop').toBe(isStopped);
  });

  it('is stopped when its owner wants that', () => {
    const guest = disruptedGuest();
    expect(ask({ guest: { ...guest, metadata: { ...guest.metadata, deletionTimestamp: at(5) } } })).toBe('stop');
  });

  it('is stopped when somebody deletes its pod once more, in less time', () => {
    expect(ask({ pod: disruptedPod({ deletedWithSeconds: 60 }) })).toBe('stop');
    const guest = disruptedGuest({}, marked({ cause: 'Preemption', podUID: 'pod-1', deadline: at(345) }));
    expect(ask({ guest, pod: disruptedPod({ deletedWithSeconds: 60 }) })).toBe('stop');
  });

  it('goes on with a move that has begun, though it could not begin now', () => {
    const migrationState = { sourcePod: 'virt-launcher-web-1', startTimestamp: at(-5), migrationUid: 'm' };
    expect(ask({ guest: disruptedGuest({}, { ...STUCK, migrationState }) })).toMatchObject({ mover: 'Us' });
    const over = { ...migrationState, completed: true };
    expect(ask({ guest: disruptedGuest({}, { ...STUCK, migrationState: over }) })).toBe('stop');
  });
});

describe('a guest that was marked for that', () => {
  const guest = disruptedGuest({}, marked({ cause: 'NoExecuteTaint', podUID: 'pod-1', deadline: at(345) }));
  it.each([
    ['the feature is switched off', { configuration: {} }],
    ['nobody knows any more who gave the reason', { pod: disruptedPod({ writtenAt: -600, trueAt: -600 }) }],
    ['the reason is taken back', { pod: disruptedPod({ status: 'False' }) }],
    [
      'its node is lost',
      { node: taintedNode([{ key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' }], 9, false) },
    ],
  ])('is held though %s', (_, ground) => {
    expect(heldFor({ guest, ...ground })).toBe(300);
  });

  it('is not held for a pod that it had before', () => {
    const before = disruptedGuest({}, marked({ cause: 'NoExecuteTaint', podUID: 'pod-0', deadline: at(345) }));
    expect(ask({ guest: before, pod: disruptedPod({ status: 'False' }) })).toBe('stop');
  });

  it('is not held for a node that it has left', () => {
    const left = disruptedGuest(
      {},
      { ...marked({ cause: 'NoExecuteTaint', podUID: 'pod-1', deadline: at(345) }), nodeName: 'node-b' },
    );
    expect(ask({ guest: left, pod: disruptedPod({ status: 'False' }) })).toBe('stop');
  });
});

describe('the time of a hold', () => {
  const holds = (seconds: number) => ({ ...GATES_ON, migrations: { disruptionHoldSeconds: seconds } });
  it.each([
    ['the usual', 30, 345, GATES_ON, 300],
    ['a guest that takes long to shut down', 600, 915, GATES_ON, 300],
    ['a pod from before there were holds has half of its time', 30, 45, GATES_ON, 18],
    ['a guest that has no time', 0, 15, GATES_ON, 13.5],
    ['a configuration of less', 30, 345, holds(60), 60],
    ['a configuration of none', 30, 345, holds(0), 0],
    ['a configuration of more than the pod was made with', 30, 345, holds(3600), 300],
  ])('of %s', (_, terminationGracePeriodSeconds, graceSeconds, configuration, seconds) => {
    const guest = disruptedGuest({ terminationGracePeriodSeconds });
    expect(heldFor({ guest, pod: disruptedPod({ graceSeconds }), configuration })).toBe(seconds);
  });

  it.each([
    [30, undefined, 105],
    [600, undefined, 675],
    [30, 10, 55],
    [30, 10_000, 345],
  ])('is short where critical pods wait: a guest with %s s, configured %s', (grace, configured, deadline) => {
    const graceSeconds = Math.max(345, grace + 315);
    const pod = disruptedPod({ graceSeconds });
    const configuration = {
      ...GATES_ON,
      ...(configured === undefined ? {} : { migrations: { criticalPreemptionHoldSeconds: configured } }),
    };
    const free = disruptedGuest({ terminationGracePeriodSeconds: grace });
    const ground = { pod, guest: free, configuration, node: NODE };
    expect(disruptionDeadlineMs(ground, false)).toBe(DELETED_MS + graceSeconds * 1000);
    expect(disruptionDeadlineMs(ground, true)).toBe(DELETED_MS + deadline * 1000);
    const mark = marked({ cause: 'Preemption', podUID: 'pod-1', deadline: at(deadline) });
    const guest = disruptedGuest({ terminationGracePeriodSeconds: grace }, mark);
    expect(heldFor({ guest, pod, configuration })).toBe(Math.min(configured ?? 60, 300));
  });

  it('always leaves the guest its grace, or half of what the pod has', () => {
    const seconds = fc.integer({ min: 0, max: 5000 });
    fc.assert(
      fc.property(seconds, seconds, seconds, (grace, total, configured) => {
        const guest = disruptedGuest({ terminationGracePeriodSeconds: grace });
        const pod = disruptedPod({ graceSeconds: total });
        const left = total - heldFor({ guest, pod, configuration: holds(configured) });
        expect(left).toBeGreaterThanOrEqual(Math.min(grace, total / 2));
        expect(left).toBeLessThanOrEqual(total);
      }),
    );
  });
});

describe('the time that a launcher has for a hold from the start', () => {
  it.each([
    ['LiveMigrate', GATES_ON, 300],
    ['LiveMigrateIfPossible', onlyGate('PreemptionEvictionLiveMigration'), 300],
    ['External', onlyGate('NoExecuteTaintEvictionLiveMigration'), 300],
    ['None', GATES_ON, 0],
    ['LiveMigrate', {}, 0],
    ['LiveMigrate', { ...GATES_ON, migrations: { disruptionHoldSeconds: 20 } }, 20],
  ] as const)('%s', (evictionStrategy, configuration, seconds) => {
    expect(holdReserveSeconds(disruptedGuest({ evictionStrategy }), configuration)).toBe(seconds);
  });
});
