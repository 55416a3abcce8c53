import { expect, it } from 'vitest';
import { planOf } from './plan.ts';
import { PLANTED_PAIR_BUGS } from './planted-pair-bugs.ts';
import { clustersScenario as scenario } from './scenarios/clusters.ts';
import { simulate } from './simulation.ts';

const TEST_MS_MAX = 600_000;

/** Seeds that once found a bug that shows only when all is well again, each with what went wrong. */
it.each([{ seed: 7, name: 'a source hears that its target is gone, though the target went while they were cut off' }])(
  'guests that go between clusters break no invariant (seed $seed: $name)',
  async ({ seed }) => {
    const { failure, lines } = await simulate(planOf(seed, scenario), scenario);
    if (failure) expect.unreachable([failure.invariant, failure.message, ...lines.slice(-40)].join('\n'));
  },
  TEST_MS_MAX,
);

it.each(PLANTED_PAIR_BUGS.map((bug) => [bug.name, bug.invariant, bug] as const))(
  '%s is found by %s',
  async (_, invariant, bug) => {
    for (let seed = bug.firstSeed; seed < bug.firstSeed + bug.seedsMax; seed++) {
      const plan = planOf(seed, scenario);
      const { failure } = await simulate(bug.provoke?.(plan) ?? plan, scenario, { bug });
      if (failure) return expect(failure.invariant).toBe(invariant);
    }
    return expect.unreachable(`${bug.seedsMax} seeds did not find it`);
  },
  TEST_MS_MAX,
);
