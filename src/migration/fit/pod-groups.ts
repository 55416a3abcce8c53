import type { Selector } from '../../machinery/selectors.ts';
import { nothing } from '../../machinery/selectors.ts';
import { NodeCounts } from './node-counts.ts';
import { keyAnchor, valueAnchor } from './selector-index.ts';

/**
 * Placed pods, counted by node and grouped by what selectors can tell apart: namespace, labels, and whether they are on
 * their way out. A replica set of a thousand pods is one group; which groups a selector may match is found through its
 * narrowest requirement. So the cost of a selector follows what it matches, not how many pods there are.
 */

type Labels = { readonly [key: string]: string };

export interface PodGroup {
  readonly labels: Labels;
  readonly isTerminating: boolean;
  readonly counts: NodeCounts;
}

/** The part of a pod that decides about its group. */
export interface GroupedPod {
  readonly namespace: string;
  readonly labels: Labels;
  readonly isTerminating: boolean;
  /** The same for pods of a namespace that belong together. */
  readonly groupKey: string;
}

/** The key under which pods of a namespace belong together. */
export function groupKeyOf(labels: Labels, isTerminating: boolean): string {
  const entries = Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1));
  return `${isTerminating ? '-' : '+'}${JSON.stringify(entries)}`;
}

class NamespaceGroups {
  readonly groups = new Map<string, PodGroup>();
  readonly #byAnchor = new Map<string, Set<PodGroup>>();

  add(pod: GroupedPod, node: string): void {
    let group = this.groups.get(pod.groupKey);
    if (!group) {
      group = { labels: pod.labels, isTerminating: pod.isTerminating, counts: new NodeCounts() };
      this.groups.set(pod.groupKey, group);
      for (const anchor of anchorsOf(pod.labels)) {
        const filed = this.#byAnchor.get(anchor);
        if (filed) filed.add(group);
        else this.#byAnchor.set(anchor, new Set([group]));
      }
    }
    group.counts.add(node, 1);
  }

  remove(pod: GroupedPod, node: string): void {
    const group = this.groups.get(pod.groupKey);
    group?.counts.add(node, -1);
    if (!group?.counts.isEmpty) return;
    this.groups.delete(pod.groupKey);
    for (const anchor of anchorsOf(pod.labels)) {
      const filed = this.#byAnchor.get(anchor);
      filed?.delete(group);
      if (filed?.size === 0) this.#byAnchor.delete(anchor);
    }
  }

  *matching(selector: Selector): Generator<PodGroup> {
    for (const filed of this.#narrowest(selector)) {
      for (const group of filed) if (selector.matches(group.labels)) yield group;
    }
  }

  /** Sets of groups, none in two of them, that together hold all that may match. */
  #narrowest(selector: Selector): readonly Iterable<PodGroup>[] {
    let best: readonly ReadonlySet<PodGroup>[] | undefined;
    let bestSize = this.groups.size;
    for (const { key, operator, values } of selector.requirements) {
      if (operator === 'NotIn' || operator === 'DoesNotExist') continue;
      const anchors =
        operator === 'In' ? [...new Set(values)].map((value) => valueAnchor(key, value)) : [keyAnchor(key)];
      const sets = anchors.flatMap((anchor) => this.#byAnchor.get(anchor) ?? []);
      const size = sets.reduce((sum, set) => sum + set.size, 0);
      if (best !== undefined && size >= bestSize) continue;
      best = sets;
      bestSize = size;
    }
    return best ?? [this.groups.values()];
  }
}

function anchorsOf(labels: Labels): readonly string[] {
  return Object.entries(labels).flatMap(([key, value]) => [keyAnchor(key), valueAnchor(key, value)]);
}

export class PodGroups {
  readonly #namespaces = new Map<string, NamespaceGroups>();

  add(pod: GroupedPod, node: string): void {
    let namespace = this.#namespaces.get(pod.namespace);
    if (!namespace) this.#namespaces.set(pod.namespace, (namespace = new NamespaceGroups()));
    namespace.add(pod, node);
  }

  remove(pod: GroupedPod, node: string): void {
    const namespace = this.#namespaces.get(pod.namespace);
    namespace?.remove(pod, node);
    if (namespace?.groups.size === 0) this.#namespaces.delete(pod.namespace);
  }

  /** The namespaces that have placed pods. */
  namespaces(): Iterable<string> {
    return this.#namespaces.keys();
  }

  /** The groups of a namespace that the selector matches. */
  *matching(namespace: string, selector: Selector): Generator<PodGroup> {
    if (selector !== nothing) yield* this.#namespaces.get(namespace)?.matching(selector) ?? [];
  }
}
