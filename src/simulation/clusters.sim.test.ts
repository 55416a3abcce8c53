import { expect, it } from 'vitest';
import { planOf } from './plan.ts';
import { clustersScenario } from './scenarios/clusters.ts';
import { simulate } from './simulation.ts';

const TEST_MS_MAX = 300_000;

/** Seeds that once found a bug that shows only when all is well again, each with what went wrong. */
it.each([
  { seed: 7, name: 'a source hears that its target is gone, though the target went while they were cut off' },
])(
  'guests that go between clusters break no invariant (seed $seed: $name)',
  async ({ seed }) => {
    const { failure, lines } = await simulate(planOf(seed, clustersScenario), clustersScenario);
    if (failure) expect.unreachable([failure.invariant, failure.message, ...lines.slice(-40)].join('\n'));
  },
  TEST_MS_MAX,
);
