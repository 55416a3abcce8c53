import { describe, it } from 'vitest';
import { IS_FULL } from '../../../test/support/sample.ts';
import type { StartsOn } from './model-images.fixture.ts';
import { ALL, EXPLORATION_MS, expectNothingFound, more } from './model-table.fixture.ts';
import { firstWorld, type World } from './model-world.fixture.ts';

type Row = [mode: World['mode'], startsOn: StartsOn, faultsMax: number, faults: readonly string[]];

const LEFT_AND_GONE: readonly Row[] = [
  ['post-copy', 'the recorded', 1, ALL],
  ['pre-copy', 'first', 2, ['crash', 'cancel', 'death']],
  ['pre-copy', 'the recorded', 2, ['restore', 'crash']],
];

describe('the images of a volume that goes to another claim, whatever happens', () => {
  it.each<Row>([
    ['pre-copy', 'first', 1, ALL],
    ['pre-copy', 'the recorded', 1 + more, ALL],
    ...(IS_FULL ? LEFT_AND_GONE : []),
  ])(
    '%s, started cold on %s image, faults: at most %i of %s',
    (mode, startsOn, faultsMax, faults) => expectNothingFound(firstWorld(mode, faultsMax, faults, startsOn)),
    EXPLORATION_MS,
  );
});
