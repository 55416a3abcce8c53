import { formatTime, type KubeObject } from '../../api/meta.ts';

/** A pod condition as the wire has it; `lastProbeTime` is a null that clients expect to see. */
export interface PodCondition {
  type: string;
  status: string;
  reason?: string;
  message?: string;
  lastProbeTime?: string | null;
  lastTransitionTime?: string | null;
}

/** The parts of a pod that its subresources look at. */
export interface Pod extends KubeObject {
  spec?: { nodeName?: string; schedulingGates?: unknown[]; [field: string]: unknown };
  status?: { phase?: string; conditions?: PodCondition[]; [field: string]: unknown };
}

/** Sets a condition in place. The transition time moves only when the status does, as upstream. */
export function setPodCondition(
  pod: Pod,
  condition: Pick<PodCondition, 'type' | 'status' | 'reason' | 'message'>,
  nowMs: number,
): void {
  pod.status ??= {};
  const conditions = (pod.status.conditions ??= []);
  const index = conditions.findIndex((each) => each.type === condition.type);
  const old = conditions[index];
  const lastTransitionTime =
    old?.status === condition.status && old.lastTransitionTime ? old.lastTransitionTime : formatTime(nowMs);
  const updated: PodCondition = { ...condition, lastProbeTime: null, lastTransitionTime };
  if (old) conditions[index] = updated;
  else conditions.push(updated);
}

/** Whether the pod says that it serves. */
export function isPodReady(pod: Pod): boolean {
  return pod.status?.conditions?.some((each) => each.type === 'Ready' && each.status === 'True') ?? false;
}
