import { describe, expect, it } from 'vitest';
import type { MigrationPhase } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { backoffUntilMs } from './backoff.ts';
import { at, migrationIn, NOW_MS } from './moves.fixture.ts';

const EVACUATION = { 'kubevirt.io/evacuationMigration': 'node-a' };
const UPDATE = { 'kubevirt.io/workloadUpdateMigration': '' };

/** Migrations, newest first, that ended a second before now each. */
const history = (...phases: readonly MigrationPhase[]) =>
  phases.map((phase, index) =>
    migrationIn(phase, { uid: `old-${index}`, creationTimestamp: at(60_000 * (index + 1)), annotations: EVACUATION }),
  );

describe('the cluster itself waits after its migrations failed', () => {
  const mine = (annotations: Record<string, string>) => migrationIn('', { uid: 'new', annotations });
  it.each([
    ['nothing failed', EVACUATION, history(), undefined],
    ['one failed', EVACUATION, history('Failed'), 20],
    ['one failed, and a workload is to be updated', UPDATE, history('Failed'), 20],
    ['two failed', EVACUATION, history('Failed', 'Failed'), 40],
    ['five failed', EVACUATION, history('Failed', 'Failed', 'Failed', 'Failed', 'Failed'), 320],
    ['more failed', EVACUATION, history(...Array<'Failed'>(9).fill('Failed')), 320],
    ['one succeeded since', EVACUATION, history('Succeeded', 'Failed'), undefined],
    ['one succeeded before', EVACUATION, history('Failed', 'Succeeded', 'Failed'), 20],
    ['somebody asks for it', {}, history('Failed'), undefined],
  ])('%s', (_what, annotations, others, seconds) => {
    const migration = mine(annotations);
    const expected = seconds === undefined ? undefined : NOW_MS - 1000 + seconds * 1000;
    expect(backoffUntilMs(migration, [migration, ...others])).toBe(expected);
  });

  it.each([
    ['is far', 10_000, 320],
    ['is near', 400, 50],
    ['is nearer', 80, 10],
    ['is very near', 8, 5],
    ['has passed', -100, 5],
  ])('for no longer than a deadline allows that %s', (_what, deadlineSeconds, seconds) => {
    const others = history('Failed', 'Failed', 'Failed', 'Failed', 'Failed');
    const failedMs = NOW_MS - 1000;
    const untilMs = backoffUntilMs(mine(EVACUATION), others, failedMs + deadlineSeconds * 1000);
    expect(untilMs).toBe(failedMs + seconds * 1000);
  });

  it('counts from the last failure, also of those that were made in the same second', () => {
    const failedAt = (uid: string, beforeMs: number) =>
      migrationIn('Failed', { uid, creationTimestamp: at(60_000), annotations: EVACUATION }, beforeMs);
    const [first, second] = [failedAt('a', 50_000), failedAt('b', 10_000)];
    for (const others of [
      [first, second],
      [second, first],
    ])
      expect(backoffUntilMs(mine(EVACUATION), others)).toBe(NOW_MS - 10_000 + 40_000);
  });

  it('counts none that no node took: it has waited long enough', () => {
    const conditions = [{ type: 'migrationFailed', status: 'True' as const, reason: 'TargetPodUnschedulable' }];
    const [unfit, broken] = history('Failed', 'Failed').map((each, index) =>
      index === 0 ? { ...each, status: { ...each.status, conditions } } : each,
    );
    expect(backoffUntilMs(mine(EVACUATION), [unfit!])).toBeUndefined();
    expect(backoffUntilMs(mine(EVACUATION), [unfit!, broken!])).toBe(NOW_MS - 1000 + 20_000);
  });

  it('counts neither those that people asked for nor those that are to go', () => {
    const asked = migrationIn('Failed', { uid: 'asked' });
    const going = migrationIn('Failed', { uid: 'going', annotations: EVACUATION, deletionTimestamp: at(0) });
    expect(backoffUntilMs(mine(EVACUATION), [asked, going])).toBeUndefined();
  });
});
