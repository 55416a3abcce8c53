import { describe, expect, it } from 'vitest';
import { IS_FULL, SEED } from '../../test/support/sample.ts';
import { excerptOf } from './plan-excerpt.ts';
import { SCENARIOS } from './scenarios.ts';
import { swarm, type SwarmResult } from './swarm.ts';
import type { Verdicts } from './verdicts.ts';

/** Each run of the tests looks at some seeds; GODWIT_TEST_SEED chooses others, and GODWIT_TEST_FULL=1 looks at many. */
const firstSeed = 1000 * SEED;
const SEEDS = IS_FULL ? 600 : 18;
/**
 * On a busy machine fewer seeds have to do. `npm test` spends two minutes on seeds at most: twenty-five seconds are for this
 * swarm; planted bugs, determinism, the seeds of old bugs and the command line take 50 s together on two quiet cores. A full
 * run spends five minutes here.
 */
const SWARM_MS_MAX = IS_FULL ? 300_000 : 25_000;
const TEST_MS_MAX = IS_FULL ? 3_600_000 : 300_000;

/** In so many runs of a scenario guests get where they are to go; in a few they may all be in bad luck. */
const RUNS_WITH_MOVES = 20;

/** Where guests move, they did: a swarm in which nothing moves shows nothing of moves. On a busy machine there may be too few runs to tell. */
function expectMoves(verdicts: SwarmResult['verdicts']): void {
  const moving = SCENARIOS.filter(({ hasMoves }) => hasMoves === true).map(({ name }) => verdicts.get(name) ?? []);
  const succeeded = (runs: readonly Verdicts[]): number => runs.reduce((sum, each) => sum + each.succeeded, 0);
  for (const runs of moving) if (runs.length >= RUNS_WITH_MOVES) expect(succeeded(runs)).toBeGreaterThan(0);
  if (moving.every((runs) => runs.length > 1)) expect(succeeded(moving.flat())).toBeGreaterThan(0);
}

describe('a swarm', () => {
  it(
    'breaks no invariant, and guests move in it',
    async () => {
      const startMs = performance.now();
      const isOver = (): boolean => performance.now() - startMs > SWARM_MS_MAX;
      const { finding, verdicts } = await swarm({
        scenarios: SCENARIOS,
        firstSeed,
        seeds: SEEDS,
        shrinkRunsMax: 40,
        isOver,
      });
      if (!finding) return expectMoves(verdicts);
      const { scenario, plan, small, outcome } = finding;
      const command = `godwit simulate --scenario ${scenario.name} --seed ${plan.seed} --only '${excerptOf(small, plan)}'`;
      expect.unreachable([outcome.failure?.message, ...outcome.lines.slice(-40), command].join('\n'));
    },
    TEST_MS_MAX,
  );
});
