import type { JsonObject } from '../../api/meta.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { podConditionPatch } from '../pod-condition.ts';

/** Which pods are garbage, and what is said to them before they go. */

const OUT_OF_SERVICE = 'node.kubernetes.io/out-of-service';

/** Whether a pod has ended by itself. */
export function isTerminated({ status }: Pod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

export function isTerminating({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** Whether a pod is going that no kubelet will ever see off. */
export function isUnscheduledAndTerminating(pod: Pod): boolean {
  return isTerminating(pod) && (pod.spec?.nodeName ?? '') === '';
}

/** Whether somebody has said that the node is down for good: what is going there may go at once. */
export function isOutOfService({ spec, status }: Node): boolean {
  const isReady = status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
  return !isReady && (spec?.taints?.some(({ key }) => key === OUT_OF_SERVICE) ?? false);
}

/** Whether all has been done for a pod to go: finalizers may hold it, and those are others' business. */
export function isAsGoodAsGone(pod: Pod): boolean {
  return isTerminated(pod) && isTerminating(pod) && pod.metadata.deletionGracePeriodSeconds === 0;
}

/** The order in which terminated pods go: evicted ones, which nobody waits for, then the oldest. */
export function isGoneBefore(a: Pod, b: Pod): number {
  const [isEvictedA, isEvictedB] = [isEvicted(a), isEvicted(b)];
  if (isEvictedA !== isEvictedB) return isEvictedA ? -1 : 1;
  const [ageA, ageB] = [a, b].map(({ metadata }) => metadata.creationTimestamp ?? '');
  if (ageA !== ageB) return (ageA ?? '') < (ageB ?? '') ? -1 : 1;
  return (a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1;
}

function isEvicted({ status }: Pod): boolean {
  return status?.phase === 'Failed' && status.reason === 'Evicted';
}

/** The patch that ends a pod which nobody else will end; undefined for one that has ended. */
export function ending(pod: Pod, reason: 'orphaned' | 'other', nowMs: number): JsonObject | undefined {
  if (isTerminated(pod)) return undefined;
  const { uid = '', resourceVersion = '', generation } = pod.metadata;
  const target = {
    type: 'DisruptionTarget',
    status: 'True',
    reason: 'DeletionByPodGC',
    message: 'PodGC: node no longer exists',
  } as const;
  const marked = reason === 'orphaned' ? podConditionPatch(pod, target, nowMs) : undefined;
  const status: JsonObject = { ...(marked?.['status'] as JsonObject | undefined), phase: 'Failed' };
  if (generation !== undefined) status.observedGeneration = generation;
  return { metadata: { uid, resourceVersion }, status };
}
