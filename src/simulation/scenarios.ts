import type { Scenario } from './scenario.ts';
import { budgetsScenario } from './scenarios/budgets.ts';
import { clustersScenario } from './scenarios/clusters.ts';
import { evictionsScenario } from './scenarios/evictions.ts';
import { garbageScenario } from './scenarios/garbage.ts';
import { machinesScenario } from './scenarios/machines.ts';
import { migrationsScenario } from './scenarios/migrations.ts';
import { pairsScenario } from './scenarios/pairs.ts';
import { podsScenario } from './scenarios/pods.ts';
import { quotasScenario } from './scenarios/quotas.ts';

/** All scenarios; a swarm takes them in turn. */
export const SCENARIOS: readonly Scenario[] = [
  podsScenario,
  budgetsScenario,
  garbageScenario,
  quotasScenario,
  machinesScenario,
  migrationsScenario,
  evictionsScenario,
  pairsScenario,
  clustersScenario,
];
