import type { ClusterState } from './cluster-state.ts';
import type { Filter } from './filter.ts';
import { claimFilter } from './filters/claims.ts';
import { hostPortFilter } from './filters/host-ports.ts';
import { nodeAffinityFilter, nodeNamesFilter } from './filters/node-affinity.ts';
import { nodeNameFilter } from './filters/node-name.ts';
import { podAffinityFilter } from './filters/pod-affinity.ts';
import { resourceFilter } from './filters/resources.ts';
import { taintFilter } from './filters/taints.ts';
import { topologySpreadFilter } from './filters/topology-spread.ts';
import { unschedulableFilter } from './filters/unschedulable.ts';
import { claimRefusal, volumeFilter } from './filters/volumes.ts';
import type { NodeState } from './node-state.ts';
import type { Pod } from './objects.ts';
import { type PodInfo, podInfoOf } from './pod-info.ts';
import { NO_REASONS, type Reason } from './reason.ts';
import { hasEnough, NOTHING } from './resource-amounts.ts';

/** Makes a filter for a pod; undefined where every node passes it. */
type FilterMaker = (pod: PodInfo, cluster: ClusterState) => Filter | undefined;

/** In upstream's order, which decides what a node is refused for. */
const FILTERS: readonly FilterMaker[] = [
  nodeNamesFilter,
  unschedulableFilter,
  nodeNameFilter,
  taintFilter,
  nodeAffinityFilter,
  hostPortFilter,
  resourceFilter,
  claimFilter,
  volumeFilter,
  topologySpreadFilter,
  podAffinityFilter,
];

/** Filters that ask nothing but the node itself and the pods on it. */
const LOCAL_FILTERS: readonly FilterMaker[] = [
  nodeNamesFilter,
  unschedulableFilter,
  nodeNameFilter,
  taintFilter,
  nodeAffinityFilter,
];

/**
 * What a pod asks of nodes, worked out once from the state of the cluster and then held against each node. It is valid
 * until that state changes.
 */
export class Demand {
  readonly pod: PodInfo;
  /** Why no node at all does, whatever it is like. */
  readonly refusal: Reason | undefined;
  readonly #filters: readonly Filter[];

  constructor(pod: PodInfo, cluster: ClusterState) {
    this.pod = pod;
    this.refusal = refusalOf(pod, cluster);
    this.#filters = this.refusal ? [] : FILTERS.flatMap((make) => make(pod, cluster) ?? []);
  }

  /** Why the node does not do, by the first filter that says so; empty where it does. */
  reasons(node: NodeState): readonly Reason[] {
    if (this.refusal) return [this.refusal];
    for (const filter of this.#filters) {
      const reasons = filter.reasons(node);
      if (reasons.length > 0) return reasons;
    }
    return NO_REASONS;
  }

  /** Imagines another pod on the node (1) or away from it (-1), until told the contrary. The node must be changed too. */
  imagine(other: PodInfo, node: NodeState, by: 1 | -1): void {
    for (const filter of this.#filters) filter.imagine?.(other, node, by);
  }
}

function refusalOf(pod: PodInfo, cluster: ClusterState): Reason | undefined {
  if (pod.nodeNames?.size === 0)
    return { filter: 'node-affinity', message: 'pod affinity terms conflict', isResolvable: false };
  return claimRefusal(pod, cluster);
}

/** Why the node does not do for the pod; empty where it does. To ask about many nodes, make one Demand. */
export function fit(pod: Pod, node: NodeState, cluster: ClusterState): readonly Reason[] {
  return new Demand(podInfoOf(pod), cluster).reasons(node);
}

/** Whether the node could take the pod if it were empty, whatever there is elsewhere. */
export function couldHost(pod: PodInfo, node: NodeState, cluster: ClusterState): boolean {
  if (!hasEnough(pod.requests, node.info.allocatable, NOTHING)) return false;
  return LOCAL_FILTERS.every((make) => (make(pod, cluster)?.reasons(node) ?? NO_REASONS).length === 0);
}
