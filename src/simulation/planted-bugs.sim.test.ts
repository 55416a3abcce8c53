import { describe, expect, it } from 'vitest';
import { sample } from '../../test/support/sample.ts';
import { BUILT_IN_CHECKS } from './invariant.ts';
import { planOf } from './plan.ts';
import { PLANTED_BUGS } from './planted-bugs.ts';
import { invariantNamesOf } from './scenario.ts';
import { SCENARIOS } from './scenarios.ts';
import { simulate } from './simulation.ts';

/** Seeds take as long as they take: what counts is how many there are. */
const BUG_MS_MAX = 600_000;
/** How many of them are looked for where not all are. */
const BUGS_SAMPLED = 6;

/** A check that cannot fail is none: each invariant has to find the bug that was planted for it. */
describe('planted bugs', () => {
  it.each(sample(PLANTED_BUGS, BUGS_SAMPLED).map((bug) => [bug.name, bug.invariant, bug] as const))(
    '%s is found by %s',
    async (_, invariant, bug) => {
      const scenario = SCENARIOS.find(({ name }) => name === bug.scenario);
      if (!scenario) throw new Error(`there is no scenario ${bug.scenario}`);
      // What can only break while anything may fail need not be waited for afterwards.
      const isAsked = ({ name }: { readonly name: string }): boolean => name === invariant;
      const checked = scenario.invariants.map((make) => make()).find(isAsked);
      const across = (scenario.across ?? []).map((make) => make()).find(isAsked);
      const isLater = checked?.unsettled !== undefined || across?.unsettledAcross !== undefined;
      const isSafetyOnly = invariant !== 'everything-runs' && !isLater;
      for (let seed = bug.firstSeed; seed < bug.firstSeed + bug.seedsMax; seed++) {
        const plan = planOf(seed, scenario);
        const { failure } = await simulate(bug.provoke?.(plan) ?? plan, scenario, { bug, isSafetyOnly });
        if (failure) return expect(failure.invariant).toBe(invariant);
      }
      return expect.unreachable(`${bug.seedsMax} seeds did not find it`);
    },
    BUG_MS_MAX,
  );

  it('there is one for each invariant, and for what is asked of every run', () => {
    const names = SCENARIOS.flatMap(invariantNamesOf);
    expect(new Set(PLANTED_BUGS.map(({ invariant }) => invariant))).toEqual(new Set([...BUILT_IN_CHECKS, ...names]));
  });
});
