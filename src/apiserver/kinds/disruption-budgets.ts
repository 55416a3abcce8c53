import type { KubeObject } from '../../api/meta.ts';
import { nothing, type Selector, selectorFrom, type LabelSelectorObject } from '../../machinery/selectors.ts';
import type { View } from '../registry/contract.ts';

/** A policy/v1 PodDisruptionBudget as stored. */
export interface PodDisruptionBudget extends KubeObject {
  spec?: { selector?: LabelSelectorObject; unhealthyPodEvictionPolicy?: string };
  status?: {
    observedGeneration?: number;
    disruptionsAllowed?: number;
    currentHealthy?: number;
    desiredHealthy?: number;
    disruptedPods?: Record<string, string>;
    conditions?: Record<string, unknown>[];
    [field: string]: unknown;
  };
}

interface Entry {
  readonly budget: PodDisruptionBudget;
  readonly selector: Selector;
}

/** The budgets of one namespace that share a label of their selectors, by name. */
type Group = Map<string, Entry>;

/**
 * Finds the budgets of a pod without looking at all of them: with one budget per virtual machine a namespace holds
 * thousands. Each budget is filed under one label that its selector insists on, so a pod's own labels lead to it;
 * the few whose selector insists on none are filed under the namespace alone.
 */
export class DisruptionBudgets {
  readonly #groups = new Map<string, Group>();

  constructor(view: View<PodDisruptionBudget>) {
    for (const budget of view.list()) this.#add(budget);
    view.onChange((budget, old) => {
      if (old) this.#remove(old);
      if (budget) this.#add(budget);
    });
  }

  /** The budgets that select the pod, in order of their names. */
  matching(pod: KubeObject): PodDisruptionBudget[] {
    const { namespace = '', labels = {} } = pod.metadata;
    const keys = [namespace, ...Object.entries(labels).map(([key, value]) => labelKey(namespace, key, value))];
    const found: PodDisruptionBudget[] = [];
    for (const key of keys) {
      for (const { budget, selector } of this.#groups.get(key)?.values() ?? []) {
        if (selector.matches(labels)) found.push(budget);
      }
    }
    return found.sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1));
  }

  #add(budget: PodDisruptionBudget): void {
    const selector = compile(budget);
    const key = groupKey(budget, selector);
    let group = this.#groups.get(key);
    if (!group) this.#groups.set(key, (group = new Map()));
    group.set(budget.metadata.name ?? '', { budget, selector });
  }

  #remove(budget: PodDisruptionBudget): void {
    const key = groupKey(budget, compile(budget));
    const group = this.#groups.get(key);
    group?.delete(budget.metadata.name ?? '');
    if (group?.size === 0) this.#groups.delete(key);
  }
}

/** A selector that cannot be understood selects nothing, as upstream. */
function compile(budget: PodDisruptionBudget): Selector {
  try {
    return selectorFrom(budget.spec?.selector);
  } catch {
    return nothing;
  }
}

function groupKey(budget: PodDisruptionBudget, selector: Selector): string {
  const namespace = budget.metadata.namespace ?? '';
  const certain = selector.requirements.find(({ operator, values }) => operator === 'In' && values.length === 1);
  return certain ? labelKey(namespace, certain.key, certain.values[0] ?? '') : namespace;
}

/** Neither namespaces nor labels contain a newline. */
function labelKey(namespace: string, key: string, value: string): string {
  return `${namespace}\n${key}\n${value}`;
}
