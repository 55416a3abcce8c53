import { describe, expect, it } from 'vitest';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import { type SourceFacts, sourceReport, targetReport } from './migration-report.ts';

const runner = (node: string) => ({ node, nodeUID: `${node}-uid`, podUID: `${node}-pod` });
const ATTEMPT: Attempt = {
  epoch: 4,
  source: runner('a'),
  target: runner('b'),
  sourceMigrationUID: 'move',
  targetMigrationUID: 'move',
};
const RECEIVING: Standing = { kind: 'receiving', attempt: ATTEMPT };
const TAKEN: Standing = { kind: 'holding', epoch: 5, mustContinue: true, isCompleted: false };
const PLACE = { address: '10.0.0.2', port: 7000 };
const STATE: MigrationState = { migrationUid: 'move' };
const WRITTEN = { targetNodeAddress: PLACE.address, targetDirectMigrationNodePorts: { 7000: 0 } };

describe('a target', () => {
  const told = (standing: Standing, state: MigrationState, more: object) =>
    targetReport(state, standing, { self: runner('b'), place: PLACE, isWaiting: true, ...more }, 0);

  it('says where it is once its machine waits, and not before', () => {
    expect(told(RECEIVING, STATE, { isWaiting: false })).toEqual({});
    expect(told(RECEIVING, STATE, {})).toEqual({ ...WRITTEN, targetRunner: runner('b') });
    expect(told(RECEIVING, { migrationUid: 'another' }, {})).toEqual({});
  });

  it('says it again where its agent was started anew, however far the copy is', () => {
    const before = { ...STATE, targetNodeAddress: '10.0.0.2', targetDirectMigrationNodePorts: { 6000: 0 } };
    expect(told(RECEIVING, before, { isWaiting: false })).toMatchObject(WRITTEN);
  });

  it('says that the guest has moved, and in post-copy that its memory follows', () => {
    const moved = { completed: true, targetNodeDomainDetected: true, progress: { percent: 100, summary: '100%' } };
    expect(told(TAKEN, STATE, {})).toMatchObject(moved);
    const ahead = told(TAKEN, STATE, { isFollowed: true });
    expect(ahead).toMatchObject({ mode: 'PostCopy', targetNodeDomainDetected: true });
    expect(ahead.completed).toBeUndefined();
  });

  it('says that memory followed the guest also where all of it is there before anybody could be told', () => {
    const early = { ...STATE, mode: 'PreCopy' as const };
    expect(told({ ...TAKEN, isPostCopy: true }, early, {})).toMatchObject({ completed: true, mode: 'PostCopy' });
    expect(told(TAKEN, early, {})).not.toHaveProperty('mode');
  });

  it('knows its migration by the object of the source, where each side has one', () => {
    const pair: Standing = { kind: 'receiving', attempt: { ...ATTEMPT, targetMigrationUID: 'half' } };
    expect(told(pair, STATE, {})).toEqual({ ...WRITTEN, targetRunner: runner('b') });
    expect(told(pair, { migrationUid: 'half' }, {})).toEqual({});
  });

  describe('whose record its source cannot read', () => {
    const across = { ...ATTEMPT, across: { targetEpoch: 9 } };
    const ofIt = { epoch: 4, migrationUid: 'move', sourcePodUID: 'a-pod', targetPodUID: 'b-pod' };
    const taken: Standing = { ...TAKEN, epoch: 9, taken: across };
    const refused: Standing = { kind: 'refused', attempt: across };

    it('writes down what became of it, once', () => {
      const targetLetter = { ...ofIt, kind: 'taken' };
      expect(told(taken, STATE, {})).toMatchObject({ targetLetter, completed: true });
      expect(told(taken, { ...STATE, completed: true }, {})).toEqual({ targetLetter });
      expect(told(taken, { ...STATE, completed: true, targetLetter: { ...ofIt, kind: 'taken' } }, {})).toEqual({});
      expect(told(refused, { ...STATE, completed: true }, {})).toEqual({ targetLetter: { ...ofIt, kind: 'refused' } });
    });

    it('says itself that nothing came of it, and why', () => {
      expect(told(refused, STATE, {})).toMatchObject({
        completed: true,
        failed: true,
        failureReason: expect.stringContaining('not receive'),
      });
      const cancelled = told(refused, { ...STATE, abortRequested: true }, {});
      expect(cancelled).toMatchObject({
        failed: true,
        abortStatus: 'Succeeded',
        failureReason: expect.stringContaining('was cancelled'),
      });
      expect(told({ kind: 'refused', attempt: ATTEMPT }, STATE, {})).toEqual({});
      expect(told(refused, { migrationUid: 'later' }, {})).toEqual({});
    });

    it('says it in the place of what it asked before', () => {
      const undelivered = { kind: 'is-it-over', attempt: across };
      expect(told(refused, STATE, { undelivered })).toMatchObject({ targetLetter: { ...ofIt, kind: 'refused' } });
    });

    it('says nothing of it in a later migration', () =>
      expect(told(taken, { migrationUid: 'later', completed: true }, {})).toEqual({}));
  });
});

