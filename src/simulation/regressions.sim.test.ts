import { describe, expect, it } from 'vitest';
import { sample } from '../../test/support/sample.ts';
import { planOf } from './plan.ts';
import { SCENARIOS } from './scenarios.ts';
import { simulate } from './simulation.ts';

interface Regression {
  readonly name: string;
  readonly scenario: string;
  readonly seed: number;
  /** How long anything failed until it showed; absent where it shows only when all is well again. */
  readonly horizonMs?: number;
}

/** Seeds that once found a bug in the product, each with what went wrong. */
const REGRESSIONS: readonly Regression[] = [
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
  {
    name: 'a source hears how its target ended that went while they were cut off, though its own node is lost, too',
    scenario: 'clusters',
    seed: 7,
  },
  {
    name: 'a target is not kept for a source that is over, and has hung up before it heard how the target ended',
    scenario: 'clusters',
    seed: 14,
  },
  {
    name: 'a guest whose taker was lost before it wrote that it took over is not waited for for ever',
    scenario: 'evictions',
    seed: 2076,
  },
  {
    name: 'a migration of a guest that waits for its source, asked for as any other, does not wait for ever beside it',
    scenario: 'clusters',
    seed: 2_058_303_672_035,
  },
  {
    name: 'a guest that was lost ahead of its memory was taken, and its migration has failed all the same',
    scenario: 'migrations',
    seed: 417_788_460_041,
    horizonMs: 208_905,
  },
  {
    name: 'an eviction that was granted goes on, though a budget comes between that and the end of the pod',
    scenario: 'budgets',
    seed: 594_281_005_030,
    horizonMs: 128_000,
  },
  {
    name: 'whoever takes taints off nodes tries again where an agent writes at the same time, and guests that have to leave find room',
    scenario: 'evictions',
    seed: 77_001_702,
  },
  {
    name: 'a guest on its way to another object on the same machine is settled by that machine alone, which comes back for it',
    scenario: 'pairs',
    seed: 99_100_060,
  },
  {
    name: 'a source is not told that its end is known before that is on record, though its guest is in another migration there',
    scenario: 'clusters',
    seed: 77_001_785,
  },
];
/** How many of them are run where not all are: those that show at the end take ten seconds each. */
const REGRESSIONS_SAMPLED = 2;

const REGRESSION_MS_MAX = 300_000;

describe('seeds that found a bug', () => {
  it.each(sample(REGRESSIONS, REGRESSIONS_SAMPLED))(
    '$scenario $seed: $name',
    async ({ scenario: wanted, seed, horizonMs }) => {
      const scenario = SCENARIOS.find(({ name }) => name === wanted);
      if (!scenario) throw new Error(`there is no scenario ${wanted}`);
      const plan = planOf(seed, scenario);
      const isSafetyOnly = horizonMs !== undefined;
      const { failure } = await simulate({ ...plan, horizonMs: horizonMs ?? plan.horizonMs }, scenario, {
        isSafetyOnly,
      });
      expect(failure).toBeUndefined();
    },
    REGRESSION_MS_MAX,
  );
});
