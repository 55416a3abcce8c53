import { planOf } from '../../src/simulation/plan.ts';
import { SCENARIOS } from '../../src/simulation/scenarios.ts';
import { simulate } from '../../src/simulation/simulation.ts';
import { report } from '../figures.ts';

const SEEDS = 6;

/** How much of a cluster's life is simulated per second of processor time: idle, and with all that scenarios do to it. */
export async function measureSimulation(): Promise<void> {
  for (const scenario of SCENARIOS) {
    await hoursPerSecond(scenario.name, 1, 1);
    const perSecond = await hoursPerSecond(scenario.name, 2, SEEDS);
    report('runtime', {
      figure: `simulated cluster under faults: ${scenario.description}`,
      value: perSecond,
      unit: 'hours per second',
    });
  }
  const [scenario] = SCENARIOS;
  if (!scenario) return;
  const before = process.cpuUsage();
  const plan = { ...planOf(1, scenario), faults: [], strikes: [], actions: [], horizonMs: 3_600_000 };
  const { elapsedMs } = await simulate(plan, scenario);
  const figure = `simulated cluster of ${scenario.nodes} nodes at rest`;
  report('runtime', { figure, value: perSecondSince(before, elapsedMs), unit: 'hours per second' });
}

async function hoursPerSecond(name: string, firstSeed: number, seeds: number): Promise<number> {
  const scenario = SCENARIOS.find((each) => each.name === name);
  if (!scenario) throw new Error(`there is no scenario ${name}`);
  const before = process.cpuUsage();
  let elapsedMs = 0;
  for (let seed = firstSeed; seed < firstSeed + seeds; seed++) {
    const outcome = await simulate(planOf(seed, scenario), scenario);
    if (outcome.failure) throw new Error(outcome.failure.message);
    elapsedMs += outcome.elapsedMs;
  }
  return perSecondSince(before, elapsedMs);
}

function perSecondSince(before: NodeJS.CpuUsage, elapsedMs: number): number {
  const { user, system } = process.cpuUsage(before);
  return elapsedMs / 3_600_000 / ((user + system) / 1e6);
}
