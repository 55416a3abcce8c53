import { cachesCatchUp } from '../invariants/caches-catch-up.ts';
import { deletionsEnd } from '../invariants/deletions-end.ts';
import { quotasHold } from '../invariants/quotas-hold.ts';
import { quotasSettle } from '../invariants/quotas-settle.ts';
import type { Scenario } from '../scenario.ts';

/** Things that come and go at the edge of what quotas allow. */
export const quotasScenario: Scenario = {
  name: 'quotas',
  description: 'quotas, and what they count',
  nodes: 1,
  horizonMs: 20 * 60_000,
  actionsMax: 120,
  actions: { setQuota: 1, deleteQuota: 0.2, createThings: 6, deleteThings: 3, createSmallPods: 4, deletePod: 4 },
  invariants: [quotasHold, deletionsEnd, quotasSettle, cachesCatchUp],
};
