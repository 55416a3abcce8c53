import { type AffinityTerm, selectsNamespace, termMatches } from '../affinity-term.ts';
import type { ClusterState } from '../cluster-state.ts';
import type { Filter } from '../filter.ts';
import type { NodeCounts } from '../node-counts.ts';
import type { PodGroup } from '../pod-groups.ts';
import type { PodInfo } from '../pod-info.ts';
import { NO_REASONS, type Reason } from '../reason.ts';
import { TopologyCounts } from '../topology-counts.ts';

const reasons = (message: string, isResolvable: boolean): readonly Reason[] => [
  { filter: 'pod-affinity', message, isResolvable },
];

const ALONE = reasons("node(s) didn't match pod affinity rules", false);
const CROWDED = reasons("node(s) didn't match pod anti-affinity rules", true);
const UNWELCOME = reasons("node(s) didn't satisfy existing pods anti-affinity rules", true);

/** Required affinity and anti-affinity of the pod, and the anti-affinity of the pods that are there. */
export function podAffinityFilter(pod: PodInfo, cluster: ClusterState): Filter | undefined {
  const check = new PodAffinityCheck(pod, cluster);
  return check.isNeeded ? check : undefined;
}

class PodAffinityCheck implements Filter {
  readonly #pod: PodInfo;
  readonly #cluster: ClusterState;
  /** Pods that all affinity terms mean. */
  readonly #company = new TopologyCounts();
  /** Pods that an anti-affinity term means. */
  readonly #rivals = new TopologyCounts();
  /** Pods whose anti-affinity means this pod. */
  readonly #guards = new TopologyCounts();

  constructor(pod: PodInfo, cluster: ClusterState) {
    this.#pod = pod;
    this.#cluster = cluster;
    for (const { counts } of groupsOfAll(pod.affinity.required, cluster)) {
      for (const { topologyKey } of pod.affinity.required) addCounts(this.#company, topologyKey, counts, cluster, 1);
    }
    for (const term of pod.antiAffinity.required) {
      for (const { counts } of groupsOf(term, cluster)) addCounts(this.#rivals, term.topologyKey, counts, cluster, 1);
    }
    for (const { term, counts } of cluster.repulsions.matching(pod, cluster.lookups.namespaceLabels)) {
      addCounts(this.#guards, term.topologyKey, counts, cluster, 1);
    }
  }

  get isNeeded(): boolean {
    const { affinity, antiAffinity } = this.#pod;
    return affinity.required.length > 0 || antiAffinity.required.length > 0 || !this.#guards.isEmpty;
  }

  reasons({ info: { labels } }: Parameters<Filter['reasons']>[0]): readonly Reason[] {
    if (!this.#hasCompany(labels)) return ALONE;
    const { required } = this.#pod.antiAffinity;
    if (required.some(({ topologyKey }) => this.#rivals.get(labels, topologyKey) > 0)) return CROWDED;
    for (const key of this.#guards.keys()) if (this.#guards.get(labels, key) > 0) return UNWELCOME;
    return NO_REASONS;
  }

  imagine(...[other, { info }, by]: Parameters<NonNullable<Filter['imagine']>>): void {
    const { affinity, antiAffinity } = this.#pod;
    if (this.#meansAll(affinity.required, other)) {
      for (const { topologyKey } of affinity.required) this.#company.add(info.labels, topologyKey, by);
    }
    for (const term of antiAffinity.required) {
      if (this.#means(term, other)) this.#rivals.add(info.labels, term.topologyKey, by);
    }
    for (const term of other.antiAffinity.required) {
      if (this.#means(term, this.#pod)) this.#guards.add(info.labels, term.topologyKey, by);
    }
  }

  /**
   * Whether all terms find what they ask for around the node. The first of a series of pods that want to be together
   * finds nobody, and would wait for ever: it may go anywhere that has the topology at all.
   */
  #hasCompany(labels: { readonly [key: string]: string }): boolean {
    const { required } = this.#pod.affinity;
    if (!required.every(({ topologyKey }) => Object.hasOwn(labels, topologyKey))) return false;
    if (required.every(({ topologyKey }) => this.#company.get(labels, topologyKey) > 0)) return true;
    return this.#company.isEmpty && this.#meansAll(required, this.#pod);
  }

  #meansAll(terms: readonly AffinityTerm[], pod: PodInfo): boolean {
    return terms.length > 0 && terms.every((term) => this.#means(term, pod));
  }

  #means(term: AffinityTerm, pod: PodInfo): boolean {
    return termMatches(term, pod, this.#cluster.lookups.namespaceLabels);
  }
}

/** The groups of placed pods that a term means. */
export function* groupsOf(term: AffinityTerm, cluster: ClusterState): Generator<PodGroup> {
  for (const namespace of namespacesOf(term, cluster)) yield* cluster.groups.matching(namespace, term.selector);
}

function* groupsOfAll(terms: readonly AffinityTerm[], cluster: ClusterState): Generator<PodGroup> {
  const [first, ...rest] = terms;
  if (!first) return;
  const labelsOf = cluster.lookups.namespaceLabels;
  for (const namespace of namespacesOf(first, cluster)) {
    if (!rest.every((term) => selectsNamespace(term, namespace, labelsOf))) continue;
    for (const group of cluster.groups.matching(namespace, first.selector)) {
      if (rest.every((term) => term.selector.matches(group.labels))) yield group;
    }
  }
}

function namespacesOf(term: AffinityTerm, cluster: ClusterState): Iterable<string> {
  const labelsOf = cluster.lookups.namespaceLabels;
  const isFixed = term.namespaceSelector.requirements.length === 0 && !term.namespaceSelector.matches({});
  if (isFixed) return term.namespaces;
  return [...cluster.groups.namespaces()].filter((namespace) => selectsNamespace(term, namespace, labelsOf));
}

/** Adds what is counted by node to the topology that the nodes are in. */
export function addCounts(
  sums: TopologyCounts,
  topologyKey: string,
  counts: NodeCounts,
  cluster: ClusterState,
  weight: number,
): void {
  for (const [name, count] of counts) {
    const node = cluster.nodes.get(name);
    if (node) sums.add(node.info.labels, topologyKey, weight * count);
  }
}
