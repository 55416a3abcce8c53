import { boundOnce } from '../invariants/bound-once.ts';
import { cachesCatchUp } from '../invariants/caches-catch-up.ts';
import { cancelsEnd } from '../invariants/cancels-end.ts';
import { deletionsEnd } from '../invariants/deletions-end.ts';
import { epochsGrow } from '../invariants/epochs-grow.ts';
import { evacuatedForCause } from '../invariants/evacuated-for-cause.ts';
import { evacuationsSettle } from '../invariants/evacuations-settle.ts';
import { goneGuestsEnd } from '../invariants/gone-guests-end.ts';
import { linesSaidOnce } from '../invariants/lines-said-once.ts';
import { machinesSettle } from '../invariants/machines-settle.ts';
import { migrationsSettle } from '../invariants/migrations-settle.ts';
import { noGuestLost } from '../invariants/no-guest-lost.ts';
import { nodesSettle } from '../invariants/nodes-settle.ts';
import { oneMoveAtATime } from '../invariants/one-move-at-a-time.ts';
import { orderHolds } from '../invariants/order-holds.ts';
import { protectedGuestsGoOn } from '../invariants/protected-guests-go-on.ts';
import { protectedPodsStay } from '../invariants/protected-pods-stay.ts';
import { runsOnce } from '../invariants/runs-once.ts';
import { slotsHold } from '../invariants/slots-hold.ts';
import { verdictsAgree } from '../invariants/verdicts-agree.ts';
import type { Scenario } from '../scenario.ts';

/** Guests that everybody drives off their nodes: they move, or stay, or go, as their owners want, while everything fails. */
export const evictionsScenario: Scenario = {
  name: 'evictions',
  description: 'drains, evictions, preemption and taints of guests (the machines are models)',
  nodes: 4,
  hasMachines: true,
  hasMoves: true,
  hasEvictions: true,
  horizonMs: 15 * 60_000,
  actionsMax: 60,
  actions: {
    createProtected: 10,
    drainNode: 4,
    evictLauncher: 5,
    deschedule: 2,
    preempt: 2,
    needRoom: 2,
    leaveRoom: 1.5,
    cancelLeaving: 2,
    drainTaint: 2,
    executeTaint: 2,
    cordon: 4,
    uncordonAll: 2,
    untaintAll: 2,
    migrate: 3,
    deleteMigration: 1.5,
    setLimits: 0.5,
    resetLimits: 0.5,
    holdMoves: 0.3,
    slowMoves: 0.3,
    deleteMachine: 0.5,
    deleteGuest: 0.5,
    deleteLauncher: 0.5,
  },
  lastActions: [
    'easeMoves',
    'leaveRoom',
    'uncordonAll',
    'untaintAll',
    // All wait, some of them until a certain time, and then go one after the other.
    'holdMoves',
    'evictLauncher',
    'preempt',
    'drainNode',
    'slowMoves',
    'uncordonAll',
    'resetLimits',
  ],
  invariants: [
    protectedPodsStay,
    protectedGuestsGoOn,
    evacuatedForCause,
    evacuationsSettle,
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
    cancelsEnd,
    deletionsEnd,
    migrationsSettle,
    machinesSettle,
    nodesSettle,
    cachesCatchUp,
  ],
};
