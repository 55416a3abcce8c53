import { describe, expect, it } from 'vitest';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { Message } from '../../migration/right-to-run/plan.ts';
import { isSameLetter, letterOf, messageOf } from './letters.ts';

const runner = (name: string) => ({ node: name, nodeUID: `uid-${name}`, podUID: `pod-${name}` });
const ATTEMPT: Attempt = {
  epoch: 3,
  source: runner('a'),
  target: runner('b'),
  sourceMigrationUID: 'm',
  targetMigrationUID: 'm',
};

describe('a letter', () => {
  it.each<Message>([
    { kind: 'grant', attempt: ATTEMPT, isPostCopy: false },
    { kind: 'grant', attempt: ATTEMPT, isPostCopy: true },
    { kind: 'grant', attempt: ATTEMPT, isPostCopy: false, isPaused: true },
    { kind: 'refused', attempt: ATTEMPT },
  ])('says what was meant: $kind', (message) => expect(messageOf(letterOf(message), ATTEMPT)).toEqual(message));

  it.each<[string, Partial<Attempt>]>([
    ['another epoch', { epoch: 4 }],
    ['another migration', { sourceMigrationUID: 'n' }],
    ['another source', { source: runner('c') }],
    ['another target', { target: runner('c') }],
  ])('of %s says nothing', (_, other) => {
    const letter = letterOf({ kind: 'grant', attempt: { ...ATTEMPT, ...other } });
    expect(messageOf(letter, ATTEMPT)).toBeUndefined();
    expect(isSameLetter(letter, letterOf({ kind: 'grant', attempt: ATTEMPT }))).toBe(false);
  });

  it('that is not there says nothing', () => expect(messageOf(undefined, ATTEMPT)).toBeUndefined());
});
