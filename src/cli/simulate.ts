import type { Clock } from '../env/ports.ts';
import { BUILT_IN_CHECKS } from '../simulation/invariant.ts';
import { excerpt, BadExcerpt, excerptOf } from '../simulation/plan-excerpt.ts';
import { planOf } from '../simulation/plan.ts';
import { PLANTED_BUGS } from '../simulation/planted-bugs.ts';
import { invariantNamesOf, type Scenario } from '../simulation/scenario.ts';
import { SCENARIOS } from '../simulation/scenarios.ts';
import { simulate as run } from '../simulation/simulation.ts';
import { type Finding, type Progress, shrunk, swarm } from '../simulation/swarm.ts';
import { UserError } from './failure.ts';

/** `godwit simulate`: whole clusters in virtual time, under faults, from seeds. */

export interface SimulateOptions {
  readonly seeds?: number;
  readonly seed?: number;
  readonly scenario?: string;
  /** What is left of a seed's plan, as a failure prints it. */
  readonly only?: string;
  /** Prints every line of the trace of a single seed. */
  readonly trace?: boolean;
  readonly plant?: string;
}

export interface SimulateHost {
  readonly clock: Clock;
  readonly print: (line: string) => void;
  /** Overwrites the last line of a terminal; absent where there is none. */
  readonly progress?: ((line: string) => void) | undefined;
  /** A seed that nobody chose. */
  readonly randomSeed: () => number;
  /** How many runs may be spent on making a failure smaller; 150 unless told. */
  readonly shrinkRunsMax?: number;
}

const SEEDS_DEFAULT = 100;
const SHRINK_RUNS_MAX = 150;
const LINES_SHOWN_MAX = 60;

/** Runs seeds, and throws UserError when one fails, after having told all about it. */
export async function simulate(options: SimulateOptions, host: SimulateHost): Promise<void> {
  const chosen = choose(options);
  if (options.only !== undefined || options.trace === true) return single(options, chosen, host);
  const { seed, seeds = seed === undefined ? SEEDS_DEFAULT : 1 } = options;
  const firstSeed = seed ?? host.randomSeed();
  const startMs = host.clock.now();
  const onProgress = (progress: Progress): void => host.progress?.(lineOf(progress, seeds));
  const shrinkRunsMax = host.shrinkRunsMax ?? SHRINK_RUNS_MAX;
  const result = await swarm({ ...chosen, firstSeed, seeds, shrinkRunsMax, onProgress });
  host.progress?.('');
  if (result.finding) throw tell(result.finding, options, host);
  const hours = (result.elapsedMs / 3_600_000).toFixed(1);
  const seconds = Math.max(1, Math.round((host.clock.now() - startMs) / 1000));
  const which = seeds === 1 ? `Seed ${firstSeed}` : `${seeds} seeds from ${firstSeed} on`;
  host.print(`${which}: no invariant broke in ${hours} simulated hours (${seconds} s).`);
  if (seeds === 1) host.print(`Trace: ${result.digest}`);
}

type Chosen = { readonly scenarios: readonly Scenario[]; readonly bug: (typeof PLANTED_BUGS)[number] | undefined };

/** A planted bug shows only where its invariant is asked: elsewhere a run would pass for having found nothing. */
function choose({ scenario: name, plant }: SimulateOptions): Chosen {
  const bug = plant === undefined ? undefined : byName(PLANTED_BUGS, plant, 'planted bug');
  const wanted = name ?? bug?.scenario;
  if (wanted === undefined) return { scenarios: SCENARIOS, bug };
  const scenario = byName(SCENARIOS, wanted, 'scenario');
  const asked: readonly string[] = [...BUILT_IN_CHECKS, ...invariantNamesOf(scenario)];
  if (bug && !asked.includes(bug.invariant))
    throw new UserError(
      `${bug.name} breaks ${bug.invariant}, which ${scenario.name} does not ask; try ${bug.scenario}`,
      {
        exitCode: 2,
      },
    );
  return { scenarios: [scenario], bug };
}

