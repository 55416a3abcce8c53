import { type Plan, planOf } from './plan.ts';
import type { PlantedBug } from './planted-bug.ts';
import type { Scenario } from './scenario.ts';
import { shrink } from './shrink.ts';
import { type Failure, type Outcome, simulate } from './simulation.ts';
import type { Verdicts } from './verdicts.ts';

/** Runs many seeds until one fails, and makes that failure small. */

export interface SwarmOptions {
  /** Taken in turn. */
  readonly scenarios: readonly Scenario[];
  readonly firstSeed: number;
  readonly seeds: number;
  readonly bug?: PlantedBug | undefined;
  /** How many runs may be spent on making a failure smaller. */
  readonly shrinkRunsMax: number;
  /** Asked before each run; true ends the swarm. */
  readonly isOver?: () => boolean;
  readonly onProgress?: (progress: Progress) => void;
}

export interface Progress {
  readonly what: 'running' | 'shrinking';
  readonly runs: number;
  readonly seed: number;
  readonly scenario: string;
  /** Simulated so far, all together. */
  readonly elapsedMs: number;
}

export interface SwarmResult {
  readonly runs: number;
  readonly elapsedMs: number;
  /** Of the last run. */
  readonly digest: string;
  /** How migrations ended in each run of a scenario, by its name. */
  readonly verdicts: ReadonlyMap<string, readonly Verdicts[]>;
  readonly finding: Finding | undefined;
}

/** A plan that fails. */
export interface Finding {
  readonly plan: Plan;
  readonly scenario: Scenario;
  readonly failure: Failure;
  /** The smallest plan found that fails in the same way, and how it went. */
  readonly small: Plan;
  readonly outcome: Outcome;
}

export async function swarm(options: SwarmOptions): Promise<SwarmResult> {
  const { scenarios, firstSeed, seeds, bug, onProgress, isOver } = options;
  let [runs, elapsedMs, digest] = [0, 0, ''];
  const verdicts = new Map<string, readonly Verdicts[]>();
  for (; runs < seeds; runs++) {
    if (isOver?.()) break;
    const seed = firstSeed + runs;
    const scenario = scenarios[seed % scenarios.length];
    if (!scenario) throw new Error('there is no scenario');
    onProgress?.({ what: 'running', runs, seed, scenario: scenario.name, elapsedMs });
    const drawn = planOf(seed, scenario);
    const plan = bug?.provoke?.(drawn) ?? drawn;
    const outcome = await simulate(plan, scenario, { bug });
    elapsedMs += outcome.elapsedMs;
    digest = outcome.digest;
    verdicts.set(scenario.name, [...(verdicts.get(scenario.name) ?? []), outcome.verdicts]);
    if (!outcome.failure) continue;
    const finding = await shrunk({ plan, scenario, outcome }, options);
    return { runs: runs + 1, elapsedMs, digest, verdicts, finding };
  }
  return { runs, elapsedMs, digest, verdicts, finding: undefined };
}

interface Failed {
  readonly plan: Plan;
  readonly scenario: Scenario;
  readonly outcome: Outcome;
}

/** The finding of a plan that failed. */
export async function shrunk(
  { plan, scenario, outcome }: Failed,
  options: Pick<SwarmOptions, 'bug' | 'shrinkRunsMax' | 'onProgress'>,
): Promise<Finding> {
  const { failure } = outcome;
  if (!failure) throw new Error('the plan has not failed');
  const { bug, shrinkRunsMax: runsMax, onProgress } = options;
  let [runs, best] = [0, outcome];
  const small = await shrink(plan, failure.atMs, {
    runsMax,
    fails: async (candidate) => {
      onProgress?.({ what: 'shrinking', runs: runs++, seed: plan.seed, scenario: scenario.name, elapsedMs: 0 });
      // What broke while anything may fail is not looked for afterwards.
      const isSafetyOnly = failure.atMs < plan.horizonMs;
      const tried = await simulate(candidate, scenario, { bug, isSafetyOnly });
      if (tried.failure?.invariant !== failure.invariant) return undefined;
      best = tried;
      return tried.failure.atMs;
    },
  });
  return { plan, scenario, failure, small, outcome: best };
}
