import { bootsRunOnce } from '../invariants/boots-run-once.ts';
import { cachesCatchUp } from '../invariants/caches-catch-up.ts';
import { crossingsHaveHalves } from '../invariants/crossings-have-halves.ts';
import { deletionsEnd } from '../invariants/deletions-end.ts';
import { epochsGrow } from '../invariants/epochs-grow.ts';
import { halvesAgree } from '../invariants/halves-agree.ts';
import { keysMeanOne } from '../invariants/keys-mean-one.ts';
import { migrationsSettle } from '../invariants/migrations-settle.ts';
import { noGuestLost } from '../invariants/no-guest-lost.ts';
import { nodesSettle } from '../invariants/nodes-settle.ts';
import { oneSideHolds } from '../invariants/one-side-holds.ts';
import { runsOnce } from '../invariants/runs-once.ts';
import { trustOutlastsMoves } from '../invariants/trust-outlasts-moves.ts';
import type { Scenario } from '../scenario.ts';

/** Guests that go to other clusters, and on to a third, and back, while any of them, and what lies between them, fails. */
export const clustersScenario: Scenario = {
  name: 'clusters',
  description:
    'guests that go between two or three clusters, whose nodes have the same names (the machines are models)',
  nodes: 2,
  clusters: [2, 2, 3],
  hasMachines: true,
  hasMoves: true,
  hasPairs: true,
  horizonMs: 12 * 60_000,
  actionsMax: 50,
  actions: {
    createTraveller: 6,
    moveAway: 14,
    pairAgain: 4,
    completePair: 3,
    cancelPair: 4,
    reuseKey: 1,
    revokeTrust: 0.7,
    trustAll: 2,
    renewNamespace: 1,
    migrate: 0.5,
    deleteMigration: 1,
    deleteMachine: 0.5,
    deleteGuest: 0.5,
    deleteLauncher: 0.5,
    easeMoves: 1,
  },
  lastActions: ['createTraveller', 'moveAway', 'completePair'],
  invariants: [runsOnce, epochsGrow, migrationsSettle, deletionsEnd, nodesSettle, cachesCatchUp, trustOutlastsMoves],
  across: [bootsRunOnce, keysMeanOne, crossingsHaveHalves, noGuestLost, halvesAgree, oneSideHolds],
};
