import { describe, expect, it } from 'vitest';
import type { MigrationPhase } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { decide, type UpdateFacts, type Workload } from './decide.ts';
import { factsOf, type GuestMaking, guestOf, updateOf, workloadOf } from './workloads.fixture.ts';

/** The cases of KubeVirt's workload-updater_test.go are named as there. */

const OLD = 'launcher:1';
const names = (workloads: readonly Workload[]) => workloads.map(({ guest }) => guest.metadata.name);
const plan = (workloads: readonly Workload[], more?: Partial<UpdateFacts>) => {
  const { moved, evicted, canceled, wakeAtMs } = decide(factsOf(workloads, more));
  const gone = canceled.map(({ migration }) => migration.metadata.name);
  return { moved: names(moved), evicted: names(evicted), canceled: gone, wakeAtMs };
};
const many = (count: number, making: GuestMaking) =>
  Array.from({ length: count }, (_, index) => workloadOf(guestOf(`g${String(index).padStart(2, '0')}`, making)));
const { strategy } = factsOf([]);

describe('who is moved', () => {
  it('should migrate the VMI when outdated', () => {
    expect(plan([workloadOf(guestOf('web', { image: OLD }))]).moved).toEqual(['web']);
  });

  it('should do nothing if VMI is up-to-date', () => {
    expect(plan([workloadOf(guestOf('web'))])).toMatchObject({ moved: [], evicted: [] });
  });

  it('leaves a guest alone whose launcher nobody knows yet', () => {
    expect(plan([workloadOf(guestOf('web', { image: '' }))]).moved).toEqual([]);
  });

  it.each(['HotVCPUChange', 'HotMemoryChange', 'VolumesChange', 'MigrationRequired'])(
    'should migrate VMIs with memory hotplug and other changes: %s',
    (change) => {
      expect(plan([workloadOf(guestOf('web', { changes: [change] }))]).moved).toEqual(['web']);
    },
  );

  it('should do nothing if no method is set', () => {
    const none = { ...strategy, isMovingAllowed: false, isEvictingAllowed: false };
    expect(plan(many(3, { image: OLD }), { strategy: none })).toMatchObject({ moved: [], evicted: [] });
  });

  it('should cap the number of migrations at the limit of the cluster', () => {
    expect(plan(many(50, { image: OLD })).moved).toHaveLength(5);
  });

  it('should take migrations in flight into account', () => {
    expect(plan(many(50, { image: OLD }), { migrationsUnderWay: 4 }).moved).toEqual(['g00']);
    expect(plan(many(50, { image: OLD }), { migrationsUnderWay: 7 }).moved).toEqual([]);
  });

  it.each<readonly [string, Workload]>([
    ['has a migration already', workloadOf(guestOf('web', { image: OLD }), [updateOf('web', 'Pending')])],
    ['is marked to leave its node', workloadOf(guestOf('web', { image: OLD, status: { evacuationNodeName: 'a' } }))],
    ['has just come to a new pod', { ...workloadOf(guestOf('web', { image: OLD })), isServed: true }],
    ['is in a pod that is about to end', workloadOf(guestOf('web', { image: OLD }), [], true)],
    ['does not run yet', workloadOf(guestOf('web', { image: OLD, status: { phase: 'Scheduled' } }))],
    ['is over', workloadOf(guestOf('web', { image: OLD, status: { phase: 'Succeeded' } }))],
    [
      'is about to be deleted',
      workloadOf(guestOf('web', { image: OLD, metadata: { deletionTimestamp: '2026-01-01T00:00:00Z' } })),
    ],
  ])('moves and evicts no guest that %s', (_what, workload) => {
    expect(plan([workload])).toMatchObject({ moved: [], evicted: [] });
  });

  it('goes on after a migration of the past', () => {
    const past = [updateOf('web', 'Failed'), updateOf('web', 'Succeeded')];
    expect(plan([workloadOf(guestOf('web', { image: OLD }), past)]).moved).toEqual(['web']);
  });

  it('lets those wait that failed last, and prefers what somebody waits for', () => {
    const failed = updateOf('a', 'Failed', { creationTimestamp: '2026-01-01T00:00:00Z' });
    const workloads = [
      workloadOf(guestOf('a', { changes: ['HotVCPUChange'] }), [failed]),
      workloadOf(guestOf('b', { image: OLD })),
      workloadOf(guestOf('c', { changes: ['HotVCPUChange'] })),
    ];
    expect(plan(workloads).moved).toEqual(['c', 'b', 'a']);
  });
});

