import { type EvictionOutcome, evictionOutcomeOf } from '../api/kubevirt/eviction-strategy.ts';
import type { KubeVirt, KubeVirtConfiguration } from '../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import type { KubeObject } from '../api/meta.ts';
import { controllerOf } from '../kube/owner.ts';
import type { Pod, PodCondition } from '../migration/fit/objects.ts';
import { CONFIGURATIONS, VMIS } from './buckets.ts';
import type { State } from './observer.ts';

/** What invariants of evictions look at, as it is in the store. */

/** The cluster's configuration. */
export function configurationIn(state: State): KubeVirtConfiguration {
  for (const each of state.list(CONFIGURATIONS)) return (each as KubeVirt).spec.configuration ?? {};
  return {};
}

/** The guest that a pod is of; undefined for other pods, and where it is gone. */
export function guestOfPod(pod: KubeObject, state: State): VirtualMachineInstance | undefined {
  const owner = controllerOf(pod);
  if (owner?.kind !== 'VirtualMachineInstance') return undefined;
  const guest = state.get(VMIS, `${pod.metadata.namespace}/${owner.name}`) as VirtualMachineInstance | undefined;
  return guest?.metadata.uid === owner.uid ? guest : undefined;
}

/** What becomes of a guest that has to leave. */
export function outcomeIn(state: State, guest: VirtualMachineInstance): EvictionOutcome {
  return evictionOutcomeOf(guest, configurationIn(state));
}

/** Why a scheduler or a taint manager wants a pod gone; undefined where neither does. */
export function disruptionReason(pod: Pod): string | undefined {
  const isTold = ({ type, status, reason }: PodCondition): boolean =>
    type === 'DisruptionTarget' &&
    status === 'True' &&
    (reason === 'PreemptionByScheduler' || reason === 'DeletionByTaintManager');
  return pod.status?.conditions?.find(isTold)?.reason;
}

/** Whether an object is being deleted, or gone, that was not before. */
export function isLeaving(object: KubeObject | undefined, previous: KubeObject | undefined): boolean {
  const isThere = (each: KubeObject | undefined): boolean => each !== undefined && !each.metadata.deletionTimestamp;
  return isThere(previous) && !isThere(object);
}
