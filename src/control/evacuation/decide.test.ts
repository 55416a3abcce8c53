import { describe, expect, it } from 'vitest';
import type { Mark } from '../../api/kubevirt/evacuation.ts';
import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import type { MigrationPhase } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { formatTime } from '../../api/meta.ts';
import type { LauncherPod } from '../resources.ts';
import { decideMove, type EvacuationFacts, isLeavable, markAfter } from './decide.ts';
import {
  DRAIN_TAINT,
  factsOf,
  guestWith,
  marked,
  migrationIn,
  NOW,
  nodeWith,
  podWith,
  STUCK,
} from './evacuation.fixture.ts';

const NONE: Mark = { evacuationNodeName: undefined, evacuationCauses: undefined };
const DRAIN: EvacuationCause = { cause: 'APIEviction', untilUncordon: true };
const PLAIN: EvacuationCause = { cause: 'APIEviction' };
const TAINT: EvacuationCause = { cause: 'DrainTaint', since: NOW };
const PREEMPTION: EvacuationCause = { cause: 'Preemption', deadline: NOW, podUID: 'pod-a' };
const CORDONED = nodeWith({ unschedulable: true });
const TAINTED = nodeWith({ taints: [DRAIN_TAINT] });

/** Causes that are left of a mark with these. */
function left(causes: readonly EvacuationCause[], more: Partial<EvacuationFacts> = {}): readonly string[] {
  const { evacuationNodeName, evacuationCauses = [] } = markAfter(
    factsOf({ guest: guestWith('LiveMigrate', marked(...causes)), ...more }),
  );
  expect(evacuationNodeName === undefined).toBe(evacuationCauses.length === 0);
  return evacuationCauses.map(({ cause }) => cause);
}

describe('a mark', () => {
  it.each<[string, readonly EvacuationCause[], Partial<EvacuationFacts>, readonly string[]]>([
    ['of a drain stays while the node is cordoned', [DRAIN], { node: CORDONED }, ['APIEviction']],
    ['of a drain goes when the node takes pods again', [DRAIN], {}, []],
    ['of a plain eviction stays on uncordon', [PLAIN], {}, ['APIEviction']],
    ['of the descheduler stays on uncordon', [{ cause: 'Descheduler' }], {}, ['Descheduler']],
    ['keeps what is not withdrawn', [DRAIN, { cause: 'Descheduler' }], {}, ['Descheduler']],
    ['of the taint goes with it', [TAINT], {}, []],
    ['of the taint stays when the node is only uncordoned', [DRAIN, TAINT], { node: TAINTED }, ['DrainTaint']],
    ['of a preemption stays whatever becomes of the node', [PREEMPTION], {}, ['Preemption']],
    ['of a pod that the guest is not in any more goes', [{ ...PREEMPTION, podUID: 'pod-0' }], {}, []],
    ['stays where the node is not known', [DRAIN, TAINT], { node: undefined }, ['APIEviction', 'DrainTaint']],
    [
      'is not withdrawn once the pod is being deleted',
      [DRAIN, TAINT],
      { pods: [podWith('pod-a', { deletionTimestamp: NOW })] },
      ['APIEviction', 'DrainTaint'],
    ],
    [
      'is withdrawn although another pod is being deleted',
      [DRAIN],
      { pods: [podWith('pod-a'), podWith('pod-b', { deletionTimestamp: NOW })] },
      [],
    ],
  ])('%s', (_, causes, more, expected) => {
    expect(left(causes, more)).toEqual(expected);
  });

  it('without causes, as KubeVirt writes it, stays until the guest has left', () => {
    const guest = guestWith('LiveMigrate', { evacuationNodeName: 'node-a' });
    expect(markAfter(factsOf({ guest })).evacuationNodeName).toBe('node-a');
    const elsewhere = { ...guest, status: { ...guest.status, nodeName: 'node-b' } };
    expect(markAfter(factsOf({ guest: elsewhere }))).toEqual(NONE);
  });

  it('goes when the guest is elsewhere, also before its status says so', () => {
    const holder = { node: 'node-b', nodeUID: 'uid-b', podUID: 'pod-b' };
    const moved = { ...marked(PLAIN), rightToRun: { epoch: 2, holder } };
    for (const nodeName of ['node-a', 'node-b'])
      expect(markAfter(factsOf({ guest: guestWith('LiveMigrate', { ...moved, nodeName }) }))).toEqual(NONE);
  });

  it('goes with its causes where there is no mark for them', () => {
    const guest = guestWith('LiveMigrate', { evacuationCauses: [PLAIN] });
    expect(markAfter(factsOf({ guest }))).toEqual(NONE);
  });

  it.each<[string, EvictionStrategy | undefined, boolean, boolean]>([
    ['LiveMigrate', 'LiveMigrate', true, true],
    ['LiveMigrate, not migratable any more', 'LiveMigrate', false, true],
    ['LiveMigrateIfPossible', 'LiveMigrateIfPossible', true, true],
    ['LiveMigrateIfPossible, not migratable any more', 'LiveMigrateIfPossible', false, false],
    ['External', 'External', true, true],
    ['External, not migratable', 'External', false, true],
    ['None', 'None', true, false],
    ['no strategy', undefined, true, false],
  ])('of a guest with %s', (_, strategy, isMigratable, isKept) => {
    const guest = guestWith(strategy, { ...marked(PLAIN), ...(isMigratable ? {} : STUCK) });
    if (strategy === undefined) delete guest.spec.evictionStrategy;
    expect(markAfter(factsOf({ guest })).evacuationNodeName).toBe(isKept ? 'node-a' : undefined);
  });
});

