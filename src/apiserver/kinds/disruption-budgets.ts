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
 * thousands. Each budget is filed under one label that its selector insists on, so a pod's own labels lead to it; of
 * several under the one that fewest others are filed under, since all may share a label such as `app`. The few whose
 * selector insists on none are filed under the namespace alone.
 */
export class DisruptionBudgets {
  readonly #groups = new Map<string, Group>();
  /** Under which key each budget is filed, by its namespace and name. */
  readonly #keys = new Map<string, string>();

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
    const { namespace = '', name = '' } = budget.metadata;
    const key = this.#emptiest(namespace, selector);
    this.#keys.set(`${namespace}/${name}`, key);
    let group = this.#groups.get(key);
    if (!group) this.#groups.set(key, (group = new Map()));
    group.set(name, { budget, selector });
  }

  #remove({ metadata: { namespace = '', name = '' } }: PodDisruptionBudget): void {
    const key = this.#keys.get(`${namespace}/${name}`) ?? '';
    this.#keys.delete(`${namespace}/${name}`);
    const group = this.#groups.get(key);
    group?.delete(name);
    if (group?.size === 0) this.#groups.delete(key);
  }

  /** Where to file a selector: of the labels that it insists on, the one with the smallest group. */
  #emptiest(namespace: string, { requirements }: Selector): string {
    let best = namespace;
    let fewest = Number.POSITIVE_INFINITY;
    for (const { key, operator, values } of requirements) {
      if (operator !== 'In' || values.length !== 1) continue;
      const candidate = labelKey(namespace, key, values[0] ?? '');
      const size = this.#groups.get(candidate)?.size ?? 0;
      if (size >= fewest) continue;
      fewest = size;
      best = candidate;
    }
    return best;
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

/** Neither namespaces nor labels contain a newline. */
function labelKey(namespace: string, key: string, value: string): string {
  return `${namespace}\n${key}\n${value}`;
}
