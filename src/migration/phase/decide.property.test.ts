import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { isFinalMigration, MIGRATION_PHASES } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { decide } from './decide.ts';
import { isHandedOff, isStarted, type MigrationFacts, ownState } from './facts.ts';
import { at, factsOf, guestWith, migrationIn, NOW_MS, podWith, TARGET } from './moves.fixture.ts';

/** What holds whatever is known, in whatever combination, sensible or not. */

const maybe = <T>(value: T) => fc.constantFrom(value, undefined);
const deleted = fc.constantFrom({ deletionTimestamp: at(1000) }, {}, {}, {});
const rarely = fc.constantFrom(true, false, false, false);
const SOURCE = { ...TARGET, node: 'node-a', podUID: 'pod-a' };

const state: fc.Arbitrary<MigrationState> = fc.record(
  {
    migrationUid: fc.constantFrom('move-1', 'move-2', ''),
    sourceNode: fc.constant('node-a'),
    targetNode: fc.constantFrom('node-b', 'node-a'),
    targetNodeAddress: fc.constant('10.0.0.2'),
    startTimestamp: fc.constant(at(5000)),
    completed: fc.boolean(),
    failed: fc.boolean(),
    abortRequested: fc.boolean(),
    mode: fc.constantFrom('PreCopy', 'PostCopy'),
  },
  { requiredKeys: [] },
);

const record = fc
  .record({ holder: fc.constantFrom(SOURCE, SOURCE, SOURCE, TARGET, undefined), successor: maybe(TARGET) })
  .map(({ holder, successor }) => ({ epoch: 4, ...(holder && { holder }), ...(successor && { successor }) }));

const guest = fc
  .record({
    phase: fc.constantFrom('Scheduled', 'Running', 'Running', 'Running', 'Failed'),
    migrationState: maybe(0),
    record,
    gone: deleted,
    state,
  })
  .map(({ phase, migrationState, record: rightToRun, gone, state: told }) =>
    guestWith(
      { phase: phase as 'Running', rightToRun, ...(migrationState === undefined ? {} : { migrationState: told }) },
      gone,
    ),
  );

const facts: fc.Arbitrary<MigrationFacts> = fc
  .record({
    phase: fc.constantFrom(...MIGRATION_PHASES, 'Scheduling', 'Scheduled', 'Scheduled', 'Running'),
    gone: deleted,
    sinceMs: fc.constantFrom(0, 100_000, 400_000, 5_000_000),
    guest: fc.option(guest, { nil: undefined, freq: 20 }),
    pod: fc.option(fc.record({ isUp: fc.boolean(), isDown: rarely, isUnschedulable: fc.boolean() }), {
      nil: undefined,
      freq: 10,
    }),
    slots: fc.constantFrom('reserved', 'committed', 'committed', undefined),
    hasBetterRival: rarely,
    isOtherOwnerAlive: rarely,
    newsMs: fc.constantFrom(NOW_MS, NOW_MS - 5_000_000),
  })
  .map(({ phase, gone, sinceMs, pod, ...rest }) =>
    factsOf({ ...rest, migration: migrationIn(phase, gone, sinceMs), targetPod: pod && podWith(pod) }),
  );

const always = (check: (facts: MigrationFacts) => void): void =>
  fc.assert(fc.property(facts, check), { numRuns: 6000, seed: 7 });

describe('whatever is known of a migration', () => {
  it('what is over stays as it is', () => {
    always((each) => {
      if (isFinalMigration(each.migration)) expect(decide(each)).toEqual({ phase: each.migration.status?.phase });
    });
  });

  it('nothing is taken back that the source may have begun', () => {
    always((each) => {
      const { step } = decide(each);
      const { completed } = each.guest?.status?.migrationState ?? {};
      const isUnderWay = each.guest !== undefined && isStarted(each.guest) && completed !== true;
      if (isUnderWay) expect(['withdraw', 'hand-off', 'announce']).not.toContain(step?.kind);
    });
  });

  it('a copy that may be under way fails only by the word of its guest', () => {
    always((each) => {
      const { guest: subject } = each;
      const own = ownState(each);
      if (isFinalMigration(each.migration) || !subject || !own || !isStarted(subject)) return;
      const isTold = own.failed === true || own.completed === true || subject.status?.phase === 'Failed';
      if (!isTold) expect(decide(each).phase).not.toBe('Failed');
    });
  });

  it('nobody is asked to stop what runs at the target already', () => {
    always((each) => {
      const isThere = ownState(each)?.mode === 'PostCopy';
      if (isThere) expect(decide(each).step?.kind).not.toBe('request-abort');
    });
  });

  it('only what has all of its slots is handed off, and nothing twice', () => {
    let count = 0;
    always((each) => {
      if (decide(each).step?.kind !== 'hand-off') return;
      count++;
      expect(each.slots).toBe('committed');
      expect(isHandedOff(each)).toBe(false);
      expect(each.targetPod?.isUp).toBe(true);
      expect(each.migration.metadata.deletionTimestamp).toBeUndefined();
    });
    expect(count).toBeGreaterThan(10);
  });

  it('a failure has its reason, and nothing else has one', () => {
    always((each) => {
      const { phase, failure } = decide(each);
      if (!isFinalMigration(each.migration)) expect(failure !== undefined).toBe(phase === 'Failed');
    });
  });

  it('what waits for nothing but time knows until when', () => {
    always((each) => {
      const { phase, wakeAtMs } = decide(each);
      if (wakeAtMs !== undefined) expect(wakeAtMs).toBeGreaterThan(each.nowMs);
      if (['Scheduling', 'Scheduled', 'PreparingTarget', 'TargetReady'].includes(phase) && !decide(each).step)
        expect(isFinalMigration(each.migration) || wakeAtMs !== undefined).toBe(true);
    });
  });
});