describe('the drain taint', () => {
  it.each<[EvictionStrategy, boolean, boolean]>([
    ['None', true, false],
    ['LiveMigrate', true, true],
    ['LiveMigrate', false, false],
    ['LiveMigrateIfPossible', true, true],
    ['LiveMigrateIfPossible', false, false],
    ['External', true, true],
    ['External', false, true],
  ])('%s, live-migratable %s: marks %s', (strategy, isMigratable, isMarked) => {
    const guest = guestWith(strategy, isMigratable ? {} : STUCK);
    const mark = markAfter(factsOf({ guest, node: TAINTED }));
    expect(mark).toEqual(isMarked ? { evacuationNodeName: 'node-a', evacuationCauses: [TAINT] } : NONE);
  });

  it('is added to what is there, and never renewed', () => {
    const guest = guestWith('LiveMigrate', marked(PLAIN));
    expect(markAfter(factsOf({ guest, node: TAINTED })).evacuationCauses).toEqual([PLAIN, TAINT]);
    const known = { ...TAINT, since: '2026-05-01T11:00:00Z' };
    const again = guestWith('LiveMigrate', marked(known));
    expect(markAfter(factsOf({ guest: again, node: TAINTED })).evacuationCauses).toEqual([known]);
  });

  it('has the key that the cluster says, and keeps no pods from running', () => {
    const migrations = { nodeDrainTaintKey: 'node.kubernetes.io/unschedulable' };
    const node = nodeWith({ taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] });
    expect(markAfter(factsOf({ node, configuration: { migrations } })).evacuationNodeName).toBe('node-a');
    expect(markAfter(factsOf({ node: TAINTED, configuration: { migrations } }))).toEqual(NONE);
    const other = nodeWith({ taints: [{ ...DRAIN_TAINT, effect: 'NoExecute' }] });
    expect(markAfter(factsOf({ node: other }))).toEqual(NONE);
  });

  it('marks nobody who is on the way to another node already', () => {
    const holder = { node: 'node-b', nodeUID: 'uid-b', podUID: 'pod-b' };
    const guest = guestWith('LiveMigrate', { rightToRun: { epoch: 2, holder } });
    expect(markAfter(factsOf({ guest, node: { ...TAINTED, metadata: { name: 'node-b' } } }))).toEqual(NONE);
  });
});

