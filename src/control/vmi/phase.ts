import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstancePhase,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { LauncherPod } from '../resources.ts';
import { RECEIVER_ANNOTATION } from '../../api/kubevirt/well-known.ts';

/**
 * The phases of a guest up to the moment in which an agent takes it over. That moment is the record of the right to run:
 * from then on only who may execute the guest knows how it is, whatever has become of its pod. Calling it Failed because
 * a pod is gone could start a second copy of a guest that still runs on a node that nobody hears of.
 */

/** Whether the guest's life is over. */
export function isFinal({ status }: VirtualMachineInstance): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** Whether an agent has taken the guest over: its phase is no longer ours. */
export function isHandedOver({ status }: VirtualMachineInstance): boolean {
  return status?.rightToRun !== undefined || status?.phase === 'Running' || status?.phase === 'Unknown';
}

/** Whether a pod has ended, or is about to. */
export function isGoingDown({ metadata, status }: LauncherPod): boolean {
  return metadata.deletionTimestamp !== undefined || isOver(status?.phase);
}

function isOver(phase: string | undefined): boolean {
  return phase === 'Succeeded' || phase === 'Failed';
}

/** Whether a pod has a node, and all of its containers run there. */
export function isPodReady({ spec, status }: LauncherPod): boolean {
  if (!spec?.nodeName || status?.phase !== 'Running') return false;
  return (status.containerStatuses ?? []).every(({ ready, state }) => ready === true && !state?.terminated);
}

/**
 * The phase that the guest should be in; the one that it is in where that is not ours to say. `podCount` is how many pods
 * it has, whatever they are for.
 */
export function nextPhase(
  guest: VirtualMachineInstance,
  pod: LauncherPod | undefined,
  podCount = 0,
): VirtualMachineInstancePhase {
  const phase = guest.status?.phase ?? '';
  if (isFinal(guest)) return phase;
  // Whoever executes it now does so for another object: this one's part is over.
  if (isAway(guest.status?.rightToRun)) return 'Succeeded';
  if (isHandedOver(guest)) return phase;
  const isGoing = guest.metadata.deletionTimestamp !== undefined;
  switch (phase) {
    case '':
    case 'Pending':
    case 'WaitingForSync':
      // Whoever is about to receive it may yet have taken it: that is settled before anything is said.
      if (isReceiver(guest)) return isGoing && podCount === 0 ? 'Failed' : 'WaitingForSync';
      if (pod) return 'Scheduling';
      return isGoing ? 'Failed' : 'Pending';
    case 'Scheduling':
      // Somebody else deleted the pod, or it ended before it began.
      if (!pod || isGoingDown(pod)) return 'Failed';
      return isPodReady(pod) && !isGoing ? 'Scheduled' : 'Scheduling';
    case 'Scheduled':
      return !pod || isGoingDown(pod) ? 'Failed' : 'Scheduled';
    case 'Running':
    case 'Succeeded':
    case 'Failed':
    case 'Unknown':
      return phase;
    default:
      return unreachable(phase);
  }
}

/** Whether the guest comes from elsewhere: its pod is the business of the migration that brings it. */
export function isReceiver({ metadata }: VirtualMachineInstance): boolean {
  return metadata.annotations?.[RECEIVER_ANNOTATION] === 'true';
}

/** Whether the guest is to have a launcher pod that it has not. */
export function needsPod(guest: VirtualMachineInstance, pod: LauncherPod | undefined): boolean {
  const phase = guest.status?.phase ?? '';
  const isFresh = phase === '' || phase === 'Pending';
  return (
    isFresh && !pod && guest.metadata.deletionTimestamp === undefined && !isReceiver(guest) && !isHandedOver(guest)
  );
}

/**
 * Whether nobody executes the guest, nor will: it never began, it ended and its agent says so, the right was seized, or it
 * is executed for another object.
 */
export function isForgettable(guest: VirtualMachineInstance, ownPodCount: number): boolean {
  const record = guest.status?.rightToRun;
  return isFinal(guest) && (record?.holder === undefined || isAway(record)) && ownPodCount === 0;
}

/** Whether the guest has come that its object waited for: it is one like any other from then on. */
export function hasArrived(guest: VirtualMachineInstance): boolean {
  return isReceiver(guest) && guest.status?.rightToRun !== undefined;
}
