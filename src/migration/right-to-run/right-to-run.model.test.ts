import { describe, expect, it } from 'vitest';
import { explore } from './model-checker.fixture.ts';
import { ALL, EXPLORATION_MS, expectNothingFound, more } from './model-table.fixture.ts';
import { firstWorld, type World } from './model-world.fixture.ts';
import { PLANTED_BUGS, TWICE } from './planted-bugs.fixture.ts';

describe('the right to run, whatever happens', () => {
  it.each<[mode: World['mode'], faultsMax: number]>([
    ['pre-copy', 1 + more],
    ['post-copy', 1 + more],
    ['paused', 1 + more],
    ['start', 1 + more],
  ])(
    `%s, faults: at most %i of ${ALL.join()}`,
    (mode, faultsMax) => expectNothingFound(firstWorld(mode, faultsMax, ALL)),
    EXPLORATION_MS,
  );
});

describe('the checker finds whoever', () => {
  it.each(PLANTED_BUGS)('$name', ({ mode, faultsMax, faults, startsOn, protocol, finding }) => {
    const report = explore(firstWorld(mode, faultsMax, faults, startsOn), protocol, finding === TWICE);
    expect(report.finding?.problem).toMatch(finding);
  });
});
