import { causesOf, isMarked } from '../../api/kubevirt/evacuation.ts';
import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { isFinalMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { EVACUATION_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { keyOf } from '../../kube/resource.ts';
import { hasDrainTaint } from '../../migration/eviction/drain-taint.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { VMIS } from '../buckets.ts';
import type { Invariant, Unsettled } from '../invariant.ts';
import { guestKeyOf, guestsOf, migrationsOf } from '../moves.ts';
import type { State } from '../observer.ts';
import { configurationIn, outcomeIn } from '../protection.ts';

/**
 * When the cause is gone, so is the evacuation: in the end whom we are to move has left, or need not leave any more; whom
 * others are to move is marked for as long as the cause lasts; and no migration goes on that was made for a mark which is
 * gone.
 */
export function evacuationsSettle(): Invariant {
  return {
    name: 'evacuations-settle',
    unsettled: ({ state }) => [...guestsOf(state).flatMap((guest) => aboutGuest(guest, state)), ...aboutMoves(state)],
  };
}

function aboutGuest(guest: VirtualMachineInstance, state: State): Unsettled[] {
  const { phase, evacuationNodeName: marked, nodeName } = guest.status ?? {};
  if (!marked || phase !== 'Running' || guest.metadata.deletionTimestamp !== undefined) return [];
  const key = keyOf(guest);
  if (!isMarked(guest)) return [{ key, what: `is marked for ${marked}, and is on ${nodeName}` }];
  const outcome = outcomeIn(state, guest);
  if (outcome === 'Evict') return [{ key, what: 'is marked, and nobody keeps it' }];
  if (outcome === 'Migrate') return [{ key, what: `is marked, and has not left ${marked}` }];
  return causesOf(guest)
    .filter((cause) => isWithdrawn(cause, nodeOf(guest, state), state))
    .map(({ cause }) => ({ key, what: `has to leave ${marked} for ${cause}, which is over` }));
}

function isWithdrawn({ cause, untilUncordon }: EvacuationCause, node: Node | undefined, state: State): boolean {
  if (!node) return false;
  if (cause === 'DrainTaint') return !hasDrainTaint(node, configurationIn(state));
  return untilUncordon === true && node.spec?.unschedulable !== true;
}

function nodeOf(guest: VirtualMachineInstance, state: State): Node | undefined {
  return state.get('nodes', guest.status?.nodeName ?? '') as Node | undefined;
}

function aboutMoves(state: State): Unsettled[] {
  return migrationsOf(state).flatMap((migration) => {
    const node = migration.metadata.annotations?.[EVACUATION_ANNOTATION];
    if (node === undefined || isFinalMigration(migration)) return [];
    const guest = state.get(VMIS, guestKeyOf(migration)) as VirtualMachineInstance | undefined;
    const isWanted = guest?.status?.evacuationNodeName === node;
    return isWanted ? [] : [{ key: keyOf(migration), what: `empties ${node} of a guest that need not leave it` }];
  });
}
