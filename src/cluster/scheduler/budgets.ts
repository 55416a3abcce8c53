import type { Selector } from '../../machinery/selectors.ts';
import { soundSelector } from '../../migration/fit/affinity-term.ts';
import type { PodInfo } from '../../migration/fit/pod-info.ts';
import { SelectorIndex } from '../../migration/fit/selector-index.ts';
import type { PodDisruptionBudget } from '../disruption-budgets/objects.ts';

interface Budget {
  readonly namespace: string;
  readonly selector: Selector;
  readonly allowed: number;
  readonly disrupted: { readonly [pod: string]: string };
}

/** Disruption budgets, found by the pods that they cover. */
export class Budgets {
  readonly #budgets = new Map<string, Budget>();
  readonly #byNamespace = new Map<string, SelectorIndex<Budget>>();

  /** Adds a budget, or replaces it. */
  set(object: PodDisruptionBudget): void {
    this.delete(object);
    const { namespace = '', name = '' } = object.metadata;
    const selector = soundSelector(object.spec?.selector);
    // As upstream: for preemption, a selector that would select everything selects nothing.
    if (selector.requirements.length === 0) return;
    const { disruptionsAllowed: allowed = 0, disruptedPods: disrupted = {} } = object.status ?? {};
    const budget: Budget = { namespace, selector, allowed, disrupted };
    this.#budgets.set(`${namespace}/${name}`, budget);
    let index = this.#byNamespace.get(namespace);
    if (!index) this.#byNamespace.set(namespace, (index = new SelectorIndex()));
    index.add(selector, budget);
  }

  delete({ metadata: { namespace = '', name = '' } }: PodDisruptionBudget): void {
    const key = `${namespace}/${name}`;
    const budget = this.#budgets.get(key);
    if (!budget) return;
    this.#budgets.delete(key);
    this.#byNamespace.get(namespace)?.delete(budget.selector, budget);
  }

  /**
   * The pods whose loss, one after the other in this order, some budget would not allow. One that the eviction API has
   * counted already costs nothing more.
   */
  violatedBy(pods: readonly PodInfo[]): ReadonlySet<PodInfo> {
    const left = new Map<Budget, number>();
    const violated = new Set<PodInfo>();
    for (const pod of pods) {
      for (const budget of this.#byNamespace.get(pod.namespace)?.candidates(pod.labels) ?? []) {
        if (!budget.selector.matches(pod.labels)) continue;
        if (Object.hasOwn(budget.disrupted, pod.pod.metadata.name ?? '')) continue;
        const allowed = (left.get(budget) ?? budget.allowed) - 1;
        left.set(budget, allowed);
        if (allowed < 0) violated.add(pod);
      }
    }
    return violated;
  }
}
