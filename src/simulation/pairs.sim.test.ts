import { expect, it } from 'vitest';
import { planOf } from './plan.ts';
import { pairsScenario } from './scenarios/pairs.ts';
import { simulate } from './simulation.ts';

/** Some seeds: in the second one guests arrive, and others are brought back. */
it.each([1, 3])('guests that go to other objects break no invariant (seed %i)', async (seed) => {
  const { failure, lines } = await simulate(planOf(seed, pairsScenario), pairsScenario);
  if (failure) expect.unreachable([failure.invariant, failure.message, ...lines.slice(-40)].join('\n'));
});
