import { antiAffinityHolds } from '../invariants/anti-affinity-holds.ts';
import { boundOnce } from '../invariants/bound-once.ts';
import { budgetsSettle } from '../invariants/budgets-settle.ts';
import { nodesSettle } from '../invariants/nodes-settle.ts';
import { cachesCatchUp } from '../invariants/caches-catch-up.ts';
import { deletionsEnd } from '../invariants/deletions-end.ts';
import { durability } from '../invariants/durability.ts';
import { evictionsKeepBudgets } from '../invariants/evictions-keep-budgets.ts';
import { noOvercommit } from '../invariants/no-overcommit.ts';
import { podsSettle } from '../invariants/pods-settle.ts';
import { preemptionIsFair } from '../invariants/preemption-is-fair.ts';
import type { Scenario } from '../scenario.ts';

/** Pods of several priorities on too few nodes, which are cordoned, tainted, drained and lost. */
export const podsScenario: Scenario = {
  name: 'pods',
  description: 'pods, nodes, taints, budgets and preemption',
  nodes: 4,
  horizonMs: 30 * 60_000,
  actionsMax: 150,
  actions: {
    createPods: 6,
    deletePod: 3,
    forceDeletePod: 1,
    evictPod: 3,
    cordon: 1,
    taint: 1,
    deleteNode: 0.5,
    setBudget: 1,
    deleteBudget: 0.3,
  },
  invariants: [
    durability,
    boundOnce,
    noOvercommit,
    antiAffinityHolds,
    preemptionIsFair,
    evictionsKeepBudgets,
    deletionsEnd,
    podsSettle,
    nodesSettle,
    budgetsSettle,
    cachesCatchUp,
  ],
};
