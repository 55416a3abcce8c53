import { nothing, type Selector } from '../../machinery/selectors.ts';
import { soundSelector } from '../../migration/fit/affinity-term.ts';
import { keyOf } from '../../kube/resource.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { labelIn } from '../indexes.ts';
import type { PodDisruptionBudget } from './objects.ts';

interface Entry {
  readonly key: string;
  readonly selector: Selector;
  /** Where it is filed. */
  readonly anchors: readonly string[];
}

/**
 * Finds the budgets of a pod without trying all of them: with a budget for each virtual machine, a namespace has
 * thousands. Each is filed under a label that its selector insists on, of several the one that fewest others are filed
 * under; what insists on none is filed under its namespace.
 */
export class BudgetIndex {
  readonly #entries = new Map<string, Entry>();
  readonly #byAnchor = new Map<string, Set<Entry>>();

  /** Adds a budget, or replaces it. */
  set(budget: PodDisruptionBudget): void {
    this.delete(budget);
    const selector = soundSelector(budget.spec?.selector);
    if (selector === nothing) return;
    const key = keyOf(budget);
    const entry: Entry = { key, selector, anchors: this.#anchorsOf(selector, budget.metadata.namespace ?? '') };
    this.#entries.set(key, entry);
    for (const anchor of entry.anchors) {
      const entries = this.#byAnchor.get(anchor);
      if (entries) entries.add(entry);
      else this.#byAnchor.set(anchor, new Set([entry]));
    }
  }

  delete(budget: PodDisruptionBudget): void {
    const entry = this.#entries.get(keyOf(budget));
    if (!entry) return;
    this.#entries.delete(entry.key);
    for (const anchor of entry.anchors) {
      const entries = this.#byAnchor.get(anchor);
      entries?.delete(entry);
      if (entries?.size === 0) this.#byAnchor.delete(anchor);
    }
  }

  /** The keys of the budgets that select the pod, in order. */
  keysOf({ metadata: { namespace = '', labels = {} } }: Pod): readonly string[] {
    const anchors = [namespace, ...Object.entries(labels).map(([key, value]) => labelIn(namespace, key, value))];
    const found: string[] = [];
    for (const anchor of anchors) {
      for (const { key, selector } of this.#byAnchor.get(anchor) ?? []) if (selector.matches(labels)) found.push(key);
    }
    return found.sort();
  }

  /** An object has one value for a key, so that a budget filed under several values is found once. */
  #anchorsOf(selector: Selector, namespace: string): readonly string[] {
    let best: readonly string[] = [namespace];
    let fewest = Number.POSITIVE_INFINITY;
    for (const { key, operator, values } of selector.requirements) {
      if (operator !== 'In') continue;
      const anchors = [...new Set(values)].map((value) => labelIn(namespace, key, value));
      const count = anchors.reduce((sum, anchor) => sum + (this.#byAnchor.get(anchor)?.size ?? 0), 0);
      if (count >= fewest) continue;
      fewest = count;
      best = anchors;
    }
    return best;
  }
}
