import { cachesCatchUp } from '../invariants/caches-catch-up.ts';
import { deletionsEnd } from '../invariants/deletions-end.ts';
import { garbageSettles } from '../invariants/garbage-settles.ts';
import { onlyGarbageCollected } from '../invariants/only-garbage-collected.ts';
import type { Scenario } from '../scenario.ts';

/** Objects that own each other, and namespaces, created and deleted in every way. */
export const garbageScenario: Scenario = {
  name: 'garbage',
  description: 'owners, dependents and namespaces',
  nodes: 1,
  horizonMs: 20 * 60_000,
  actionsMax: 80,
  actions: {
    createFamily: 4,
    deleteMember: 6,
    adoptMember: 2,
    createNamespace: 2,
    fillNamespace: 3,
    deleteNamespace: 2,
    releaseThings: 1,
  },
  lastActions: ['releaseThings'],
  invariants: [onlyGarbageCollected, deletionsEnd, garbageSettles, cachesCatchUp],
};
