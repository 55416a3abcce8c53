import type { Resource } from '../../kube/resource.ts';
import type { DisruptionBudget } from '../../migration/eviction/disruption-budget.ts';

/** Disruption budgets, of guests and of others. */
export const disruptionBudgets: Resource<DisruptionBudget> = {
  group: 'policy',
  version: 'v1',
  plural: 'poddisruptionbudgets',
  kind: 'PodDisruptionBudget',
  namespaced: true,
};
