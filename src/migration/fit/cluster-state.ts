import type { NamespaceLabels } from './affinity-term.ts';
import { type NodeInfo, NodeState } from './node-state.ts';
import type { PersistentVolume, PersistentVolumeClaim, StorageClass } from './objects.ts';
import { PodGroups } from './pod-groups.ts';
import type { PodInfo } from './pod-info.ts';
import { TermUses } from './term-uses.ts';

/** Objects that placing a pod looks up by name. */
export interface Lookups {
  readonly namespaceLabels: NamespaceLabels;
  /** By `namespace/name`. */
  readonly claim: (key: string) => PersistentVolumeClaim | undefined;
  readonly volume: (name: string) => PersistentVolume | undefined;
  readonly storageClass: (name: string) => StorageClass | undefined;
  /** The volumes of a storage class that no claim is known to have. */
  readonly unboundVolumes: (storageClass: string) => Iterable<PersistentVolume>;
}

/** How strongly a pod that requires another's company draws it, where the other does not ask for it. */
const REQUIRED_AFFINITY_WEIGHT = 1;

/**
 * Nodes and the pods placed on them, kept so that a pod can be placed without looking at all the others: sums by node,
 * counts of pods alike, and the affinity terms of placed pods, each kept up with every change.
 */
export class ClusterState {
  readonly lookups: Lookups;
  readonly groups = new PodGroups();
  /** Required anti-affinity of placed pods. */
  readonly repulsions = new TermUses();
  /** What placed pods prefer about the company they get; negative weights push away. */
  readonly attractions = new TermUses();
  readonly #nodes = new Map<string, NodeState>();
  /** Pods on nodes that are not there, or not yet. */
  readonly #stranded = new Map<string, Map<string, PodInfo>>();
  readonly #placements = new Map<string, { readonly pod: PodInfo; readonly node: string }>();
  readonly #claimUsers = new Map<string, number>();

  constructor(lookups: Lookups) {
    this.lookups = lookups;
  }

  get nodes(): ReadonlyMap<string, NodeState> {
    return this.#nodes;
  }

  /** Adds a node, or replaces what it says about itself. */
  setNode(info: NodeInfo): void {
    const pods = this.#nodes.get(info.name)?.pods ?? this.#stranded.get(info.name) ?? new Map<string, PodInfo>();
    this.#stranded.delete(info.name);
    this.#nodes.set(info.name, new NodeState(info, pods.values()));
  }

  /** Removes a node; its pods are remembered until they are removed themselves. */
  removeNode(name: string): void {
    const node = this.#nodes.get(name);
    if (!node) return;
    this.#nodes.delete(name);
    if (node.pods.size > 0) this.#stranded.set(name, new Map(node.pods));
  }

  /** Where a pod is placed, by its UID. */
  nodeOf(uid: string): string | undefined {
    return this.#placements.get(uid)?.node;
  }

  /** Places a pod, or replaces it where it is placed already. */
  addPod(pod: PodInfo, node: string): void {
    this.removePod(pod.uid);
    this.#placements.set(pod.uid, { pod, node });
    const state = this.#nodes.get(node);
    if (state) state.add(pod);
    else this.#strand(pod, node);
    this.groups.add(pod, node);
    this.#countTerms(pod, node, 'add');
    this.#countClaims(pod, 1);
  }

  /** Takes a pod away, and answers it as it was placed; undefined where it was not. */
  removePod(uid: string): PodInfo | undefined {
    const placement = this.#placements.get(uid);
    if (!placement) return undefined;
    const { pod, node } = placement;
    this.#placements.delete(uid);
    if (!this.#nodes.get(node)?.remove(uid)) this.#unstrand(uid, node);
    this.groups.remove(pod, node);
    this.#countTerms(pod, node, 'remove');
    this.#countClaims(pod, -1);
    return pod;
  }

  /** How many placed pods mount a claim, by `namespace/name`. */
  claimUsers(key: string): number {
    return this.#claimUsers.get(key) ?? 0;
  }

  #strand(pod: PodInfo, node: string): void {
    const pods = this.#stranded.get(node);
    if (pods) pods.set(pod.uid, pod);
    else this.#stranded.set(node, new Map([[pod.uid, pod]]));
  }

  #unstrand(uid: string, node: string): void {
    const pods = this.#stranded.get(node);
    pods?.delete(uid);
    if (pods?.size === 0) this.#stranded.delete(node);
  }

  #countTerms(pod: PodInfo, node: string, change: 'add' | 'remove'): void {
    const { affinity, antiAffinity } = pod;
    for (const term of antiAffinity.required) this.repulsions[change](term, 1, node);
    for (const term of affinity.required) this.attractions[change](term, REQUIRED_AFFINITY_WEIGHT, node);
    for (const { term, weight } of affinity.preferred) this.attractions[change](term, weight, node);
    for (const { term, weight } of antiAffinity.preferred) this.attractions[change](term, -weight, node);
  }

  #countClaims(pod: PodInfo, by: 1 | -1): void {
    for (const { name } of pod.claims) {
      const key = `${pod.namespace}/${name}`;
      const count = this.claimUsers(key) + by;
      if (count > 0) this.#claimUsers.set(key, count);
      else this.#claimUsers.delete(key);
    }
  }
}
