import { describe, expect, it } from 'vitest';
import { IS_FULL } from '../../../test/support/sample.ts';
import { explore } from './model-checker.fixture.ts';
import { ALL, EXPLORATION_MS, expectNothingFound, more } from './model-table.fixture.ts';
import { firstFarWorld } from './model-world.fixture.ts';
import { BUGS_ACROSS, TWICE } from './planted-bugs.fixture.ts';

type Row = [mode: 'pre-copy' | 'post-copy' | 'paused', isOneCluster: boolean, faultsMax: number, readonly string[]];

const FAR_AND_GONE: readonly Row[] = [
  ['post-copy', false, 2, ALL],
  ['paused', false, 2, ALL],
  ['pre-copy', true, 1, ALL],
  ['post-copy', true, 1, ALL],
  ['pre-copy', true, 2, ['node']],
  ['pre-copy', false, 2, ['restore', 'death']],
  ['pre-copy', false, 2, ['restore', 'loss', 'cancel']],
  ['post-copy', false, 2, ['restore', 'death']],
];

describe('the right to run between two objects, whatever happens', () => {
  it.each<Row>([
    ['pre-copy', false, 1 + more, ALL],
    ['pre-copy', false, 1, ['restore']],
    ...(IS_FULL ? FAR_AND_GONE : []),
  ])(
    '%s, of one cluster: %s, faults: at most %i of %s',
    (mode, isOneCluster, faultsMax, faults) => expectNothingFound(firstFarWorld(mode, faultsMax, faults, isOneCluster)),
    EXPLORATION_MS,
  );
  it.each(BUGS_ACROSS.filter(({ isLong }) => IS_FULL || !isLong))(
    'finds whoever $name',
    ({ mode, faultsMax, faults, isOneCluster, protocol, finding }) => {
      const report = explore(firstFarWorld(mode, faultsMax, faults, isOneCluster), protocol, finding === TWICE);
      expect(report.finding?.problem).toMatch(finding);
    },
    EXPLORATION_MS,
  );
});
