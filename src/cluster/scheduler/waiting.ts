import { type AffinityTerm, termMatches } from '../../migration/fit/affinity-term.ts';
import { couldHost } from '../../migration/fit/fit.ts';
import type { PodInfo } from '../../migration/fit/pod-info.ts';
import type { FilterName } from '../../migration/fit/reason.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { SchedulerView } from './decide.ts';

/** A change that may let a waiting pod be placed. */
export type ClusterEvent =
  | { readonly type: 'node-changed'; readonly node: string }
  | { readonly type: 'node-removed' }
  | { readonly type: 'pod-removed'; readonly node: string; readonly pod: PodInfo }
  /** Room that a pod used and needs no more, or that was kept for one, is free. */
  | { readonly type: 'room-freed'; readonly node: string }
  /** A pod is on a node that was not there before. */
  | { readonly type: 'pod-placed'; readonly pod: PodInfo }
  | { readonly type: 'pod-relabelled'; readonly pod: PodInfo }
  /** A pod has begun to end. */
  | { readonly type: 'pod-leaving'; readonly pod: PodInfo }
  | { readonly type: 'claim-changed'; readonly key: string }
  | { readonly type: 'volumes-changed' }
  | { readonly type: 'namespace-changed' };

interface WaitingPod {
  readonly pod: PodInfo;
  readonly filters: ReadonlySet<FilterName>;
}

/**
 * Pods that fit nowhere, and what stands in their way. Trying them again costs a look at every node, so they are left
 * alone until something changes that could help, and each change wakes only those that it could help.
 */
export class WaitingPods {
  readonly #pods = new Map<string, WaitingPod>();
  readonly #byFilter = new Map<FilterName, Map<string, WaitingPod>>();
  readonly #view: SchedulerView;

  constructor(view: SchedulerView) {
    this.#view = view;
  }

  get size(): number {
    return this.#pods.size;
  }

  add(pod: PodInfo, filters: ReadonlySet<FilterName>): void {
    this.delete(pod.key);
    const waiting: WaitingPod = { pod, filters };
    this.#pods.set(pod.key, waiting);
    for (const filter of filters) {
      const pods = this.#byFilter.get(filter);
      if (pods) pods.set(pod.key, waiting);
      else this.#byFilter.set(filter, new Map([[pod.key, waiting]]));
    }
  }

  delete(key: string): boolean {
    const waiting = this.#pods.get(key);
    if (!waiting) return false;
    this.#pods.delete(key);
    for (const filter of waiting.filters) this.#byFilter.get(filter)?.delete(key);
    return true;
  }

  /** Takes out the pods that the change could help, and answers their keys. */
  wake(event: ClusterEvent): readonly string[] {
    if (this.#pods.size === 0) return [];
    const keys = [...new Set(this.#helped(event))].map(({ pod }) => pod.key);
    for (const key of keys) this.delete(key);
    return keys;
  }

  #helped(event: ClusterEvent): Iterable<WaitingPod> {
    switch (event.type) {
      case 'node-changed':
        return this.#helpedByNode(event.node);
      case 'node-removed':
        return [...this.#waitingFor('topology-spread'), ...this.#waitingFor('pod-affinity')];
      case 'pod-removed':
        return [...this.#helpedByRoom(event.node), ...this.#helpedByDeparture(event.pod)];
      case 'room-freed':
        return [
          ...this.#helpedByRoom(event.node),
          ...this.#waitingFor('topology-spread'),
          ...this.#waitingFor('pod-affinity'),
          ...this.#waitingFor('claims'),
        ];
      case 'pod-placed':
        return [
          ...this.#spreadWith(event.pod),
          ...this.#waitingFor('pod-affinity', ({ affinity }) => this.#means(affinity.required, event.pod)),
        ];
      case 'pod-relabelled':
        return [...this.#spreadWith(event.pod), ...this.#waitingFor('pod-affinity')];
      case 'pod-leaving':
        return this.#spreadWith(event.pod);
      case 'claim-changed':
        return [
          ...this.#waitingFor('volumes', (pod) => usesClaim(pod, event.key)),
          ...this.#waitingFor('claims', (pod) => usesClaim(pod, event.key)),
        ];
      case 'volumes-changed':
        return this.#waitingFor('volumes');
      case 'namespace-changed':
        return this.#waitingFor('pod-affinity');
      default:
        return unreachable(event);
    }
  }

  #waitingFor(filter: FilterName, isHelped: (pod: PodInfo) => boolean = () => true): WaitingPod[] {
    return [...(this.#byFilter.get(filter)?.values() ?? [])].filter(({ pod }) => isHelped(pod));
  }

  /** A node that takes no pods may still be where others are counted. */
  #helpedByNode(name: string): WaitingPod[] {
    const node = this.#view.cluster.nodes.get(name);
    if (!node) return [];
    return [...this.#pods.values()].filter(
      ({ pod, filters }) =>
        filters.has('topology-spread') || filters.has('pod-affinity') || couldHost(pod, node, this.#view.cluster),
    );
  }

  #helpedByRoom(name: string): WaitingPod[] {
    const node = this.#view.cluster.nodes.get(name);
    if (!node) return [];
    const lowest = Math.min(...[...node.pods.values()].map(({ priority }) => priority));
    const isHelped = (pod: PodInfo): boolean =>
      couldHost(pod, node, this.#view.cluster) && (node.hasRoomFor(pod) || mayPreempt(pod, lowest));
    return [...this.#waitingFor('resources', isHelped), ...this.#waitingFor('host-ports', isHelped)];
  }

  #helpedByDeparture(gone: PodInfo): WaitingPod[] {
    const keys = gone.claims.map(({ name }) => `${gone.namespace}/${name}`);
    return [
      ...this.#waitingFor('claims', (pod) => keys.some((key) => usesClaim(pod, key))),
      ...this.#spreadWith(gone),
      ...this.#waitingFor(
        'pod-affinity',
        (pod) =>
          this.#means(pod.antiAffinity.required, gone) ||
          this.#means(gone.antiAffinity.required, pod) ||
          // With the last of its kind gone, the pod may be the first again.
          this.#means(pod.affinity.required, gone),
      ),
    ];
  }

  #spreadWith(other: PodInfo): WaitingPod[] {
    return this.#waitingFor('topology-spread', ({ namespace }) => namespace === other.namespace);
  }

  #means(terms: readonly AffinityTerm[], pod: PodInfo): boolean {
    return terms.some((term) => termMatches(term, pod, this.#view.cluster.lookups.namespaceLabels));
  }
}

function usesClaim({ namespace, claims }: PodInfo, key: string): boolean {
  return claims.some(({ name }) => `${namespace}/${name}` === key);
}

/** Whether the pod could push somebody out of a node whose least important pod has this priority. */
function mayPreempt({ pod, priority }: PodInfo, lowest: number): boolean {
  return pod.spec?.preemptionPolicy !== 'Never' && priority > lowest;
}
