import { checkRequirement, type Requirement, type SelectorOperator } from '../../machinery/label-requirements.ts';
import { selectorOf } from '../../machinery/selectors.ts';
import type { NodeSelectorRequirement, NodeSelectorTerm, Pod } from './objects.ts';

/** Selectors of nodes: by label, with more operators than label selectors have, and by the field `metadata.name`. */

type Labels = { readonly [key: string]: string };

/** The parts of a node that selectors look at. */
export interface SelectableNode {
  readonly name: string;
  readonly labels: Labels;
}

export type NodePredicate = (node: SelectableNode) => boolean;

const never: NodePredicate = () => false;

const OPERATORS: ReadonlyMap<string, SelectorOperator> = new Map([
  ['In', 'In'],
  ['NotIn', 'NotIn'],
  ['Exists', 'Exists'],
  ['DoesNotExist', 'DoesNotExist'],
  ['Gt', 'GreaterThan'],
  ['Lt', 'LessThan'],
]);

/** Whether a node matches all of a term. An empty term, or one that makes no sense, matches nothing. */
export function nodeTermPredicate(term: NodeSelectorTerm): NodePredicate {
  const expressions = term.matchExpressions ?? [];
  const fields = term.matchFields ?? [];
  if (expressions.length === 0 && fields.length === 0) return never;
  const requirements = requirementsOf(expressions);
  if (requirements === undefined || !fields.every(isFieldSound)) return never;
  const selector = selectorOf(requirements);
  return (node) => selector.matches(node.labels) && fields.every((field) => fieldMatches(field, node));
}

function requirementsOf(expressions: readonly NodeSelectorRequirement[]): Requirement[] | undefined {
  const requirements: Requirement[] = [];
  for (const { key, operator, values } of expressions) {
    const known = OPERATORS.get(operator);
    if (known === undefined) return undefined;
    try {
      requirements.push(checkRequirement({ key, operator: known, values: values ?? [] }));
    } catch {
      // What validation refuses today may have been stored before; such a term matches nothing.
      return undefined;
    }
  }
  return requirements;
}

function isFieldSound({ operator, values }: NodeSelectorRequirement): boolean {
  return (operator === 'In' || operator === 'NotIn') && values?.length === 1;
}

function fieldMatches({ key, operator, values }: NodeSelectorRequirement, node: SelectableNode): boolean {
  const isEqual = (key === 'metadata.name' ? node.name : '') === values?.[0];
  return operator === 'In' ? isEqual : !isEqual;
}

/** Whether a node matches any of the terms; none at all match nothing. */
export function nodeSelectorPredicate(terms: readonly NodeSelectorTerm[]): NodePredicate {
  const predicates = terms.map(nodeTermPredicate);
  return (node) => predicates.some((matches) => matches(node));
}

/** Whether a node is one that the pod asks for by `nodeSelector` and required node affinity; undefined for any node. */
export function requiredNodePredicate(pod: Pod): NodePredicate | undefined {
  const labels = Object.entries(pod.spec?.nodeSelector ?? {});
  const required = pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution;
  const affinity = required ? nodeSelectorPredicate(required.nodeSelectorTerms ?? []) : undefined;
  if (labels.length === 0) return affinity;
  const selector = selectorOf(labels.map(([key, value]) => ({ key, operator: 'In', values: [value] })));
  return (node) => selector.matches(node.labels) && (affinity === undefined || affinity(node));
}

/**
 * The only nodes that the pod's required affinity lets it run on, where every term names some; undefined where any
 * node might do. Pods of daemon sets are pinned this way.
 */
export function requiredNodeNames(pod: Pod): ReadonlySet<string> | undefined {
  const terms =
    pod.spec?.affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms ?? [];
  if (terms.length === 0) return undefined;
  const all = new Set<string>();
  for (const term of terms) {
    const named = (term.matchFields ?? []).filter(({ key, operator }) => key === 'metadata.name' && operator === 'In');
    const [first, ...rest] = named;
    if (first === undefined) return undefined;
    for (const name of first.values ?? []) {
      if (rest.every(({ values }) => values?.includes(name))) all.add(name);
    }
  }
  return all;
}
