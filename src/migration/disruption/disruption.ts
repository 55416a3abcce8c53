import { DISRUPTION_TARGET, disruptionEntries } from '../../api/disruption-target.ts';
import type { FeatureGate } from '../../api/kubevirt/feature-gates.ts';
import type { ObjectMeta } from '../../api/meta.ts';
import type { Node, PodCondition, Toleration } from '../fit/objects.ts';
import { isDrivenAway, isTainted } from './driven-away.ts';

/**
 * Whether a pod that is being deleted was preempted or tainted away. Schedulers and taint managers tell a pod why, then
 * delete it as anybody does, so that it takes both: a deletion, and a reason that was given shortly before. One that was
 * given long before is left from something that never came about, and whoever deletes the pod then means just that.
 */

/** What is looked at in a launcher pod. */
export interface DisruptedPod {
  readonly metadata: ObjectMeta;
  readonly spec?: {
    readonly nodeName?: string;
    readonly terminationGracePeriodSeconds?: number;
    readonly tolerations?: readonly Toleration[];
  };
  readonly status?: { readonly conditions?: readonly PodCondition[] | undefined };
}

export type DisruptionCause = 'Preemption' | 'NoExecuteTaint';

const CAUSES: ReadonlyMap<string, DisruptionCause> = new Map([
  ['PreemptionByScheduler', 'Preemption'],
  ['DeletionByTaintManager', 'NoExecuteTaint'],
]);

/** The reason that the eviction API gives. */
const EVICTED = 'EvictionByEvictionAPI';

/** Which feature makes an eviction of it. */
export const DISRUPTION_GATES: Readonly<Record<DisruptionCause, FeatureGate>> = {
  Preemption: 'PreemptionEvictionLiveMigration',
  NoExecuteTaint: 'NoExecuteTaintEvictionLiveMigration',
};

/** A reason that was given so long before the deletion has nothing to do with it; Kubernetes takes such reasons back. */
const STALE_MS = 2 * 60_000;

/** A cluster may have several API servers, whose clocks differ, and times are told in whole seconds. */
const SKEW_MS = 2000;

/** The times of a pod that is being deleted: it says when its time is over, not when that was asked for. */
export function deletionOf({ metadata }: DisruptedPod): { askedMs: number; endMs: number } | undefined {
  const { deletionTimestamp, deletionGracePeriodSeconds = 0 } = metadata;
  if (deletionTimestamp === undefined) return undefined;
  const endMs = Date.parse(deletionTimestamp);
  return { askedMs: endMs - deletionGracePeriodSeconds * 1000, endMs };
}

/** Why a pod is being deleted, if not because somebody wants it gone. `node` is the pod's; where it is not known, it is believed. */
export function disruptionOf(pod: DisruptedPod, node: Node | undefined): DisruptionCause | undefined {
  const deletion = deletionOf(pod);
  const condition = pod.status?.conditions?.find(({ type }) => type === DISRUPTION_TARGET);
  const cause = condition?.status === 'True' ? causeOf(pod, condition, node) : undefined;
  if (!deletion || !condition || !cause || !isFresh(pod, condition, deletion.askedMs)) return undefined;
  return cause === 'NoExecuteTaint' && !isDrivenAway(pod, node, deletion.askedMs) ? undefined : cause;
}

/**
 * What the condition stands for. An eviction by the API puts its own reason in the place of the one that was given before,
 * and signs nothing: whoever has signed was there first, and by the node it is told who that was.
 */
function causeOf(
  pod: DisruptedPod,
  { reason = '' }: PodCondition,
  node: Node | undefined,
): DisruptionCause | undefined {
  if (reason !== EVICTED || disruptionEntries(pod.metadata).length === 0) return CAUSES.get(reason);
  return isTainted(pod, node) ? 'NoExecuteTaint' : 'Preemption';
}

/**
 * Whether the reason was given shortly before the deletion, and not after it. It was given no later than its writer last
 * wrote, by the server's clock, and no earlier than the condition became true, by the writer's. Where that says too little
 * it is believed: that costs time, never a guest.
 */
function isFresh(pod: DisruptedPod, { lastTransitionTime }: PodCondition, askedMs: number): boolean {
  const trueSinceMs = timeOf(lastTransitionTime);
  const writtenMs = Math.min(...disruptionEntries(pod.metadata).map(({ time }) => timeOf(time)));
  const isStale = (Number.isFinite(writtenMs) ? writtenMs : trueSinceMs) < askedMs - STALE_MS;
  const givenMs = Math.min(writtenMs, trueSinceMs);
  // Where nobody says since when it is true, its last writer may have changed no more than the reason.
  const isLater = Number.isFinite(trueSinceMs) && givenMs > askedMs + SKEW_MS;
  return !isStale && !isLater;
}

/** Infinite where nothing is said. */
function timeOf(text: string | null | undefined): number {
  const timeMs = Date.parse(text ?? '');
  return Number.isNaN(timeMs) ? Number.POSITIVE_INFINITY : timeMs;
}

/** Whether somebody wants the pod gone sooner than pods of its kind go: neither schedulers nor taint managers do that. */
export function isHurried({ metadata, spec }: DisruptedPod): boolean {
  const promised = spec?.terminationGracePeriodSeconds;
  return promised !== undefined && metadata.deletionGracePeriodSeconds !== promised;
}
