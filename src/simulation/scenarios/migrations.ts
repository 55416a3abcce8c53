import { boundOnce } from '../invariants/bound-once.ts';
import { cachesCatchUp } from '../invariants/caches-catch-up.ts';
import { cancelsEnd } from '../invariants/cancels-end.ts';
import { deletionsEnd } from '../invariants/deletions-end.ts';
import { epochsGrow } from '../invariants/epochs-grow.ts';
import { goneGuestsEnd } from '../invariants/gone-guests-end.ts';
import { linesSaidOnce } from '../invariants/lines-said-once.ts';
import { machinesSettle } from '../invariants/machines-settle.ts';
import { migrationsSettle } from '../invariants/migrations-settle.ts';
import { noGuestLost } from '../invariants/no-guest-lost.ts';
import { nodesSettle } from '../invariants/nodes-settle.ts';
import { oneMoveAtATime } from '../invariants/one-move-at-a-time.ts';
import { orderHolds } from '../invariants/order-holds.ts';
import { progressGrows } from '../invariants/progress-grows.ts';
import { runsOnce } from '../invariants/runs-once.ts';
import { slotsHold } from '../invariants/slots-hold.ts';
import { verdictsAgree } from '../invariants/verdicts-agree.ts';
import type { Scenario } from '../scenario.ts';

/** Guests that move all the time, between nodes that fail, over links that break, while people change their minds. */
export const migrationsScenario: Scenario = {
  name: 'migrations',
  description: 'guests that move, their slots and policies (the machines are models)',
  nodes: 4,
  hasMachines: true,
  hasMoves: true,
  horizonMs: 15 * 60_000,
  actionsMax: 60,
  actions: {
    createMovable: 8,
    migrate: 14,
    migrateTwice: 1.5,
    migrateAll: 1,
    deleteMigration: 3,
    setLimits: 1.5,
    resetLimits: 1,
    holdMoves: 0.3,
    slowMoves: 0.3,
    setPolicy: 3,
    deletePolicy: 0.5,
    setRunStrategy: 0.5,
    deleteMachine: 0.5,
    deleteGuest: 1,
    deleteLauncher: 0.5,
    cordon: 0.3,
  },
  lastActions: ['uncordonAll', 'slowMoves', 'migrateAll', 'deleteMigration', 'resetLimits'],
  invariants: [
    runsOnce,
    noGuestLost,
    goneGuestsEnd,
    linesSaidOnce,
    epochsGrow,
    boundOnce,
    slotsHold,
    orderHolds,
    oneMoveAtATime,
    verdictsAgree,
    progressGrows,
    cancelsEnd,
    deletionsEnd,
    migrationsSettle,
    machinesSettle,
    nodesSettle,
    cachesCatchUp,
  ],
};
