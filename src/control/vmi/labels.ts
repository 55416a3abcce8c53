import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { NODE_NAME_LABEL, TARGET_NODE_LABEL } from '../../api/kubevirt/well-known.ts';
import { isFinal, isHandedOver } from './phase.ts';

/**
 * The labels by which agents find their guests, as far as they have to change; null for what goes. A guest is first given
 * to the node that its pod got, then belongs to whoever may execute it. That another node is about to take it over is
 * for whoever moves it to say; here that is only taken back, once nobody moves it any more.
 */
export function labelChanges(guest: VirtualMachineInstance): { readonly [label: string]: string | null } {
  const { labels = {} } = guest.metadata;
  const node = ownNode(guest);
  const isNodeNew = node !== undefined && labels[NODE_NAME_LABEL] !== node;
  const isTargetOld = labels[TARGET_NODE_LABEL] !== undefined && !isMigrating(guest);
  return {
    ...(isNodeNew ? { [NODE_NAME_LABEL]: node } : {}),
    ...(isTargetOld ? { [TARGET_NODE_LABEL]: null } : {}),
  };
}

function ownNode(guest: VirtualMachineInstance): string | undefined {
  const { phase, nodeName, rightToRun } = guest.status ?? {};
  // Nodes of other clusters may have the names of ours.
  if (isAway(rightToRun)) return undefined;
  if (rightToRun?.holder) return rightToRun.holder.node;
  return phase === 'Scheduled' && !isHandedOver(guest) && nodeName ? nodeName : undefined;
}

/** The successor, if there is one, has to hear of the guest until it is none any more. */
function isMigrating(guest: VirtualMachineInstance): boolean {
  const { migrationState, rightToRun } = guest.status ?? {};
  if (rightToRun?.successor) return true;
  return !isFinal(guest) && migrationState !== undefined && migrationState.completed !== true;
}
