import type { Requirement } from '../../machinery/label-requirements.ts';
import {
  type LabelSelectorObject,
  nothing,
  type Selector,
  selectorFrom,
  selectorOf,
} from '../../machinery/selectors.ts';
import type { PodAffinityTerm } from './objects.ts';

/** Terms of pod affinity: which other pods are meant, and by which label of nodes "together" is measured. */

type Labels = { readonly [key: string]: string };

export interface AffinityTerm {
  /** The same for terms that mean the same. */
  readonly key: string;
  readonly namespaces: ReadonlySet<string>;
  readonly namespaceSelector: Selector;
  readonly selector: Selector;
  readonly topologyKey: string;
}

export interface WeightedTerm {
  readonly term: AffinityTerm;
  readonly weight: number;
}

/** The labels of a namespace; undefined where it is not known. */
export type NamespaceLabels = (namespace: string) => Labels | undefined;

/** The pod that a term belongs to, or that it is asked about. */
export interface LabelledPod {
  readonly namespace: string;
  readonly labels: Labels;
}

/** Reads a term of a pod. One that makes no sense selects nothing. */
export function affinityTermOf(term: PodAffinityTerm, owner: LabelledPod): AffinityTerm {
  const names = term.namespaces ?? [];
  const isOwnNamespace = names.length === 0 && !term.namespaceSelector;
  const namespaces = new Set(isOwnNamespace ? [owner.namespace] : names);
  const selector = withLabelKeys(soundSelector(term.labelSelector), owner.labels, term);
  const namespaceSelector = soundSelector(term.namespaceSelector);
  const { topologyKey } = term;
  const parts = [[...namespaces].sort(), describe(namespaceSelector), describe(selector), topologyKey];
  return { key: JSON.stringify(parts), namespaces, namespaceSelector, selector, topologyKey };
}

/** The selector of an object; one that validation would refuse today selects nothing. */
export function soundSelector(object: LabelSelectorObject | undefined): Selector {
  try {
    return selectorFrom(object);
  } catch {
    return nothing;
  }
}

/** Adds what the owner's own labels say under the given keys. */
export function withLabelKeys(
  selector: Selector,
  labels: Labels,
  keys: { readonly matchLabelKeys?: readonly string[]; readonly mismatchLabelKeys?: readonly string[] },
): Selector {
  const present = (names: readonly string[] = []) => names.filter((key) => Object.hasOwn(labels, key));
  const more: Requirement[] = [
    ...present(keys.matchLabelKeys).map((key) => ({ key, operator: 'In' as const, values: [labels[key] ?? ''] })),
    ...present(keys.mismatchLabelKeys).map((key) => ({ key, operator: 'NotIn' as const, values: [labels[key] ?? ''] })),
  ];
  return selector === nothing || more.length === 0 ? selector : selectorOf([...selector.requirements, ...more]);
}

function describe(selector: Selector): readonly Requirement[] | null {
  return selector === nothing ? null : selector.requirements;
}

/** Whether the term looks at pods of this namespace. */
export function selectsNamespace(term: AffinityTerm, namespace: string, labelsOf: NamespaceLabels): boolean {
  return term.namespaces.has(namespace) || term.namespaceSelector.matches(labelsOf(namespace));
}

/** Whether the term means this pod. */
export function termMatches(term: AffinityTerm, pod: LabelledPod, labelsOf: NamespaceLabels): boolean {
  return term.selector.matches(pod.labels) && selectsNamespace(term, pod.namespace, labelsOf);
}
