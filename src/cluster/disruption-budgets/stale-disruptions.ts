import { formatTime, type JsonObject } from '../../api/meta.ts';
import type { Pod, PodCondition } from '../../migration/fit/objects.ts';

/**
 * Pods that were told that they would be disrupted, and were not: who said so has failed or thought better of it, and
 * nobody else takes it back.
 */

/** How long a pod may be about to be disrupted before that is taken back. */
export const STALE_AFTER_MS = 2 * 60_000;

/** How long until the pod's DisruptionTarget is stale; undefined where it has none that could become so. */
export function staleInMs(pod: Pod, nowMs: number): number | undefined {
  const { metadata, status } = pod;
  if (metadata.deletionTimestamp !== undefined) return undefined;
  // A finished pod may have been ended for that very reason, and a kubelet may take its time to end one.
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return undefined;
  const condition = targetOf(pod);
  if (condition?.status !== 'True' || condition.reason === 'TerminationByKubelet') return undefined;
  const sinceMs = Date.parse(condition.lastTransitionTime ?? '') || 0;
  return Math.max(0, sinceMs + STALE_AFTER_MS - nowMs);
}

/** The patch of a pod's status that takes the condition back, on this very version of it. */
export function clearing(pod: Pod, nowMs: number): JsonObject {
  const { uid = '', resourceVersion = '', generation } = pod.metadata;
  const condition = {
    type: 'DisruptionTarget',
    status: 'False',
    reason: null,
    message: null,
    lastTransitionTime: formatTime(nowMs),
    ...(generation === undefined ? {} : { observedGeneration: generation }),
  };
  return { metadata: { uid, resourceVersion }, status: { conditions: [condition] } };
}

function targetOf({ status }: Pod): PodCondition | undefined {
  return status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
}
