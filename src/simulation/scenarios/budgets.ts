import { budgetsSettle } from '../invariants/budgets-settle.ts';
import { nodesSettle } from '../invariants/nodes-settle.ts';
import { cachesCatchUp } from '../invariants/caches-catch-up.ts';
import { deletionsEnd } from '../invariants/deletions-end.ts';
import { evictionsKeepBudgets } from '../invariants/evictions-keep-budgets.ts';
import { podsSettle } from '../invariants/pods-settle.ts';
import type { Scenario } from '../scenario.ts';

/** Small pods under budgets that are evicted all the time, by whoever drains nodes. */
export const budgetsScenario: Scenario = {
  name: 'budgets',
  description: 'evictions and budgets',
  nodes: 3,
  horizonMs: 20 * 60_000,
  actionsMax: 120,
  actions: { createSmallPods: 4, evictPod: 8, drain: 2, setBudget: 2, cordon: 0.5, deletePod: 0.3 },
  invariants: [evictionsKeepBudgets, deletionsEnd, podsSettle, nodesSettle, budgetsSettle, cachesCatchUp],
};
