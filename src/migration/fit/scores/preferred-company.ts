import type { ClusterState } from '../cluster-state.ts';
import { addCounts, groupsOf } from '../filters/pod-affinity.ts';
import type { NodeState } from '../node-state.ts';
import type { PodInfo } from '../pod-info.ts';
import { SCORE_MAX } from '../score-range.ts';
import { TopologyCounts } from '../topology-counts.ts';

/**
 * Scores by preferred pod affinity and anti-affinity, the pod's own and that of the pods that are there. Undefined
 * where nobody prefers anything.
 */
export function preferredCompanyScores(
  pod: PodInfo,
  nodes: readonly NodeState[],
  cluster: ClusterState,
): readonly number[] | undefined {
  const sums = new TopologyCounts();
  const own = [
    ...pod.affinity.preferred,
    ...pod.antiAffinity.preferred.map(({ term, weight }) => ({ term, weight: -weight })),
  ];
  for (const { term, weight } of own) {
    for (const { counts } of groupsOf(term, cluster)) addCounts(sums, term.topologyKey, counts, cluster, weight);
  }
  for (const { term, weight, counts } of cluster.attractions.matching(pod, cluster.lookups.namespaceLabels)) {
    addCounts(sums, term.topologyKey, counts, cluster, weight);
  }
  if (sums.isEmpty) return undefined;
  const keys = [...sums.keys()];
  const raw = nodes.map(({ info }) => keys.reduce((sum, key) => sum + sums.get(info.labels, key), 0));
  const least = Math.min(...raw);
  const range = Math.max(...raw) - least;
  return raw.map((score) => (range === 0 ? 0 : Math.floor((SCORE_MAX * (score - least)) / range)));
}
