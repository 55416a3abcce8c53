import { DISRUPTION_TARGET } from '../../api/disruption-target.ts';
import { controllerOf } from '../../kube/owner.ts';
import type { LauncherPod } from '../resources.ts';

/** By which nodes pods are found that are in the way, and those that they are in the way of. */

/** Kubernetes' own classes, system-cluster-critical and system-node-critical, begin there. */
const CRITICAL_PRIORITY = 2_000_000_000;

/** The node of a launcher pod that is being deleted and was told why; none for all others. */
export function disruptedNodesOf(pod: LauncherPod): readonly string[] {
  const { metadata, spec, status } = pod;
  const isTold = status?.conditions?.some(({ type }) => type === DISRUPTION_TARGET) === true;
  if (!isTold || metadata.deletionTimestamp === undefined || !spec?.nodeName) return [];
  return controllerOf(pod)?.kind === 'VirtualMachineInstance' ? [spec.nodeName] : [];
}

/** The node that a pod waits for, on which others are making room for it. */
export function nominatedNodesOf({ spec, status }: LauncherPod): readonly string[] {
  return status?.nominatedNodeName && !spec?.nodeName ? [status.nominatedNodeName] : [];
}

/** Whether the cluster may not work without the pod. */
export function isCriticalPreemptor({ metadata, spec }: LauncherPod): boolean {
  return metadata.deletionTimestamp === undefined && (spec?.priority ?? 0) >= CRITICAL_PRIORITY;
}
