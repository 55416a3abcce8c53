import { formatTime, type JsonObject } from '../api/meta.ts';
import type { Pod } from '../migration/fit/objects.ts';

/** What a condition of a pod is to say; what is absent stays as it is. */
export interface PodConditionChange {
  readonly type: string;
  readonly status: 'True' | 'False';
  readonly reason?: string;
  readonly message?: string;
}

/**
 * The strategic patch of a pod's status that sets a condition, for this very version of the pod; undefined where the
 * pod says so already. As upstream has it, the time of the last transition moves only with the status.
 */
export function podConditionPatch(pod: Pod, change: PodConditionChange, nowMs: number): JsonObject | undefined {
  const old = pod.status?.conditions?.find(({ type }) => type === change.type);
  const { reason = old?.reason, message = old?.message } = change;
  if (old?.status === change.status && old.reason === reason && old.message === message) return undefined;
  const { uid = '', resourceVersion = '', generation } = pod.metadata;
  const condition: JsonObject = { ...change };
  if (old?.status !== change.status) condition.lastTransitionTime = formatTime(nowMs);
  if (generation !== undefined) condition.observedGeneration = generation;
  return { metadata: { uid, resourceVersion }, status: { conditions: [condition] } };
}
