import { describe, expect, it } from 'vitest';
import { explore } from './model-checker.fixture.ts';
import type { StartsOn } from './model-images.fixture.ts';
import { firstFarWorld, firstWorld, type World } from './model-world.fixture.ts';
import { BUGS_ACROSS, PLANTED_BUGS, PROTOCOL, TWICE } from './planted-bugs.fixture.ts';

/**
 * Every order of everything that can happen to one guest and those who care for it, up to a number of faults;
 * GODWIT_TEST_FULL=1 allows one more.
 */
const more = process.env['GODWIT_TEST_FULL'] === '1' ? 1 : 0;
const EXPLORATION_MS = 1_800_000;

const ALL = ['crash', 'death', 'node', 'answer', 'loss', 'repeat', 'cancel', 'link'];
const RESTORED_AND_GONE: readonly [World['mode'], number, readonly string[]][] = [
  ['pre-copy', 2, ['restore', 'death', 'answer', 'loss', 'cancel', 'link', 'crash']],
  ['post-copy', 2, ['restore', 'death', 'answer', 'loss', 'cancel', 'link', 'crash']],
  ['pre-copy', 2, ['restore', 'node']],
  ['start', 2, ['restore', 'node']],
];

const LEFT_AND_GONE: readonly [World['mode'], StartsOn, number, readonly string[]][] = [
  ['post-copy', 'the recorded', 1, ALL],
  ['pre-copy', 'first', 2, ['crash', 'cancel', 'death']],
  ['pre-copy', 'the recorded', 2, ['restore', 'crash']],
];

describe('the right to run, whatever happens', () => {
  it.each<[mode: World['mode'], faultsMax: number, faults: readonly string[]]>([
    ['pre-copy', 1 + more, ALL],
    ['post-copy', 1 + more, ALL],
    ['paused', 1 + more, ALL],
    ['start', more, ALL],
    ['pre-copy', 1 + more, ['restore', 'death']],
    ['pre-copy', 2, ['restore', 'crash']],
    ['paused', 1 + more, ['restore', 'death']],
    ['post-copy', 1 + more, ['restore', 'death']],
    ['start', 2, ['restore', 'crash']],
    // Machines that are given up before they were heard: minutes.
    ...(more === 1 ? RESTORED_AND_GONE : []),
  ])(
    '%s, faults: at most %i of %s',
    (mode, faultsMax, faults) => {
      const report = explore(firstWorld(mode, faultsMax, faults), PROTOCOL);
      expect(report.finding).toBeUndefined();
      expect(report.statesCount).toBeGreaterThan(300);
    },
    EXPLORATION_MS,
  );
});

describe('the images of a volume that goes to another claim, whatever happens', () => {
  it.each<[mode: World['mode'], startsOn: StartsOn, faultsMax: number, faults: readonly string[]]>([
    ['pre-copy', 'first', 1, ALL],
    ['pre-copy', 'the recorded', 1, ALL],
    ...(more === 1 ? LEFT_AND_GONE : []),
  ])(
    '%s, started cold on %s image, faults: at most %i of %s',
    (mode, startsOn, faultsMax, faults) => {
      const report = explore(firstWorld(mode, faultsMax, faults, startsOn), PROTOCOL);
      expect(report.finding).toBeUndefined();
      expect(report.statesCount).toBeGreaterThan(300);
    },
    EXPLORATION_MS,
  );
});

type FarWorld = [
  mode: 'pre-copy' | 'post-copy' | 'paused',
  isOneCluster: boolean,
  faultsMax: number,
  readonly string[],
];

const FAR_AND_GONE: readonly FarWorld[] = [
  ['post-copy', false, 1, ALL],
  ['paused', false, 1, ALL],
  ['pre-copy', true, 1, ALL],
  ['post-copy', true, 1, ALL],
  ['pre-copy', false, 2, ['crash', 'death', 'cancel']],
  ['pre-copy', false, 2, ['loss', 'repeat', 'answer', 'link']],
  ['pre-copy', false, 2, ['node']],
  ['pre-copy', true, 2, ['node']],
  ['pre-copy', false, 2, ['restore', 'death']],
  ['pre-copy', false, 2, ['restore', 'loss', 'cancel']],
  ['post-copy', false, 2, ['restore', 'death']],
];

describe('the right to run between two objects, whatever happens', () => {
  it.each<FarWorld>([
    ['pre-copy', false, 1, ALL],
    ['pre-copy', false, 1, ['restore']],
    ...(more === 1 ? FAR_AND_GONE : []),
  ])(
    '%s, of one cluster: %s, faults: at most %i of %s',
    (mode, isOneCluster, faultsMax, faults) => {
      const report = explore(firstFarWorld(mode, faultsMax, faults, isOneCluster), PROTOCOL);
      expect(report.finding).toBeUndefined();
      expect(report.statesCount).toBeGreaterThan(300);
    },
    EXPLORATION_MS,
  );
  it.each(BUGS_ACROSS.filter(({ isLong }) => more === 1 || !isLong))(
    'finds whoever $name',
    ({ mode, faultsMax, faults, isOneCluster, protocol, finding }) => {
      const report = explore(firstFarWorld(mode, faultsMax, faults, isOneCluster), protocol, finding === TWICE);
      expect(report.finding?.problem).toMatch(finding);
    },
    EXPLORATION_MS,
  );
});

describe('the checker finds whoever', () => {
  it.each(PLANTED_BUGS)('$name', ({ mode, faultsMax, faults, startsOn, protocol, finding }) => {
    const report = explore(firstWorld(mode, faultsMax, faults, startsOn), protocol, finding === TWICE);
    expect(report.finding?.problem).toMatch(finding);
  });
});
