import { describe, expect, it } from 'vitest';
import type { MigrationProgress } from '../../api/kubevirt/migration-progress.ts';
import { failure } from './failure.ts';
import { at, factsOf, guestWith, handedOff, migrationIn, NOW_MS } from './moves.fixture.ts';
import { finalState, statusAfter } from './status.ts';

const phases = (status: ReturnType<typeof statusAfter>) =>
  status.phaseTransitionTimestamps?.map(
    ({ phase, phaseTransitionTimestamp }) => `${phase} ${phaseTransitionTimestamp}`,
  );

describe('the status of a migration', () => {
  it('begins with its cause, its number and where its guest is', () => {
    const made = migrationIn('');
    const migration = { ...made, spec: { ...made.spec, priority: 'user-triggered' } };
    expect(statusAfter(factsOf({ migration }), { phase: 'Pending', sourcePod: 'first' })).toEqual({
      phase: 'Pending',
      phaseTransitionTimestamps: [{ phase: 'Pending', phaseTransitionTimestamp: at(0) }],
      causes: [{ cause: 'User', priority: 50, since: at(60_000) }],
      effectivePriority: 50,
      migrationState: { migrationUid: 'move-1', sourceNode: 'node-a', sourcePod: 'first' },
    });
  });

  it('is ordered by the most urgent of all causes', () => {
    const causes = [
      { cause: 'User' as const, priority: 0 },
      { cause: 'APIEviction' as const, priority: 100 },
    ];
    const status = statusAfter(factsOf({ causes }), { phase: 'Pending' });
    expect(status).toMatchObject({ effectivePriority: 100, causes });
  });

  it('tells of phases that nobody saw, each once', () => {
    const facts = factsOf({ migration: migrationIn('Scheduling'), guest: handedOff({ startTimestamp: at(500) }) });
    const passed = ['Pending', 'Scheduled', 'PreparingTarget', 'TargetReady'].map((phase) => `${phase} ${at(0)}`);
    expect(phases(statusAfter(facts, { phase: 'Succeeded' }))).toEqual([
      `Scheduling ${at(1000)}`,
      ...passed,
      `Running ${at(500)}`,
      `Succeeded ${at(0)}`,
    ]);
    const running = factsOf({ migration: migrationIn('Running') });
    expect(phases(statusAfter(running, { phase: 'Running' }))).toEqual([`Running ${at(1000)}`]);
    expect(phases(statusAfter(factsOf({ migration: migrationIn('Pending') }), { phase: 'Failed' }))).toEqual([
      `Pending ${at(1000)}`,
      `Failed ${at(0)}`,
    ]);
  });

  it('says why nothing came of it, also where the guest knows nothing of it', () => {
    const cause = failure('TargetPodUnschedulable', 'shop/target');
    const status = statusAfter(factsOf({}), { phase: 'Failed', failure: cause });
    expect(status.migrationState).toEqual({
      migrationUid: 'move-1',
      sourceNode: 'node-a',
      failed: true,
      completed: true,
      failureReason: 'unschedulable pod timeout period exceeded: shop/target',
      endTimestamp: at(0),
    });
    expect(status.conditions).toEqual([
      {
        type: 'migrationFailed',
        status: 'True',
        reason: 'TargetPodUnschedulable',
        message: cause.message,
        lastTransitionTime: at(0),
      },
    ]);
  });

  it('keeps what the source says of its failure', () => {
    const guest = handedOff({ failed: true, completed: true, failureReason: 'no progress', endTimestamp: at(700) });
    const input = { phase: 'Failed', failure: failure('ReportedByNode', 'no progress') } as const;
    const status = statusAfter(factsOf({ migration: migrationIn('Running'), guest }), input);
    expect(status.migrationState).toEqual(guest.status?.migrationState);
  });

  it('passes progress on, but not every little of it', () => {
    const progress = (beforeMs: number): MigrationProgress => ({ percent: 40, time: at(beforeMs) });
    const shown = (knownMs: number | undefined, toldMs: number) => {
      const migration = migrationIn('Running');
      const known = knownMs === undefined ? {} : { progress: progress(knownMs) };
      const facts = factsOf({
        migration: { ...migration, status: { ...migration.status, ...known } },
        guest: handedOff({ startTimestamp: at(9000), progress: progress(toldMs) }),
      });
      return statusAfter(facts, { phase: 'Running' }).progress?.time;
    };
    expect(shown(undefined, 9000)).toBeUndefined();
    expect(shown(undefined, 0)).toBe(at(0));
    expect(shown(4000, 0)).toBe(at(4000));
    expect(shown(5000, 0)).toBe(at(0));
  });
});

