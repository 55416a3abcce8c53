import { describe, expect, it } from 'vitest';
import { at, migrationIn } from './moves.fixture.ts';
import { hasBetterRival } from './rivals.ts';

describe('of several migrations of one guest', () => {
  const older = { uid: 'b', creationTimestamp: at(9000) };
  const newer = { uid: 'a', creationTimestamp: at(8000) };
  it.each([
    ['the older one', migrationIn('', older), migrationIn('', newer)],
    ['of the same age the one with the lower UID', migrationIn('', { ...older, uid: 'a' }), migrationIn('', older)],
    ['the one in line before one that nobody looked at', migrationIn('Pending', newer), migrationIn('', older)],
    ['the one with a pod before one in line', migrationIn('Scheduling', newer), migrationIn('Pending', older)],
  ])('%s goes on', (_what, winner, loser) => {
    expect(hasBetterRival(winner, [winner, loser])).toBe(false);
    expect(hasBetterRival(loser, [winner, loser])).toBe(true);
  });

  it('those that are over do not count', () => {
    expect(
      hasBetterRival(migrationIn('', newer), [migrationIn('Failed', older), migrationIn('Succeeded', older)]),
    ).toBe(false);
  });
});