/** One seed, or a part of its plan, with its whole trace where that is asked for. */
async function single(options: SimulateOptions, { scenarios, bug }: Chosen, host: SimulateHost): Promise<void> {
  const { seed, only, trace } = options;
  if (seed === undefined) throw new UserError('--only and --trace are about one seed: give --seed', { exitCode: 2 });
  const scenario = scenarios[seed % scenarios.length];
  if (!scenario) throw new Error('there is no scenario');
  const drawn = planOf(seed, scenario);
  const whole = bug?.provoke?.(drawn) ?? drawn;
  const plan = only === undefined ? whole : parsed(() => excerpt(whole, only));
  const outcome = await run(plan, scenario, { bug, onLine: trace === true ? host.print : undefined });
  if (outcome.failure && only === undefined) {
    const onProgress = (progress: Progress): void => host.progress?.(lineOf(progress, 1));
    const shrinkRunsMax = host.shrinkRunsMax ?? SHRINK_RUNS_MAX;
    const finding = await shrunk({ plan, scenario, outcome }, { bug, shrinkRunsMax, onProgress });
    host.progress?.('');
    throw tell(finding, options, host);
  }
  if (outcome.failure)
    throw tell({ plan: whole, scenario, failure: outcome.failure, small: plan, outcome }, options, host);
  host.print(`Seed ${seed}: no invariant broke.`);
  host.print(`Trace: ${outcome.digest}`);
}

function parsed<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof BadExcerpt)) throw error;
    throw new UserError(`--only cannot be understood: ${error.message}`, { exitCode: 2, cause: error });
  }
}

function byName<T extends { readonly name: string }>(items: readonly T[], name: string, what: string): T {
  const item = items.find((each) => each.name === name);
  if (item) return item;
  const names = items.map((each) => each.name).join(', ');
  throw new UserError(`there is no ${what} ${JSON.stringify(name)}; there are ${names}`, { exitCode: 2 });
}

function lineOf({ what, runs, seed, scenario, elapsedMs }: Progress, seeds: number): string {
  if (what === 'shrinking') return `seed ${seed} of ${scenario} fails; making it smaller (run ${runs + 1})`;
  return `${runs}/${seeds} seeds, ${(elapsedMs / 3_600_000).toFixed(1)} simulated hours; now ${seed} of ${scenario}`;
}

/** Prints all that is known of a failure; answers what to end with. */
function tell(finding: Finding, options: SimulateOptions, { print }: SimulateHost): UserError {
  const { plan, scenario, failure, small, outcome } = finding;
  const shown = outcome.failure ?? failure;
  const command = `godwit simulate --scenario ${scenario.name} --seed ${plan.seed}${options.plant === undefined ? '' : ` --plant ${options.plant}`}`;
  print(`Seed ${plan.seed} of ${scenario.name} breaks ${shown.invariant} after ${(shown.atMs / 1000).toFixed(3)} s:`);
  print(indented(shown.message));
  print(`The shortest run found that does so has ${sizeOf(small)} (of ${sizeOf(plan)}).`);
  if (small.faults.length > 0) print(`Faults: ${small.faults.join(', ')}`);
  print(`Its last lines, of trace ${outcome.digest}:`);
  for (const line of outcome.lines.slice(-LINES_SHOWN_MAX)) print(line);
  print(`To replay it: ${command} --only '${excerptOf(small, plan)}'`);
  print(`The whole:    ${command}`);
  return new UserError(`seed ${plan.seed} of ${scenario.name} breaks ${shown.invariant}`);
}

function sizeOf({ faults, strikes, actions, horizonMs }: Finding['plan']): string {
  const seconds = Math.round(horizonMs / 1000);
  return `${faults.length} faults, ${strikes.length} strikes, ${actions.length} actions, ${seconds} s`;
}

function indented(text: string): string {
  return text.replace(/^/gm, '  ');
}
