import type { Node, Pod, Taint, Toleration } from '../../migration/fit/objects.ts';
import { tolerates } from '../../migration/fit/tolerations.ts';

/**
 * When a pod has to leave a node because of the node's taints. Upstream counts a toleration's seconds from the moment
 * in which its process first sees pod and taint together, and starts anew when that process does. Here they count from
 * when the taint was put on the node, or the pod on it, where the objects tell: a restart then delays nothing. All the
 * same a deadline that passed while nobody was there to see it does not strike at once: nodes may come back at the same
 * time as we do, and need a moment to say so.
 */

/** When this process first saw a taint and a pod together, in milliseconds since the epoch. */
export type SeenAtMs = (taint: Taint) => number;

/** How long a pod may stay at least from the moment in which we see it; less where it tolerates less. It is the time in which nodes that are alive are heard of. */
const SETTLE_MS = 50_000;
/** Times on the wire are cut to whole seconds: what they tell of may have been up to a second later. */
const PRECISION_MS = 1000;

/** The taints that make pods leave. */
export function evictingTaints(node: Node | undefined): readonly Taint[] {
  return node?.spec?.taints?.filter(({ effect }) => effect === 'NoExecute') ?? [];
}

/** When the pod has to leave: -Infinity for at once, since something is not tolerated at all; Infinity for never. */
export function leavesAtMs(pod: Pod, taints: readonly Taint[], seenAtMs: SeenAtMs): number {
  let soonestMs = Number.POSITIVE_INFINITY;
  for (const taint of taints) {
    const forMs = toleratedForMs(taint, pod.spec?.tolerations ?? []);
    if (forMs === undefined) return Number.NEGATIVE_INFINITY;
    const endMs = forMs === Number.POSITIVE_INFINITY ? forMs : endOfToleration(pod, taint, forMs, seenAtMs(taint));
    soonestMs = Math.min(soonestMs, endMs);
  }
  return soonestMs;
}

/** By the first toleration that covers the taint; undefined where none does. */
function toleratedForMs(taint: Taint, tolerations: readonly Toleration[]): number | undefined {
  const toleration = tolerations.find((each) => tolerates(each, taint));
  if (!toleration) return undefined;
  const { tolerationSeconds } = toleration;
  return tolerationSeconds === undefined ? Number.POSITIVE_INFINITY : Math.max(0, tolerationSeconds) * 1000;
}

function endOfToleration(pod: Pod, taint: Taint, forMs: number, seenMs: number): number {
  const taintedMs = timeOf(taint.timeAdded) ?? seenMs;
  const togetherMs = Math.max(taintedMs, boundAtMs(pod) ?? seenMs);
  // A time to come is another machine's: what we see has happened.
  return Math.max(Math.min(togetherMs, seenMs) + forMs, seenMs + Math.min(forMs, SETTLE_MS));
}

/** When the pod got its node. Those that were made with one have no condition that says so. */
function boundAtMs({ metadata, status }: Pod): number | undefined {
  const scheduled = status?.conditions?.find(({ type, status: value }) => type === 'PodScheduled' && value === 'True');
  return timeOf(scheduled?.lastTransitionTime) ?? timeOf(metadata.creationTimestamp);
}

function timeOf(text: string | null | undefined): number | undefined {
  const timeMs = Date.parse(text ?? '');
  return Number.isNaN(timeMs) ? undefined : timeMs + PRECISION_MS;
}
