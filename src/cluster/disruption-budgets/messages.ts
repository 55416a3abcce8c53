import type { LabelSelectorObject } from '../../machinery/selectors.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { keyOf, splitKey } from '../../kube/resource.ts';
import type { PodDisruptionBudget } from './objects.ts';

/** What people are told about budgets, word for word as Kubernetes tells it. */

export function severalBudgets({ metadata }: Pod, chosenKey: string): string {
  const chosen = splitKey(chosenKey).name;
  return `Pod "${metadata.namespace}"/"${metadata.name}" matches multiple PodDisruptionBudgets.  Chose "${chosen}" arbitrarily.`;
}

export function unmanagedPods({ spec }: PodDisruptionBudget): string {
  return [
    `Pods selected by this PodDisruptionBudget (selector: ${goSelector(spec?.selector)}) were found to be unmanaged.`,
    'As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior.',
    'To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.',
  ].join(' ');
}

export function notDeleted(budget: PodDisruptionBudget): string {
  return `Pod was expected by PDB ${keyOf(budget)} to be deleted but it wasn't`;
}

/** A selector as Go prints it. */
function goSelector(selector: LabelSelectorObject | undefined): string {
  if (!selector) return 'nil';
  const labels = Object.entries(selector.matchLabels ?? {}).sort(([a], [b]) => (a < b ? -1 : 1));
  const expressions = (selector.matchExpressions ?? []).map(
    ({ key, operator, values = [] }) =>
      `LabelSelectorRequirement{Key:${key},Operator:${operator},Values:[${values.join(' ')}],},`,
  );
  const map = labels.map(([key, value]) => `${key}: ${value},`).join('');
  return `&LabelSelector{MatchLabels:map[string]string{${map}},MatchExpressions:[]LabelSelectorRequirement{${expressions.join('')}},}`;
}
