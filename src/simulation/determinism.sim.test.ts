import { describe, expect, it } from 'vitest';
import { sample } from '../../test/support/sample.ts';
import { planOf } from './plan.ts';
import { SCENARIOS } from './scenarios.ts';
import { simulate } from './simulation.ts';

/** Long enough for everything to happen, and short enough to happen four times. */
const HORIZON_MS = 4 * 60_000;
/** Several clusters take several times as long: how they come to rest is not waited for. */
const CLUSTERS_HORIZON_MS = 2 * 60_000;
/** How many kinds are run where not all are. */
const SCENARIOS_SAMPLED = 2;
/** On a busy machine. */
const TEST_MS_MAX = 300_000;

describe('a run', () => {
  it.each(sample(SCENARIOS, SCENARIOS_SAMPLED).map((scenario) => [scenario.name, scenario] as const))(
    'of %s gives the same trace to the byte, twice',
    async (_, scenario) => {
      const isSafetyOnly = scenario.clusters !== undefined;
      const horizonMs = isSafetyOnly ? CLUSTERS_HORIZON_MS : HORIZON_MS;
      const traceOf = async (seed: number): Promise<string> => {
        const lines: string[] = [];
        await simulate({ ...planOf(seed, scenario), horizonMs }, scenario, {
          isSafetyOnly,
          onLine: (line) => lines.push(line),
        });
        return lines.join('\n');
      };
      const [first, other] = [await traceOf(7), await traceOf(8)];
      expect(await traceOf(7)).toBe(first);
      expect(first).not.toBe(other);
      expect(first.length).toBeGreaterThan(10_000);
    },
    TEST_MS_MAX,
  );
});
