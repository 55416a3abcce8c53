import { describe, it } from 'vitest';
import { IS_FULL } from '../../../test/support/sample.ts';
import { EXPLORATION_MS, expectNothingFound, more } from './model-table.fixture.ts';
import { firstWorld, type World } from './model-world.fixture.ts';

type Row = [mode: World['mode'], faultsMax: number, faults: readonly string[]];

/** Machines that are given up before they were heard: minutes. */
const RESTORED_AND_GONE: readonly Row[] = [
  ['pre-copy', 2, ['restore', 'death', 'answer', 'loss', 'cancel', 'link', 'crash']],
  ['post-copy', 2, ['restore', 'death', 'answer', 'loss', 'cancel', 'link', 'crash']],
  ['pre-copy', 2, ['restore', 'node']],
  ['start', 2, ['restore', 'node']],
];

describe("the right to run, where the API's data is restored", () => {
  it.each<Row>([
    ['pre-copy', 1 + more, ['restore', 'death']],
    ['pre-copy', 2, ['restore', 'crash']],
    ['paused', 1 + more, ['restore', 'death']],
    ['post-copy', 1 + more, ['restore', 'death']],
    ['start', 2, ['restore', 'crash']],
    ...(IS_FULL ? RESTORED_AND_GONE : []),
  ])(
    '%s, faults: at most %i of %s',
    (mode, faultsMax, faults) => expectNothingFound(firstWorld(mode, faultsMax, faults)),
    EXPLORATION_MS,
  );
});
