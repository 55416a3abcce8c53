import type { NodeState } from '../node-state.ts';
import type { PodInfo } from '../pod-info.ts';
import { stretched, stretchedReversed } from '../score-range.ts';
import { tolerates } from '../tolerations.ts';

/** Scores by what pod and node say that they would rather. */

/** The more weight of preferred node affinity a node matches, the better. */
export function preferredAffinityScores(pod: PodInfo, nodes: readonly NodeState[]): readonly number[] | undefined {
  if (pod.preferredNodes.length === 0) return undefined;
  return stretched(
    nodes.map(({ info }) =>
      pod.preferredNodes.reduce((sum, { matches, weight }) => sum + (matches(info) ? weight : 0), 0),
    ),
  );
}

/** The fewer taints ask the pod to stay away without forbidding it, the better. */
export function preferredTaintScores(pod: PodInfo, nodes: readonly NodeState[]): readonly number[] | undefined {
  const counts = nodes.map(({ info }) => unwelcomingTaints(pod, info.taints));
  return counts.every((count) => count === 0) ? undefined : stretchedReversed(counts);
}

function unwelcomingTaints(pod: PodInfo, taints: NodeState['info']['taints']): number {
  return taints.filter(
    (taint) => taint.effect === 'PreferNoSchedule' && !pod.tolerations.some((each) => tolerates(each, taint)),
  ).length;
}
