import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { formatTime } from '../../api/meta.ts';
import { guestWith, marked, migrationIn, NOW, STUCK } from './evacuation.fixture.ts';
import { drainBlocked, hindranceOf, lookAgainMs } from './hindrances.ts';

const NOW_MS = Date.parse(NOW);
const PLAIN = { cause: 'APIEviction' } as const;

const message = (
  guest: VirtualMachineInstance,
  ...migrations: readonly VirtualMachineInstanceMigration[]
): string | undefined => hindranceOf(guest, migrations, {}, NOW_MS)?.message;

function withCondition(migration: VirtualMachineInstanceMigration, type: string): VirtualMachineInstanceMigration {
  const conditions = [{ type, status: 'True' as const, message: 'node-b: too small' }];
  return { ...migration, status: { ...migration.status, conditions } };
}

describe('a guest keeps a node from becoming empty', () => {
  it('that cannot be live-migrated', () => {
    expect(hindranceOf(guestWith('LiveMigrate', STUCK), [], {}, NOW_MS)).toEqual({
      guest: 'shop/web',
      message: 'cannot be live-migrated: DisksNotLiveMigratable: disk on node-a',
    });
  });

  it('that is for somebody else to move', () => {
    expect(message(guestWith('External'))).toMatch(/^its eviction strategy is External/);
  });

  it('that no node takes, or no quota lets have a second pod', () => {
    const guest = guestWith('LiveMigrate', marked(PLAIN));
    const migration = migrationIn('Scheduling');
    expect(message(guest, withCondition(migration, 'migrationTargetPodUnschedulable'))).toBe(
      'no node takes it: node-b: too small',
    );
    expect(message(guest, withCondition(migrationIn('Pending'), 'migrationRejectedByResourceQuota'))).toBe(
      'its namespace may have no further pod: node-b: too small',
    );
    expect(message(guest, withCondition(migrationIn('Failed'), 'migrationTargetPodUnschedulable'))).not.toMatch(
      'node-b',
    );
  });

  it('whose last migration failed, until the next one has begun', () => {
    const guest = guestWith('LiveMigrate', marked(PLAIN));
    const failed = migrationIn('Failed');
    const last = { ...failed, status: { ...failed.status, migrationState: { failureReason: 'the link broke' } } };
    const said = 'its last migration failed, and is tried again: the link broke';
    expect(message(guest, last)).toBe(said);
    expect(message(guest, last, migrationIn('Pending'))).toBe(said);
    expect(message(guest, last, migrationIn('Running'))).toBeUndefined();
    expect(message(guestWith(), last)).toBeUndefined();
    const later = migrationIn('Succeeded', 'APIEviction', { creationTimestamp: '2026-05-01T13:00:00Z' });
    expect(message(guest, last, later)).toBeUndefined();
  });

  it('for which no migration could be made in a while', () => {
    const since = (beforeMs: number): VirtualMachineInstance =>
      guestWith('LiveMigrate', marked({ ...PLAIN, since: formatTime(NOW_MS - beforeMs) }));
    expect(message(since(9000))).toBeUndefined();
    expect(lookAgainMs(since(9000), [], NOW_MS)).toBe(NOW_MS + 1000);
    expect(message(since(10_000))).toMatch(/no migration could be made for it/);
    expect(lookAgainMs(since(10_000), [], NOW_MS)).toBeUndefined();
    expect(message(since(10_000), migrationIn('Pending'))).toBeUndefined();
    expect(lookAgainMs(since(9000), [migrationIn('Pending')], NOW_MS)).toBeUndefined();
    expect(lookAgainMs(guestWith('LiveMigrate', marked(PLAIN)), [], NOW_MS)).toBeUndefined();
  });

  it.each([
    ['that may be evicted', guestWith('None')],
    ['that may be evicted, since it cannot move', guestWith('LiveMigrateIfPossible', STUCK)],
    ['that can move', guestWith('LiveMigrate')],
    ['that is on its way', guestWith('LiveMigrate', marked(PLAIN))],
    ['that has ended', guestWith('LiveMigrate', { ...STUCK, phase: 'Succeeded' })],
  ])('but none %s', (_, guest) => {
    expect(message(guest, migrationIn('Running'))).toBeUndefined();
  });
});

describe('the condition of the node', () => {
  it('names the guests in order', () => {
    expect(
      drainBlocked([
        { guest: 'shop/b', message: 'no node takes it' },
        { guest: 'shop/a', message: 'cannot be live-migrated' },
      ]),
    ).toEqual({
      type: 'DrainBlocked',
      status: 'True',
      reason: 'VirtualMachinesStay',
      message: '2 virtual machines cannot leave: shop/a: cannot be live-migrated; shop/b: no node takes it',
    });
    expect(drainBlocked([{ guest: 'shop/a', message: 'x' }]).message).toBe('1 virtual machine cannot leave: shop/a: x');
  });

  it('says that nothing is in the way', () => {
    expect(drainBlocked([])).toMatchObject({ status: 'False', reason: 'NothingInTheWay' });
  });

  it('is never too long to read', () => {
    const many = Array.from({ length: 1000 }, (_, index) => ({
      guest: `shop/web-${index}`,
      message: 'x'.repeat(5000),
    }));
    const { message: text = '' } = drainBlocked(many);
    expect(text.length).toBeLessThan(2100);
    expect(text).toMatch(/^1000 virtual machines cannot leave: shop\/web-0: x.*\.\.\.; and 99\d more$/);
  });
});
