import { describe, expect, it } from 'vitest';
import { type Attempt, epochAcross, epochOfTake, isSameAttempt } from './attempt.ts';

const ATTEMPT: Attempt = {
  epoch: 4,
  source: { node: 'a', nodeUID: 'node-a', podUID: 'pod-a' },
  target: { node: 'a', nodeUID: 'node-b', podUID: 'pod-b' },
  sourceMigrationUID: 'source',
  targetMigrationUID: 'target',
};

describe('an attempt across two records', () => {
  it.each([
    [4, undefined, 5],
    [4, 2, 5],
    [4, 9, 10],
  ])('of epoch %s begins at a target that remembers %s with %s', (epoch, remembered, begun) => {
    expect(epochAcross(epoch, remembered)).toBe(begun);
    expect(epochOfTake({ ...ATTEMPT, across: { targetEpoch: begun } })).toBe(begun);
  });

  it('is the same whatever its target remembers, and never one within a record', () => {
    const [one, other] = [5, 10].map((targetEpoch): Attempt => ({ ...ATTEMPT, across: { targetEpoch } }));
    expect(one && other && isSameAttempt(one, other)).toBe(true);
    expect(one && isSameAttempt(one, ATTEMPT)).toBe(false);
    expect(epochOfTake(ATTEMPT)).toBe(5);
  });
});
