import type { Selector } from '../../../machinery/selectors.ts';
import type { ClusterState } from '../cluster-state.ts';
import { DomainCounts } from '../domain-counts.ts';
import type { Filter } from '../filter.ts';
import type { NodeInfo } from '../node-state.ts';
import type { PodInfo } from '../pod-info.ts';
import { NO_REASONS, type Reason } from '../reason.ts';
import type { SpreadConstraint } from '../spread-constraint.ts';
import { untoleratedTaint } from '../tolerations.ts';
import { labelOf } from '../topology-counts.ts';

const UNEVEN: readonly Reason[] = [
  { filter: 'topology-spread', message: "node(s) didn't match pod topology spread constraints", isResolvable: true },
];
const NO_DOMAIN: readonly Reason[] = [
  {
    filter: 'topology-spread',
    message: "node(s) didn't match pod topology spread constraints (missing required label)",
    isResolvable: false,
  },
];

/** How the pods that a constraint counts are spread now. */
export interface Spread {
  readonly constraint: SpreadConstraint;
  readonly counts: DomainCounts;
  /** Whether the pods of a node are counted. */
  readonly includes: (node: NodeInfo) => boolean;
}

/** No required constraint may become more uneven than it allows. */
export function topologySpreadFilter(pod: PodInfo, cluster: ClusterState): Filter | undefined {
  const spreads = spreadsOf(
    pod,
    pod.spread.filter(({ isRequired }) => isRequired),
    cluster,
  );
  if (spreads.length === 0) return undefined;
  return {
    reasons({ info }) {
      for (const { constraint, counts } of spreads) {
        const domain = labelOf(info.labels, constraint.topologyKey);
        if (domain === undefined) return NO_DOMAIN;
        const least = counts.size < constraint.domainsMin ? 0 : counts.least;
        const self = constraint.selector.matches(pod.labels) ? 1 : 0;
        if (counts.get(domain) + self - least > constraint.skewMax) return UNEVEN;
      }
      return NO_REASONS;
    },
    imagine(other, { info }, by) {
      if (other.namespace !== pod.namespace || other.isTerminating) return;
      for (const { constraint, counts, includes } of spreads) {
        if (!countsPods(constraint.selector) || !constraint.selector.matches(other.labels) || !includes(info)) continue;
        counts.add(labelOf(info.labels, constraint.topologyKey) ?? '', by);
      }
    },
  };
}

/** Counts for each constraint; nodes that lack the label of any of them are in none. */
export function spreadsOf(
  pod: PodInfo,
  constraints: readonly SpreadConstraint[],
  cluster: ClusterState,
): readonly Spread[] {
  const keys = constraints.map(({ topologyKey }) => topologyKey);
  const hasKeys = (node: NodeInfo) => keys.every((key) => Object.hasOwn(node.labels, key));
  return constraints.map((constraint) => {
    const includes = (node: NodeInfo): boolean => hasKeys(node) && isEligible(pod, constraint, node);
    const counts = new DomainCounts();
    const domains = new Map<string, string>();
    for (const { info } of cluster.nodes.values()) {
      if (!includes(info)) continue;
      const domain = labelOf(info.labels, constraint.topologyKey) ?? '';
      domains.set(info.name, domain);
      counts.add(domain, 0);
    }
    if (countsPods(constraint.selector)) countGroups(pod.namespace, constraint.selector, cluster, domains, counts);
    return { constraint, counts, includes };
  });
}

function countGroups(
  namespace: string,
  selector: Selector,
  cluster: ClusterState,
  domains: ReadonlyMap<string, string>,
  counts: DomainCounts,
): void {
  for (const group of cluster.groups.matching(namespace, selector)) {
    if (group.isTerminating) continue;
    for (const [node, count] of group.counts) {
      const domain = domains.get(node);
      if (domain !== undefined) counts.add(domain, count);
    }
  }
}

/** As upstream: a selector that would match everything counts nothing. */
function countsPods(selector: Selector): boolean {
  return selector.requirements.length > 0;
}

function isEligible(pod: PodInfo, constraint: SpreadConstraint, node: NodeInfo): boolean {
  if (constraint.honorsNodeAffinity && pod.acceptsNode && !pod.acceptsNode(node)) return false;
  return !constraint.honorsTaints || untoleratedTaint(node.taints, pod.tolerations) === undefined;
}