describe('who is evicted', () => {
  const evictOnly = { ...strategy, isMovingAllowed: false };

  it('should evict the VMI when only eviction is allowed', () => {
    const workload = workloadOf(guestOf('web', { image: OLD }));
    expect(plan([workload], { strategy: evictOnly })).toMatchObject({ moved: [], evicted: ['web'] });
  });

  it('should evict those that cannot migrate and migrate the others', () => {
    const workloads = [
      workloadOf(guestOf('local', { image: OLD, isMigratable: false })),
      workloadOf(guestOf('web', { image: OLD })),
    ];
    expect(plan(workloads)).toMatchObject({ moved: ['web'], evicted: ['local'] });
  });

  it('evicts nobody for a change: nobody asked for the guest to stop', () => {
    const workload = workloadOf(guestOf('local', { changes: ['HotVCPUChange'], isMigratable: false }));
    expect(plan([workload])).toMatchObject({ moved: [], evicted: [] });
  });

  it('should not evict a VMI during a migration', () => {
    const workload = workloadOf(guestOf('local', { image: OLD, isMigratable: false }), [updateOf('local', 'Running')]);
    expect(plan([workload]).evicted).toEqual([]);
  });

  it('should evict at most a batch, and no more before the interval has passed', () => {
    const workloads = many(25, { image: OLD, isMigratable: false });
    expect(plan(workloads).evicted).toHaveLength(10);
    expect(plan(workloads).wakeAtMs).toBe(1_060_000);
    expect(plan(workloads, { evictedMs: 990_000 })).toMatchObject({ evicted: [], wakeAtMs: 1_050_000 });
    expect(plan(workloads, { evictedMs: 940_000 }).evicted).toHaveLength(10);
  });

  it('should respect custom batch size and interval', () => {
    const custom = { ...strategy, evictionsPerBatch: 3, batchIntervalMs: 5000 };
    const workloads = many(4, { image: OLD, isMigratable: false });
    expect(plan(workloads, { strategy: custom }).evicted).toHaveLength(3);
    expect(plan(workloads, { strategy: custom }).wakeAtMs).toBe(1_005_000);
    expect(plan(workloads.slice(1), { strategy: custom }).wakeAtMs).toBeUndefined();
  });
});

describe('what is taken back', () => {
  const ready = { migrationUid: 'uid-of-update-of-web', targetNodeDomainReadyTimestamp: '2026-01-01T00:00:00Z' };

  it.each<readonly [MigrationPhase, readonly string[]]>([
    ['', ['update-of-web']],
    ['Pending', ['update-of-web']],
    ['Scheduling', ['update-of-web']],
    ['TargetReady', ['update-of-web']],
    ['Running', ['update-of-web']],
    ['Succeeded', []],
    ['Failed', []],
  ])('should abort the migration of a change that was taken back: %s', (phase, canceled) => {
    expect(plan([workloadOf(guestOf('web'), [updateOf('web', phase)])]).canceled).toEqual(canceled);
  });

  it.each(['HotVCPUChange', 'HotMemoryChange', 'VolumesChange'])('should not abort while there is a %s', (change) => {
    expect(plan([workloadOf(guestOf('web', { changes: [change] }), [updateOf('web', 'Running')])]).canceled).toEqual(
      [],
    );
  });

  it('should not abort while the launcher is outdated', () => {
    expect(plan([workloadOf(guestOf('web', { image: OLD }), [updateOf('web', 'Running')])]).canceled).toEqual([]);
  });

  it('should not abort when the target domain is ready', () => {
    const guest = guestOf('web', { status: { migrationState: ready } });
    expect(plan([workloadOf(guest, [updateOf('web', 'Running')])]).canceled).toEqual([]);
  });

  it('aborts one whose guest tells of an earlier move that arrived', () => {
    const guest = guestOf('web', { status: { migrationState: { ...ready, migrationUid: 'another' } } });
    expect(plan([workloadOf(guest, [updateOf('web', 'Scheduling')])]).canceled).toEqual(['update-of-web']);
  });

  it('leaves a migration that serves an evacuation by now', () => {
    const guest = guestOf('web', { status: { evacuationNodeName: 'a' } });
    expect(plan([workloadOf(guest, [updateOf('web', 'Pending')])]).canceled).toEqual([]);
  });

  it("leaves everybody else's migrations, whatever they are annotated with", () => {
    const users = { ...updateOf('web', 'Pending'), spec: { vmiName: 'web', cause: 'User' as const } };
    expect(plan([workloadOf(guestOf('web'), [users])]).canceled).toEqual([]);
  });

  it('asks once', () => {
    const going = updateOf('web', 'Running', { deletionTimestamp: '2026-01-01T00:00:00Z' });
    expect(plan([workloadOf(guestOf('web'), [going])]).canceled).toEqual([]);
  });
});
