import { isMarked } from '../../api/kubevirt/evacuation.ts';
import { type EvictionOutcome, evictionOutcomeOf, evictionStrategyOf } from '../../api/kubevirt/eviction-strategy.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { RECEIVER_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import type { KubeObject } from '../../api/meta.ts';
import { unreachable } from '../../api/unreachable.ts';
import { dispositionOf } from '../../migration/disruption/disposition.ts';
import type { DisruptedPod } from '../../migration/disruption/disruption.ts';

/** What is answered to whoever wants to evict the launcher pod of a guest; pure. The sentences are those of KubeVirt. */

/** What is looked at in a pod. */
export interface EvictedPod extends KubeObject {
  spec?: DisruptedPod['spec'];
  status?: { readonly phase?: string } & DisruptedPod['status'];
}

export type EvictionAnswer =
  | { readonly kind: 'allow' }
  /** `isBlocked` where nothing will come of asking again, until somebody does something about the guest. */
  | { readonly kind: 'deny'; readonly message: string; readonly isBlocked: boolean }
  /** The guest has to be marked, and the pod stays for now. */
  | { readonly kind: 'mark' }
  /** The guest is marked: who asks again is answered by its budget. */
  | { readonly kind: 'leave-to-budget' };

const ALLOW: EvictionAnswer = { kind: 'allow' };

/** Whether a pod has ended: its guest is elsewhere, or nowhere. */
export function isFinished({ status }: EvictedPod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

/** The answer for a pod that is the guest's and has not ended. */
export function answerTo(
  pod: EvictedPod,
  guest: VirtualMachineInstance,
  configuration: KubeVirtConfiguration,
): EvictionAnswer {
  const { phase } = guest.status ?? {};
  if (guest.metadata.deletionTimestamp !== undefined || phase === 'Succeeded' || phase === 'Failed') return ALLOW;
  if (isLeft(pod, guest)) return ALLOW;
  if (isElsewhere(pod, guest)) return deny('Eviction request for target Pod');
  const outcome = outcomeOf(guest, configuration);
  // Nothing in the eviction API would keep its grace period from being cut short.
  const isEnding = pod.metadata.deletionTimestamp !== undefined;
  if (isEnding && (outcome !== 'Evict' || isHeld(pod, guest, configuration)))
    return deny(
      `Eviction request for terminating Pod of VMI ${quoted(guest)}, which is moved or shut down in its own time`,
    );
  return answerOf(outcome, guest);
}

/** Whether a guest that could not begin to move is held all the same: it is on its way. */
function isHeld(pod: EvictedPod, guest: VirtualMachineInstance, configuration: KubeVirtConfiguration): boolean {
  return dispositionOf({ pod, guest, configuration, node: undefined }) !== 'stop';
}

function answerOf(outcome: EvictionOutcome, guest: VirtualMachineInstance): EvictionAnswer {
  switch (outcome) {
    case 'Evict':
      return ALLOW;
    case 'Refuse':
      return {
        ...deny(`VMI ${guest.metadata.name} is configured with an eviction strategy but is not live-migratable`),
        isBlocked: true,
      };
    case 'Migrate':
    case 'External':
      if (!guest.status?.nodeName) return deny(`VMI ${quoted(guest)} is not on a node yet`);
      return isMarked(guest) ? { kind: 'leave-to-budget' } : { kind: 'mark' };
    default:
      return unreachable(outcome);
  }
}

/** Who is on no node yet can be moved from none. */
function outcomeOf(guest: VirtualMachineInstance, configuration: KubeVirtConfiguration): EvictionOutcome {
  const outcome = evictionOutcomeOf(guest, configuration);
  if (outcome !== 'Migrate' || guest.status?.nodeName) return outcome;
  return evictionStrategyOf(guest, configuration) === 'LiveMigrateIfPossible' ? 'Evict' : outcome;
}

/** Whether the guest has moved out of the pod, and needs nothing of it any more: in post-copy it may for long. */
function isLeft({ metadata }: EvictedPod, { status }: VirtualMachineInstance): boolean {
  const { rightToRun, migrationState } = status ?? {};
  const isSource = migrationState?.completed === true && migrationState.sourcePod === metadata.name;
  return isSource && rightToRun?.holder !== undefined && rightToRun.holder.podUID !== metadata.uid;
}

/** Whether the guest is not executed in this pod: it is to move there, or has just done so. */
function isElsewhere({ metadata, spec }: EvictedPod, guest: VirtualMachineInstance): boolean {
  const { rightToRun, nodeName } = guest.status ?? {};
  // One that waits for its guest has no pods but those that it is to come to.
  if (guest.metadata.annotations?.[RECEIVER_ANNOTATION] === 'true' && !rightToRun) return true;
  if (rightToRun?.holder && rightToRun.holder.podUID !== metadata.uid) return true;
  return Boolean(nodeName) && spec?.nodeName !== nodeName;
}

function deny(message: string): Extract<EvictionAnswer, { kind: 'deny' }> {
  return { kind: 'deny', message, isBlocked: false };
}

/** A guest as KubeVirt names it in what the descheduler reads. */
export function quoted({ metadata }: VirtualMachineInstance): string {
  return JSON.stringify(`${metadata.namespace}/${metadata.name}`);
}
