import type { ClusterState } from '../cluster-state.ts';
import { spreadsOf } from '../filters/topology-spread.ts';
import type { NodeState } from '../node-state.ts';
import type { PodInfo } from '../pod-info.ts';
import { SCORE_MAX } from '../score-range.ts';
import { labelOf } from '../topology-counts.ts';

/**
 * Scores by the constraints that are wanted but not required: the fewer of the counted pods are in a node's domain, the
 * better. Undefined where the pod has no such constraint.
 */
export function preferredSpreadScores(
  pod: PodInfo,
  nodes: readonly NodeState[],
  cluster: ClusterState,
): readonly number[] | undefined {
  const constraints = pod.spread.filter(({ isRequired }) => !isRequired);
  if (constraints.length === 0) return undefined;
  const spreads = spreadsOf(pod, constraints, cluster).map(({ constraint, counts }) => {
    const { topologyKey, skewMax } = constraint;
    const domains = new Set(nodes.flatMap(({ info }) => labelOf(info.labels, topologyKey) ?? []));
    // Domains that are many, as nodes are, differ by little each: they weigh more, as upstream.
    return { topologyKey, skewMax, counts, weight: Math.log(domains.size + 2) };
  });
  const raw = nodes.map(({ info }) => {
    let sum = 0;
    for (const { topologyKey, skewMax, counts, weight } of spreads) {
      const domain = labelOf(info.labels, topologyKey);
      if (domain === undefined) return undefined;
      sum += counts.get(domain) * weight + (skewMax - 1);
    }
    return Math.round(sum);
  });
  return reversed(raw);
}

/** Nodes without a domain get nothing. */
function reversed(raw: readonly (number | undefined)[]): readonly number[] {
  const known = raw.flatMap((score) => score ?? []);
  const highest = Math.max(0, ...known);
  const least = Math.min(...known);
  return raw.map((score) => {
    if (score === undefined) return 0;
    return highest === 0 ? SCORE_MAX : Math.floor((SCORE_MAX * (highest + least - score)) / highest);
  });
}
