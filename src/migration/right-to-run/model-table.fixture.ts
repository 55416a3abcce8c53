import { expect } from 'vitest';
import { IS_FULL } from '../../../test/support/sample.ts';
import { explore } from './model-checker.fixture.ts';
import type { World } from './model-world.fixture.ts';
import { PROTOCOL } from './planted-bugs.fixture.ts';

/**
 * Tables of what is explored: every order of everything that can happen to one guest and those who care for it, up to a number of
 * faults. GODWIT_TEST_FULL=1 allows one more in most of them, and adds those that take minutes.
 */
export const more = IS_FULL ? 1 : 0;
export const EXPLORATION_MS = 1_800_000;

/** All that can fail, but for a restore of the API's data: that has rows of its own. */
export const ALL = ['crash', 'death', 'node', 'answer', 'loss', 'repeat', 'cancel', 'link'];

export function expectNothingFound(first: World): void {
  const report = explore(first, PROTOCOL);
  expect(report.finding).toBeUndefined();
  expect(report.statesCount).toBeGreaterThan(300);
}
