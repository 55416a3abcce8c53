import { boundOnce } from '../invariants/bound-once.ts';
import { cachesCatchUp } from '../invariants/caches-catch-up.ts';
import { deletionsEnd } from '../invariants/deletions-end.ts';
import { epochsGrow } from '../invariants/epochs-grow.ts';
import { goneGuestsEnd } from '../invariants/gone-guests-end.ts';
import { linesSaidOnce } from '../invariants/lines-said-once.ts';
import { machinesSettle } from '../invariants/machines-settle.ts';
import { nodesSettle } from '../invariants/nodes-settle.ts';
import { runsOnce } from '../invariants/runs-once.ts';
import type { Scenario } from '../scenario.ts';

/** Virtual machines on nodes that die, with the real controllers and the real agents, on models of machines. */
export const machinesScenario: Scenario = {
  name: 'machines',
  description: 'virtual machines, their guests and agents (the machines are models)',
  nodes: 3,
  hasMachines: true,
  horizonMs: 20 * 60_000,
  actionsMax: 60,
  actions: {
    createMachine: 6,
    createGuest: 2,
    setRunStrategy: 3,
    deleteMachine: 2,
    deleteGuest: 2,
    deleteLauncher: 1,
    cordon: 0.3,
  },
  lastActions: ['uncordonAll'],
  invariants: [
    runsOnce,
    goneGuestsEnd,
    linesSaidOnce,
    epochsGrow,
    boundOnce,
    deletionsEnd,
    machinesSettle,
    nodesSettle,
    cachesCatchUp,
  ],
};
