import { describe, expect, it } from 'vitest';
import { changedLines, moveLines } from './move-view.ts';
import { type MoveNow, rowOf, type SideNow, verdictOf } from './verdict.ts';

/** How a move goes, by what both sides say. */

type Half = { phase?: string; reason?: string; message?: string } | undefined;

function side(half: Half, more: { record?: object; grantedAway?: boolean } = {}): SideNow {
  const { phase, reason, message } = half ?? {};
  const conditions = reason === undefined ? [] : [{ type: 'migrationFailed', status: 'True', reason, message }];
  return {
    migration: half && { metadata: {}, spec: {}, status: { phase, conditions } },
    guest: { metadata: {}, spec: {}, status: { nodeName: 'node-a', rightToRun: more.record } },
    machine: { metadata: {}, spec: {}, status: { rightToRun: { epoch: 1, grantedAway: more.grantedAway } } },
  } as unknown as SideNow;
}

const RECORD = { epoch: 2, holder: { node: 'node-b', nodeUID: 'b', podUID: 'b' } };
const AWAY = { ...RECORD, across: true };
const FAILED = { phase: 'Failed', reason: 'PeerFailed', message: 'the other one: no room' };
const FIRST = { phase: 'Failed', reason: 'TargetPodUnschedulable', message: 'no room' };
const away = { grantedAway: true };
const here = { record: RECORD };

describe('verdicts', () => {
  it.each<[string, SideNow, SideNow, object | undefined]>([
    ['neither is over', side({ phase: 'Running' }), side({ phase: 'Running' }), undefined],
    ['only the target has succeeded', side({ phase: 'Running' }), side({ phase: 'Succeeded' }, here), undefined],
    ['the source has not been halted yet', side({ phase: 'Succeeded' }), side({ phase: 'Succeeded' }, here), undefined],
    ['both have succeeded', side({ phase: 'Succeeded' }, away), side({ phase: 'Succeeded' }, here), { kind: 'moved' }],
    [
      'both have succeeded, and the guest has ended since',
      side({ phase: 'Succeeded' }, away),
      side({ phase: 'Succeeded' }),
      { kind: 'moved' },
    ],
    [
      'both have succeeded, and the machine that it was is deleted',
      { ...side({ phase: 'Succeeded' }), machine: undefined },
      side({ phase: 'Succeeded' }, here),
      { kind: 'moved' },
    ],
    ['it went, and the halves are gone', side(undefined, away), side(undefined, here), { kind: 'moved' }],
    [
      'only the source has succeeded, and nobody has come here',
      side({ phase: 'Succeeded' }, away),
      side(undefined),
      undefined,
    ],
    ['only the source has failed', side(FAILED), side({ phase: 'Running' }), undefined],
    ['only the target has failed', side({ phase: 'Running' }), side(FIRST), undefined],
    ['both have failed', side(FAILED), side(FIRST), { kind: 'failed', reason: FIRST.reason, why: 'no room' }],
    [
      'both were deleted',
      side(undefined),
      side(undefined),
      { kind: 'failed', reason: 'Cancelled', why: 'the migrations were deleted' },
    ],
    [
      'the source has called it off, and the target cannot be told',
      side(undefined, here),
      side({ phase: 'WaitingForSync' }),
      { kind: 'failed', reason: 'Cancelled', why: 'the migrations were deleted' },
    ],
    [
      'the source has called it off, and the target is being told',
      side(undefined, here),
      side({ phase: 'Scheduling' }),
      undefined,
    ],
    [
      'the source is over, and has promised the guest to somebody',
      side(FAILED, { record: { ...RECORD, successor: RECORD.holder } }),
      side({ phase: 'WaitingForSync' }),
      undefined,
    ],
    ['both are gone, and the target has the guest', side(undefined), side(undefined, here), undefined],
    ['both are gone, and the source has given it', side(undefined, away), side(undefined), undefined],
    [
      'what is left at the target is of a guest that once went away',
      side(FAILED),
      side(FIRST, { record: AWAY }),
      { kind: 'failed', reason: FIRST.reason, why: 'no room' },
    ],
  ])('%s', (_, source, target, verdict) => {
    const now: MoveNow = { source, target, hasBegun: true };
    expect(verdictOf(now)).toEqual(verdict);
  });
});

it('a half that waits is not alone before the other one was ever seen', () => {
  const now = { source: side(undefined, here), target: side({ phase: 'WaitingForSync' }), hasBegun: false };
  expect(verdictOf(now)).toBeUndefined();
});

it('a guest has come where its half was seen, though both are gone by now', () => {
  const last = [side({ phase: 'Succeeded' }).migration, side({ phase: 'Running' }).migration] as const;
  const now = { source: side({ phase: 'Succeeded' }, away), target: side(undefined), hasBegun: true, last };
  expect(verdictOf(now)).toEqual({ kind: 'moved' });
});

it('why it failed is known also where somebody else has removed what said so', () => {
  const last = [side(FAILED).migration, side(FIRST).migration] as const;
  const now = { source: side(undefined, here), target: side(undefined), hasBegun: true, last };
  expect(verdictOf(now)).toEqual({ kind: 'failed', reason: FIRST.reason, why: 'no room' });
});

describe('what is shown', () => {
  const from = rowOf('from', 'shop/web', side({ phase: 'Synchronizing' }));
  const to = rowOf('to', 'west/web', side(undefined));

  it('is a row for each side', () => {
    expect(moveLines([from, to], 80)).toEqual([
      '       VIRTUAL MACHINE   PHASE           NODE     PROGRESS',
      'from   shop/web          Synchronizing   node-a',
      'to     west/web          Gone            node-a',
    ]);
  });

  it('is what has changed, and on one line each', () => {
    const blocked = { ...from, trouble: 'nobody\nanswers' };
    expect(changedLines(undefined, [from])).toEqual(['from shop/web: Synchronizing on node-a']);
    expect(changedLines([from, to], [from, to])).toEqual([]);
    expect(changedLines([from, to], [{ ...from, progress: '7 %' }, to])).toEqual([]);
    expect(changedLines([from, to], [blocked, to])).toEqual(['from shop/web: Synchronizing on node-a, nobody answers']);
  });
});
