import { describe, expect, it } from 'vitest';
import { planOf } from './plan.ts';
import { SCENARIOS } from './scenarios.ts';
import { simulate } from './simulation.ts';

/** Seeds that once found a bug in the product, each with what went wrong. */
const REGRESSIONS = [
  {
    name: 'a scheduler that takes over while its watch lags gives away no room that the other has given away',
    scenario: 'pods',
    seed: 824,
    horizonMs: 780_000,
  },
  {
    name: 'a guest that has just moved is counted at the node where it is, though its status does not say so yet',
    scenario: 'migrations',
    seed: 324,
    horizonMs: 250_000,
  },
  {
    name: 'a migration whose target has taken the guest, and cannot write so into the record yet, has not failed',
    scenario: 'migrations',
    seed: 1083,
    horizonMs: 270_000,
  },
];

const REGRESSION_MS_MAX = 300_000;

describe('seeds that found a bug', () => {
  it.each(REGRESSIONS)(
    '$scenario $seed: $name',
    async ({ scenario: wanted, seed, horizonMs }) => {
      const scenario = SCENARIOS.find(({ name }) => name === wanted);
      if (!scenario) throw new Error(`there is no scenario ${wanted}`);
      const { failure } = await simulate({ ...planOf(seed, scenario), horizonMs }, scenario, { isSafetyOnly: true });
      expect(failure).toBeUndefined();
    },
    REGRESSION_MS_MAX,
  );
});