describe('conditions', () => {
  const conditionsOf = (...args: Parameters<typeof statusAfter>) =>
    statusAfter(...args).conditions?.map(({ type, reason }) => `${type} ${reason}`);
  const canceled = (phase: 'Running' | 'Pending') => migrationIn(phase, { deletionTimestamp: at(0) });

  it('say that it is to stop, and why it does not', () => {
    const running = { migration: canceled('Running') };
    const copying = handedOff({ mode: 'PreCopy', startTimestamp: at(0) });
    const postCopy = handedOff({ mode: 'PostCopy', startTimestamp: at(0) });
    expect(conditionsOf(factsOf({ ...running, guest: copying }), { phase: 'Running' })).toEqual([
      'migrationAbortRequested Canceled',
    ]);
    expect(conditionsOf(factsOf({ ...running, guest: postCopy }), { phase: 'Running' })).toEqual([
      'migrationAbortRequested PostCopy',
    ]);
    expect(conditionsOf(factsOf({ ...running, guest: postCopy }), { phase: 'Succeeded' })).toEqual([
      'migrationAbortRequested PostCopy',
    ]);
    const taken = handedOff({ mode: 'PreCopy', startTimestamp: at(0), completed: true });
    for (const phase of ['Running', 'Succeeded'] as const)
      expect(conditionsOf(factsOf({ ...running, guest: taken }), { phase })).toEqual([
        'migrationAbortRequested GoneOver',
      ]);
    const failed = handedOff({ mode: 'PreCopy', startTimestamp: at(0), completed: true, failed: true });
    expect(conditionsOf(factsOf({ ...running, guest: failed }), { phase: 'Failed' })).toEqual([
      'migrationAbortRequested Canceled',
    ]);
    const input = { phase: 'Running', abort: 'NoNews' } as const;
    expect(conditionsOf(factsOf({ migration: migrationIn('Running') }), input)).toEqual([
      'migrationAbortRequested NoNews',
    ]);
  });

  it('say what a quota has against it, until there is a pod', () => {
    const refused = statusAfter(factsOf({}), { phase: 'Pending', quotaRefusal: 'exceeded quota: q' });
    expect(refused.conditions).toMatchObject([
      { type: 'migrationRejectedByResourceQuota', message: 'exceeded quota: q' },
    ]);
    const migration = { ...migrationIn('Pending'), status: refused };
    expect(conditionsOf(factsOf({ migration }), { phase: 'Pending' })).toEqual([
      'migrationRejectedByResourceQuota ExceededQuota',
    ]);
    expect(conditionsOf(factsOf({ migration }), { phase: 'Scheduling' })).toBeUndefined();
  });

  it('leave those of others alone, and keep the moment since when they hold', () => {
    const foreign = { type: 'migrationBlockedByBackup', status: 'True' } as const;
    const first = statusAfter(factsOf({}), { phase: 'Scheduling', unfitness: 'node-b: full' });
    const migration = {
      ...migrationIn('Scheduling'),
      status: { ...first, conditions: [foreign, ...(first.conditions ?? [])] },
    };
    const later = statusAfter(factsOf({ migration, nowMs: NOW_MS + 5000 }), {
      phase: 'Scheduling',
      unfitness: 'node-b: off',
    });
    expect(later.conditions).toMatchObject([
      foreign,
      { type: 'migrationTargetPodUnschedulable', message: 'node-b: off', lastTransitionTime: at(0) },
    ]);
  });
});

describe('what the agents say in the end', () => {
  it('is taken over, also when it comes late', () => {
    const guest = handedOff({ completed: true, downtimeMs: 42 });
    expect(finalState({ migration: migrationIn('Succeeded'), guest })).toEqual(guest.status?.migrationState);
  });

  it('is told without what they have to say to each other alone', () => {
    const letter = { kind: 'taken', epoch: 3 } as never;
    const guest = handedOff({ completed: true, targetLetter: letter, sourceLetter: letter });
    expect(finalState({ migration: migrationIn('Succeeded'), guest })).toEqual(
      handedOff({ completed: true }).status?.migrationState,
    );
  });

  it('is not taken from another migration, nor from one that goes on', () => {
    const migration = migrationIn('Failed');
    expect(finalState({ migration, guest: handedOff({ migrationUid: 'move-2', completed: true }) })).toBeUndefined();
    expect(finalState({ migration, guest: handedOff() })).toBeUndefined();
    expect(finalState({ migration, guest: guestWith() })).toBeUndefined();
  });
});