describe('a migration', () => {
  const isNeeded = (more: Partial<EvacuationFacts>): boolean =>
    decideMove(factsOf({ guest: guestWith('LiveMigrate', marked(PLAIN)), ...more })).isNeeded;

  const PREEMPTED = guestWith('LiveMigrate', marked({ cause: 'Preemption', podUID: 'pod-a' }));
  /** The guest's pod, which was deleted and has so many seconds left of its 345. */
  const going = (seconds: number): LauncherPod =>
    podWith('pod-a', {
      deletionTimestamp: formatTime(Date.parse(NOW) + seconds * 1000),
      deletionGracePeriodSeconds: 345,
    });

  it.each<[string, Partial<EvacuationFacts>, boolean]>([
    ['is made for a guest that is marked', {}, true],
    ['is not made for one that is not', { guest: guestWith() }, false],
    ['is not made where it is for somebody else', { guest: guestWith('External', marked(PLAIN)) }, false],
    [
      'is not made for one that cannot move',
      { guest: guestWith('LiveMigrate', { ...marked(PLAIN), ...STUCK }) },
      false,
    ],
    ['of a user serves', { migrations: [migrationIn('Pending', 'User')] }, false],
    ['of ours serves', { migrations: [migrationIn('Running')] }, false],
    ['that failed is followed by another', { migrations: [migrationIn('Failed')] }, true],
    ['is made with a single pod', { pods: [podWith('pod-a')] }, true],
    ['is not made while there are multiple pods', { pods: [podWith('pod-a'), podWith('pod-b')] }, false],
    [
      'is made although pods of the last one are about to end',
      { pods: [podWith('pod-a'), podWith('pod-b', { deletionTimestamp: NOW }), podWith('pod-c', {}, 'Failed')] },
      true,
    ],
    ['is made for a pod that is held', { guest: PREEMPTED, pods: [going(345)] }, true],
    ['is not made for a pod that is held no longer', { guest: PREEMPTED, pods: [going(40)] }, false],
    ['is not made for a pod that was simply deleted', { pods: [going(345)] }, false],
  ])('%s', (_, more, expected) => {
    expect(isNeeded(more)).toBe(expected);
  });

  it('is not made once the guest has arrived, though its status does not say so yet', () => {
    const holder = { node: 'node-b', nodeUID: 'uid-b', podUID: 'pod-b' };
    const guest = guestWith('LiveMigrate', { ...marked(PLAIN), rightToRun: { epoch: 2, holder } });
    expect(isNeeded({ guest, migrations: [migrationIn('Succeeded')], pods: [podWith('pod-b')] })).toBe(false);
  });

  it.each<[MigrationPhase, boolean]>([
    ['', true],
    ['Pending', true],
    ['Scheduling', true],
    ['Scheduled', true],
    ['PreparingTarget', false],
    ['TargetReady', false],
    ['Running', false],
    ['Succeeded', false],
    ['Failed', false],
  ])('in phase "%s" is taken back when the guest may stay: %s', (phase, isTakenBack) => {
    const migration = migrationIn(phase);
    const { canceled } = decideMove(factsOf({ guest: guestWith(), migrations: [migration] }));
    expect(canceled).toEqual(isTakenBack ? [migration] : []);
  });

  it('that the agents were told of is not taken back, whatever its phase says yet', () => {
    const guest = guestWith('LiveMigrate', { migrationState: { migrationUid: 'move-1' } });
    expect(decideMove(factsOf({ guest, migrations: [migrationIn('Scheduled')] })).canceled).toEqual([]);
  });

  it('of anybody else is not taken back, also where it is dressed up as ours', () => {
    const annotations = { 'kubevirt.io/evacuationMigration': 'node-a' };
    const migrations = [migrationIn('Pending', 'User'), migrationIn('Pending', 'User', { annotations })];
    expect(decideMove(factsOf({ guest: guestWith(), migrations })).canceled).toEqual([]);
  });

  it('is taken back once, and not while it is wanted', () => {
    const deleted = migrationIn('Pending', 'APIEviction', { deletionTimestamp: NOW });
    expect(decideMove(factsOf({ guest: guestWith(), migrations: [deleted] })).canceled).toEqual([]);
    const guest = guestWith('LiveMigrate', marked(PLAIN));
    expect(decideMove(factsOf({ guest, migrations: [migrationIn('Pending')] })).canceled).toEqual([]);
  });
});

describe('a guest that cannot move', () => {
  it('is told of, with the reason, where it is marked or its node is tainted', () => {
    const obstacle = 'DisksNotLiveMigratable: disk on node-a';
    const guest = guestWith('LiveMigrate', { ...marked(PLAIN), ...STUCK });
    expect(decideMove(factsOf({ guest })).obstacle).toBe(obstacle);
    const unmarked = guestWith('LiveMigrate', STUCK);
    expect(decideMove(factsOf({ guest: unmarked, node: TAINTED })).obstacle).toBe(obstacle);
    expect(decideMove(factsOf({ guest: unmarked })).obstacle).toBeUndefined();
  });

  it('is told of although nobody knows why', () => {
    for (const conditions of [[], [{ type: 'LiveMigratable', status: 'False' as const }]]) {
      const guest = guestWith('LiveMigrate', { ...marked(PLAIN), conditions });
      expect(decideMove(factsOf({ guest })).obstacle).toMatch(/live-migrated$/);
    }
  });

  it('is left alone when it is over, or about to be deleted', () => {
    expect(isLeavable(guestWith())).toBe(true);
    for (const phase of ['Succeeded', 'Failed'] as const)
      expect(isLeavable(guestWith('LiveMigrate', { phase }))).toBe(false);
    const guest = guestWith();
    expect(isLeavable({ ...guest, metadata: { ...guest.metadata, deletionTimestamp: NOW } })).toBe(false);
  });
});
