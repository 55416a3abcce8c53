import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import type { Schema } from '../../api/schema.ts';
import { badRequest } from '../../api/status.ts';
import {
  everything,
  type FieldRequirement,
  parseFieldSelector,
  parseLabelSelector,
  type Selector,
} from '../../machinery/selectors.ts';
import { readStored } from '../registry/recent-objects.ts';
import type { Facet, Interest } from '../storage/audience.ts';
import type { Stored } from '../storage/store.ts';

/** Label and field selectors of a request, against stored objects that are parsed at most once each. */

export interface Filter {
  /** Undefined when everything matches. */
  readonly matches: ((stored: Stored) => boolean) | undefined;
  /** The one name asked for, where the selector pins it. */
  readonly name: string | undefined;
  /** The one namespace asked for, likewise. */
  readonly namespace: string | undefined;
  /** What all that match have in common, where the selector asks for one value of anything. */
  readonly interest: Interest | undefined;
}

interface Selectable {
  /** Versions of a kind, and what a definition has become since, may select by other paths. */
  readonly definition: ResourceDefinition;
  readonly labels: Readonly<Record<string, string>>;
  /** Name and namespace are not among them: the key says those. */
  readonly fields: ReadonlyMap<string, string>;
}

/** Shared, since most objects have none of either and each memo lives as long as its object. */
const NO_LABELS: Selectable['labels'] = {};
const NO_FIELDS: Selectable['fields'] = new Map();

const ALWAYS = ['metadata.name', 'metadata.namespace'];

function selectableOf(definition: ResourceDefinition, stored: Stored): Selectable {
  const known = stored.selectable as Selectable | undefined;
  if (known?.definition === definition) return known;
  const object = readStored(definition, stored);
  const labels = object.metadata.labels ?? NO_LABELS;
  const selectable: Selectable = { definition, labels, fields: fieldsOf(definition, object) };
  stored.selectable = selectable;
  return selectable;
}

function fieldsOf(definition: ResourceDefinition, object: KubeObject): ReadonlyMap<string, string> {
  const { selectableFields, selectableAliases } = definition;
  if (!selectableFields || selectableFields.length === 0) return NO_FIELDS;
  const fields = new Map<string, string>();
  for (const field of selectableFields) {
    const paths = selectableAliases?.[field] ?? [field];
    const texts = paths.map((path) => textAt(object, path) ?? zeroText(definition, path));
    fields.set(field, texts.find((text) => text !== '') ?? '');
  }
  return fields;
}

/** The name or the namespace, from the key; undefined for any other path. */
function fromKey(path: string, key: string): string | undefined {
  if (path === 'metadata.name') return key.slice(key.indexOf('/') + 1);
  return path === 'metadata.namespace' ? key.slice(0, Math.max(0, key.indexOf('/'))) : undefined;
}

function textAt(object: KubeObject, path: string): string | undefined {
  let value: unknown = object;
  for (const part of path.split('.'))
    value =
      typeof value === 'object' && value !== null && Object.hasOwn(value, part)
        ? (value as Record<string, unknown>)[part]
        : undefined;
  const isScalar = typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean';
  return isScalar ? String(value) : undefined;
}

/** What an absent field of a built-in kind is to a selector: Go's zero, so that `spec.unschedulable=false` finds nodes. */
function zeroText(definition: ResourceDefinition, path: string): string {
  if (definition.custom) return '';
  let schema: Schema | undefined = definition.schema;
  for (const part of path.split('.')) schema = schema?.properties?.[part];
  if (schema?.type === 'boolean') return 'false';
  return schema?.type === 'integer' ? '0' : '';
}

function checkPaths(definition: ResourceDefinition, requirements: readonly FieldRequirement[]): void {
  const own = definition.selectableFields ?? [];
  // Kinds that say what they select by leave out the namespace that they do not have; all others do not care.
  const isParticular = definition.custom === true || own.length > 0;
  const always = isParticular && !definition.namespaced ? ['metadata.name'] : ALWAYS;
  const unknown = requirements.find(({ path }) => !always.includes(path) && !own.includes(path));
  if (!unknown) return;
  throw badRequest(
    isParticular
      ? `field label not supported: ${unknown.path}`
      : `${JSON.stringify(unknown.path)} is not a known field selector: only "metadata.name", "metadata.namespace"`,
  );
}

const nameFacet: Facet = { valueOf: ({ key }) => fromKey('metadata.name', key) };
const namespaceFacet: Facet = { valueOf: ({ key }) => fromKey('metadata.namespace', key) };

/** Fields and labels that watches select by, so that those who select by the same find each other. */
const facets = new WeakMap<ResourceDefinition, Map<string, Facet>>();

function facetOf(definition: ResourceDefinition, name: string, valueOf: (of: Selectable) => string | undefined): Facet {
  const known = facets.get(definition) ?? new Map<string, Facet>();
  facets.set(definition, known);
  const facet = known.get(name) ?? { valueOf: (stored) => valueOf(selectableOf(definition, stored)) };
  known.set(name, facet);
  return facet;
}

function fieldInterest(definition: ResourceDefinition, { path, value }: FieldRequirement): Interest {
  if (path === 'metadata.name') return { facet: nameFacet, value };
  if (path === 'metadata.namespace') return { facet: namespaceFacet, value };
  return { facet: facetOf(definition, `field ${path}`, ({ fields }) => fields.get(path)), value };
}

function labelInterest(definition: ResourceDefinition, key: string, value: string): Interest {
  const labelOf = ({ labels }: Selectable): string | undefined =>
    Object.hasOwn(labels, key) ? labels[key] : undefined;
  return { facet: facetOf(definition, `label ${key}`, labelOf), value };
}

/** The one requirement that is worth looking up: names are rarest, and whole namespaces the least rare. */
function interestOf(
  definition: ResourceDefinition,
  labels: Selector,
  fields: readonly FieldRequirement[],
): Interest | undefined {
  const equal = fields.filter(({ equals }) => equals);
  const field =
    equal.find(({ path }) => path === 'metadata.name') ?? equal.find(({ path }) => path !== 'metadata.namespace');
  if (field) return fieldInterest(definition, field);
  const label = labels.requirements.find(({ operator, values }) => operator === 'In' && values.length === 1);
  const [value] = label?.values ?? [];
  if (label && value !== undefined) return labelInterest(definition, label.key, value);
  const [namespace] = equal;
  return namespace && fieldInterest(definition, namespace);
}

/** The interest of who sees one namespace. */
export function interestInNamespace(namespace: string): Interest {
  return { facet: namespaceFacet, value: namespace };
}

/** The filter of a list, watch or deletecollection. Throws 400 on bad or unsupported selectors. */
export function filterOf(definition: ResourceDefinition, query: URLSearchParams): Filter {
  const labels: Selector = parseLabelSelector(query.get('labelSelector') ?? '');
  const fields = parseFieldSelector(query.get('fieldSelector') ?? '');
  checkPaths(definition, fields);
  const pinned = (path: string): string | undefined => fields.find((each) => each.path === path && each.equals)?.value;
  const interest = interestOf(definition, labels, fields);
  const pins = { name: pinned('metadata.name'), namespace: pinned('metadata.namespace'), interest };
  if (labels === everything && fields.length === 0) return { matches: undefined, ...pins };
  const matches = (stored: Stored): boolean =>
    fields.every(({ path, equals, value }) => {
      const text = fromKey(path, stored.key) ?? selectableOf(definition, stored).fields.get(path);
      return (text === value) === equals;
    }) &&
    (labels === everything || labels.matches(selectableOf(definition, stored).labels));
  return { matches, ...pins };
}
