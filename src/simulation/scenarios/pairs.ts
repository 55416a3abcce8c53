import { bootsRunOnce } from '../invariants/boots-run-once.ts';
import { cachesCatchUp } from '../invariants/caches-catch-up.ts';
import { crossingsHaveHalves } from '../invariants/crossings-have-halves.ts';
import { deletionsEnd } from '../invariants/deletions-end.ts';
import { halvesAgree } from '../invariants/halves-agree.ts';
import { keysMeanOne } from '../invariants/keys-mean-one.ts';
import { migrationsSettle } from '../invariants/migrations-settle.ts';
import { noGuestLost } from '../invariants/no-guest-lost.ts';
import { nodesSettle } from '../invariants/nodes-settle.ts';
import { oneSideHolds } from '../invariants/one-side-holds.ts';
import { runsOnce } from '../invariants/runs-once.ts';
import type { Scenario } from '../scenario.ts';

/** Guests that go to other objects, over halves that somebody has to carry, between nodes that fail. */
export const pairsScenario: Scenario = {
  name: 'pairs',
  description: 'guests that go to other objects, by two halves of a migration (the machines are models)',
  nodes: 4,
  hasMachines: true,
  hasMoves: true,
  hasPairs: true,
  horizonMs: 15 * 60_000,
  actionsMax: 60,
  actions: {
    createSender: 8,
    createReceiver: 8,
    pair: 14,
    migrate: 1,
    deleteMigration: 3,
    deleteMachine: 0.5,
    deleteGuest: 0.5,
    deleteLauncher: 0.5,
    cordon: 0.3,
  },
  lastActions: ['uncordonAll', 'createSender', 'createReceiver', 'pair'],
  invariants: [runsOnce, migrationsSettle, deletionsEnd, nodesSettle, cachesCatchUp],
  across: [bootsRunOnce, keysMeanOne, crossingsHaveHalves, noGuestLost, halvesAgree, oneSideHolds],
};