describe('a source', () => {
  const HOLDING: Standing = { kind: 'holding', epoch: 4, mustContinue: false, isCompleted: false };
  const RESERVED: Standing = { ...HOLDING, reserved: ATTEMPT };
  const GRANTED: Standing = { kind: 'granted', attempt: ATTEMPT, isPostCopy: false };
  const ENDED: Standing = { kind: 'ended', epoch: 4 };
  const MOVED: Standing = { ...ENDED, givenTo: runner('b') };
  const BEGUN: MigrationState = { ...STATE, startTimestamp: '2026-01-01T00:00:00Z' };
  const OVER: MigrationState = { ...BEGUN, completed: true };
  const copy: NonNullable<SourceFacts['copy']> = {
    mode: 'PreCopy',
    channel: { encrypted: true },
    progress: { percent: 40, transferredBytes: 7, secondsLeft: 3 },
    decisions: [],
  };
  const told = (standing: Standing, state: MigrationState, facts: SourceFacts = {}) =>
    sourceReport(state, standing, facts, 0);

  it('says that it has begun, and how far it is', () => {
    expect(told(HOLDING, STATE)).toEqual({});
    expect(told(RESERVED, STATE)).toEqual({ startTimestamp: '1970-01-01T00:00:00Z', mode: 'PreCopy' });
    expect(told(RESERVED, BEGUN, { copy })).toEqual({
      startTimestamp: BEGUN.startTimestamp,
      mode: 'PreCopy',
      channel: { encrypted: true },
      progress: copy.progress,
    });
    expect(told(GRANTED, BEGUN, { copy })).toMatchObject({ progress: { percent: 40 } });
  });

  it.each<[string, Standing, MigrationState, SourceFacts, RegExp]>([
    ['that it failed', HOLDING, BEGUN, { failure: 'no link' }, /^no link$/],
    ['that it never began', HOLDING, STATE, { failure: 'no target' }, /^no target$/],
    ['that nobody knows why', HOLDING, BEGUN, {}, /agent of the source was restarted, or its machine has ended/],
    ['that its machine ended', ENDED, BEGUN, {}, /machine ended at the source/],
  ])('says %s', (_, standing, state, facts, reason) => {
    const fields = told(standing, state, facts);
    expect(fields).toMatchObject({ completed: true, failed: true, failureReason: expect.stringMatching(reason) });
    expect(fields.abortStatus).toBeUndefined();
  });

  it('says what became of a cancel', () => {
    const fields = told(HOLDING, { ...BEGUN, abortRequested: true }, { failure: 'the migration was cancelled' });
    expect(fields).toMatchObject({ failed: true, abortStatus: 'Succeeded' });
  });

  it('has no word about whether a guest that left has arrived', () => {
    for (const standing of [GRANTED, MOVED]) expect(told(standing, BEGUN)).not.toHaveProperty('completed');
    expect(told(HOLDING, OVER, { failure: 'too late' })).toEqual({});
  });

  it('says nothing that is for whoever has the guest now', () => {
    const undelivered = { kind: 'grant', attempt: ATTEMPT, isPostCopy: true } as const;
    const facts = { copy, undelivered, hasGone: true };
    const ahead: MigrationState = { ...BEGUN, mode: 'PostCopy', progress: { percent: 30 } };
    expect(told(GRANTED, ahead, facts)).toEqual({ channel: copy.channel, progress: copy.progress });
    expect(told(GRANTED, { ...ahead, progress: { percent: 50 } }, facts)).toEqual({ channel: copy.channel });
    expect(told(GRANTED, { ...STATE, mode: 'PostCopy' }, { hasGone: true })).toEqual({});
    const there = { ...OVER, channel: { encrypted: true }, progress: { percent: 100, transferredBytes: 5 } };
    expect(told(GRANTED, there, facts)).toEqual({ progress: expect.objectContaining({ percent: 100 }) });
  });

  it('says the last numbers of a copy when nobody waits for them any more', () => {
    const before = { ...OVER, progress: { percent: 100, transferredBytes: 5 } };
    expect(told(MOVED, before, { copy }).progress).toMatchObject({
      percent: 100,
      transferredBytes: 7,
      summary: '100%',
    });
    const last = { channel: { encrypted: true }, progress: { percent: 100, transferredBytes: 7 } };
    expect(told(MOVED, { ...before, ...last }, { copy })).toEqual({});
  });

  it('says all of a copy that was over before anything was told of it', () => {
    const decisions = [{ decision: 'set-downtime', reason: 'FirstDowntime' }];
    const whole = { channel: { encrypted: true }, decisions, progress: { percent: 100, transferredBytes: 7 } };
    expect(told(MOVED, OVER, { copy: { ...copy, decisions } })).toMatchObject(whole);
    expect(told(MOVED, { ...OVER, failed: true }, { copy: { ...copy, decisions } })).toEqual({});
  });

  it('says that a copy was post-copy also when it is over, and never that it was not', () => {
    const ahead = { ...copy, mode: 'PostCopy' as const, progress: undefined };
    for (const standing of [GRANTED, MOVED])
      expect(told(standing, { ...OVER, mode: 'PreCopy' }, { copy: ahead, hasGone: true }).mode).toBe('PostCopy');
    expect(told(MOVED, { ...OVER, mode: 'PostCopy' }, { copy, hasGone: true })).not.toHaveProperty('mode');
  });

  it('knows by its journal that the guest went ahead, where its agent has not seen the copy', () => {
    const early: MigrationState = { ...BEGUN, mode: 'PreCopy' };
    const granted: Standing = { ...GRANTED, isPostCopy: true };
    const moved: Standing = { ...ENDED, givenTo: runner('b'), isPostCopy: true };
    expect(told(granted, early).mode).toBe('PostCopy');
    expect(told(granted, early, { hasGone: true })).toEqual({ mode: 'PostCopy' });
    for (const state of [early, { ...OVER, mode: 'PreCopy' as const }])
      expect(told(moved, state)).toEqual({ mode: 'PostCopy' });
    expect(told(MOVED, early)).toEqual({});
  });

  it('says so beside the record that gives the guest away', () =>
    expect(told(MOVED, { ...BEGUN, mode: 'PreCopy' }, { copy: { ...copy, mode: 'PostCopy' } })).toEqual({
      mode: 'PostCopy',
    }));

  it('writes down what its target could not hear, once', () => {
    const undelivered = { kind: 'grant', attempt: ATTEMPT, isPostCopy: false } as const;
    const { sourceLetter } = told(GRANTED, BEGUN, { undelivered });
    expect(sourceLetter).toMatchObject({ kind: 'grant', epoch: 4, migrationUid: 'move' });
    expect(told(GRANTED, { ...BEGUN, ...(sourceLetter ? { sourceLetter } : {}) }, { undelivered })).not.toHaveProperty(
      'sourceLetter',
    );
  });
});
