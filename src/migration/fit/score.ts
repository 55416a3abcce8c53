import type { Random } from '../../env/ports.ts';
import type { ClusterState } from './cluster-state.ts';
import type { NodeState } from './node-state.ts';
import type { PodInfo } from './pod-info.ts';
import { balancedAllocationScore, leastAllocatedScore } from './scores/allocation.ts';
import { preferredCompanyScores } from './scores/preferred-company.ts';
import { preferredAffinityScores, preferredTaintScores } from './scores/preferred-nodes.ts';
import { preferredSpreadScores } from './scores/preferred-spread.ts';

/** What counts how much, as in upstream's default profile. */
const WEIGHTS = { allocation: 1, taints: 3, nodeAffinity: 2, spread: 2, company: 2 };

/** How good each node is for the pod, in the order of the nodes. All of them must do. */
export function score(pod: PodInfo, nodes: readonly NodeState[], cluster: ClusterState): readonly number[] {
  const totals = nodes.map(
    (node) => WEIGHTS.allocation * (leastAllocatedScore(pod, node) + balancedAllocationScore(pod, node)),
  );
  const add = (scores: readonly number[] | undefined, weight: number): void => {
    for (const [index, each] of scores?.entries() ?? []) totals[index] = (totals[index] ?? 0) + weight * each;
  };
  add(preferredTaintScores(pod, nodes), WEIGHTS.taints);
  add(preferredAffinityScores(pod, nodes), WEIGHTS.nodeAffinity);
  add(preferredSpreadScores(pod, nodes, cluster), WEIGHTS.spread);
  add(preferredCompanyScores(pod, nodes, cluster), WEIGHTS.company);
  return totals;
}

/** The best of the nodes; chance decides between equals. Undefined where there are none. */
export function best(
  pod: PodInfo,
  nodes: readonly NodeState[],
  cluster: ClusterState,
  random: Random,
): NodeState | undefined {
  if (nodes.length < 2) return nodes[0];
  const scores = score(pod, nodes, cluster);
  const highest = scores.reduce((most, each) => Math.max(most, each), Number.NEGATIVE_INFINITY);
  const equals = nodes.filter((_, index) => scores[index] === highest);
  return equals[Math.floor(random.number() * equals.length)];
}
