import { describe, expect, it } from 'vitest';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { guestWith, marked, migrationIn, STUCK } from '../../control/evacuation/evacuation.fixture.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { forecastOf, isThere, isUnasked, rowOf, type SeenGuest } from './drained-machines.ts';

const POD: Pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'virt-launcher-web', namespace: 'shop' } };
const TERMINATING: Pod = { ...POD, metadata: { ...POD.metadata, deletionTimestamp: '2026-05-01T12:05:00Z' } };

function row(
  guest: VirtualMachineInstance | undefined,
  more: Partial<SeenGuest> = {},
  configuration: KubeVirtConfiguration = {},
): ReturnType<typeof rowOf> {
  const seen: SeenGuest = {
    last: guest ?? guestWith(),
    now: guest,
    migrations: [],
    pod: POD,
    refusal: undefined,
    ...more,
  };
  return rowOf(seen, { node: 'node-a', configuration });
}

const told = (...given: Parameters<typeof row>): string => {
  const { state, detail } = row(...given);
  return `${state}: ${detail}`;
};

function running(status: VirtualMachineInstanceMigration['status'] = {}): VirtualMachineInstanceMigration {
  const migration = migrationIn('Running');
  return { ...migration, status: { ...migration.status, ...status } };
}

describe('a machine of a node that is emptied', () => {
  const moved = { node: 'node-b', nodeUID: 'uid-b', podUID: 'pod-b' };
  it.each([
    ['that is gone', undefined, 'Gone: it was stopped'],
    ['that has ended', guestWith('None', { phase: 'Succeeded' }), 'Gone: it has ended'],
    [
      'that has moved',
      guestWith('LiveMigrate', { nodeName: 'node-b', rightToRun: { epoch: 2, holder: moved } }),
      'Left: it runs on node-b',
    ],
    [
      'that has moved, and does not say so yet',
      guestWith('LiveMigrate', { rightToRun: { epoch: 2, holder: moved } }),
      'Left: it runs on node-b',
    ],
    [
      'that cannot move',
      guestWith('LiveMigrate', STUCK),
      'Blocked: cannot be live-migrated: DisksNotLiveMigratable: disk on node-a',
    ],
    [
      'that somebody else moves',
      guestWith('External'),
      'Blocked: its eviction strategy is External: whoever manages it has to move or to end it',
    ],
    ['that nobody has asked yet', guestWith(), 'Waiting: nobody has asked it to leave yet'],
    ['that was asked', guestWith('LiveMigrate', marked({ cause: 'APIEviction' })), 'Waiting: it is about to move'],
    [
      'that has a deadline',
      guestWith('LiveMigrate', marked({ cause: 'Preemption', deadline: '2026-05-01T12:05:00Z' })),
      'Waiting: it has to be gone by 2026-05-01T12:05:00Z, and is about to move',
    ],
    ['that goes with its pod', guestWith('None'), 'Waiting: it is to be shut down'],
    [
      'that goes with its pod, since it cannot move',
      guestWith('LiveMigrateIfPossible', STUCK),
      'Waiting: it is to be shut down',
    ],
  ] as const)('%s', (_, guest, expected) => {
    expect(told(guest)).toBe(expected);
  });

  it('of the same name as one that is gone is another one', () => {
    const other = guestWith();
    expect(told(other, { last: { ...other, metadata: { ...other.metadata, uid: 'guest-0' } } })).toBe(
      'Gone: it was stopped',
    );
  });

  it('that somebody deletes stops', () => {
    const guest = guestWith();
    const deleted = { ...guest, metadata: { ...guest.metadata, deletionTimestamp: '2026-05-01T12:00:00Z' } };
    expect(told(deleted)).toBe('Stopping: somebody deleted it');
    expect(told(guestWith('None'), { pod: TERMINATING })).toBe('Stopping: it is being shut down');
  });

  it.each([
    ['Pending', 'Waiting: its migration waits for its turn'],
    ['Scheduling', 'Preparing: a node is being found for it'],
    ['Scheduled', 'Preparing: it is about to move to node-b'],
    ['TargetReady', 'Preparing: it is about to move to node-b'],
    ['Running', 'Moving: it moves to node-b'],
    ['Failed', 'Waiting: nobody has asked it to leave yet'],
  ] as const)('whose migration is %s', (phase, expected) => {
    const migration = migrationIn(phase);
    const status = { ...migration.status, migrationState: { targetNode: 'node-b' } };
    expect(told(guestWith(), { migrations: [{ ...migration, status }] })).toBe(expected);
  });

  it('says how far it is, and how', () => {
    const progress = { percent: 42, secondsLeft: 12 };
    const migrations = [running({ progress, migrationState: { targetNode: 'node-b', mode: 'PostCopy' } })];
    expect(row(guestWith(), { migrations })).toMatchObject({
      state: 'Moving',
      progress: '42%, 12s left',
      detail: 'it moves to node-b (PostCopy)',
    });
  });

  it('says whose the migration is that it waits for', () => {
    const waiting = migrationIn('Pending');
    const migrations = [{ ...waiting, status: { ...waiting.status, causes: [{ cause: 'User' as const }] } }];
    expect(told(guestWith(), { migrations })).toBe('Waiting: its migration waits for its turn (a user asked for it)');
  });

  it('that its budget keeps while nobody marks it says what may be missing', () => {
    const refusal = "Cannot evict pod as it would violate the pod's disruption budget.";
    expect(told(guestWith(), { refusal })).toMatch(/is the eviction webhook there\?$/);
    expect(told(guestWith(), { refusal: 'something else' })).toBe('Waiting: something else');
  });

  it('needs somebody only where nothing else moves it', () => {
    expect(row(guestWith('LiveMigrate', STUCK)).remedy).toContain("'godwit stop web -n shop'");
    expect(row(guestWith('External')).remedy).toBeUndefined();
    expect(row(guestWith()).remedy).toBeUndefined();
  });

  it('has the strategy of the cluster where it has none', () => {
    const { evictionStrategy: _, ...spec } = guestWith().spec;
    const guest = { ...guestWith('LiveMigrate', STUCK), spec };
    expect(row(guest, {}, { evictionStrategy: 'LiveMigrate' })).toMatchObject({
      strategy: 'LiveMigrate',
      state: 'Blocked',
    });
    expect(row(guest)).toMatchObject({ strategy: 'None', state: 'Waiting' });
  });

  it('is there until it is elsewhere or nowhere', () => {
    expect(isThere(row(undefined))).toBe(false);
    expect(isThere(row(guestWith()))).toBe(true);
  });

  it('is asked to leave once', () => {
    expect(isUnasked({ now: guestWith(), pod: POD })).toBe(true);
    expect(isUnasked({ now: guestWith('LiveMigrate', marked({ cause: 'APIEviction' })), pod: POD })).toBe(false);
    expect(isUnasked({ now: guestWith(), pod: TERMINATING })).toBe(false);
    expect(isUnasked({ now: undefined, pod: POD })).toBe(true);
  });
});

describe('what would become of a machine', () => {
  it.each([
    ['None', true, undefined, 'stops', 'its eviction strategy is None'],
    ['LiveMigrate', true, undefined, 'moves', 'LiveMigrate, and it can be live-migrated'],
    ['LiveMigrate', false, undefined, 'blocks', 'cannot be live-migrated: DisksNotLiveMigratable: disk on node-a'],
    ['LiveMigrate', true, 'node-b: Insufficient memory', 'blocks', 'no node takes it now: node-b: Insufficient memory'],
    ['LiveMigrateIfPossible', true, undefined, 'moves', 'LiveMigrateIfPossible, and it can be live-migrated'],
    ['LiveMigrateIfPossible', false, undefined, 'stops', 'LiveMigrateIfPossible, and it cannot be live-migrated'],
    [
      'External',
      true,
      undefined,
      'blocks',
      'its eviction strategy is External: whoever manages it has to move or to end it',
    ],
  ] as const)('%s, live-migratable %s, room %s: %s', (strategy, isMigratable, hasNoRoom, verdict, why) => {
    const guest = guestWith(strategy, isMigratable ? {} : STUCK);
    expect(forecastOf(guest, {}, hasNoRoom)).toEqual({ verdict, why });
  });
});
