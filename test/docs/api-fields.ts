import type { KubeObject } from '../../src/api/meta.ts';
import type { Schema } from '../../src/api/schema.ts';

/** Schemas as rows of tables. */

/** A field of a kind, with all that is below it. */
export interface Field {
  readonly path: string;
  readonly schema: Schema;
  readonly isRequired: boolean;
  /** Where it is told in full, if not here. */
  readonly toldAt: Place | undefined;
  readonly children: readonly Field[];
  /** All below it, at any depth, in the order of the schema. */
  readonly below: readonly Field[];
}

interface Place {
  readonly kind: string;
  readonly path: string;
}

/** A shape of fewer fields than this is told wherever it stands. */
const TOLD_ONCE_FROM = 3;
/** What pods have by the same name, and Kubernetes tells. */
const OF_PODS = ['affinity', 'tolerations', 'topologySpreadConstraints'];

/** The schema of a definition's newest version. */
export function schemaOf(definition: KubeObject): Schema {
  const { versions } = definition['spec'] as unknown as {
    versions: { schema: { openAPIV3Schema: Schema } }[];
  };
  return (versions[0] as (typeof versions)[number]).schema.openAPIV3Schema;
}

/** Where each shape is told: at its first place, in the order of kinds. Shapes are the same where they are one object. */
export function placesOf(kinds: readonly (readonly [kind: string, schema: Schema])[]): ReadonlyMap<Schema, Place> {
  const places = new Map<Schema, Place>();
  const visit = (kind: string, path: string, schema: Schema): void => {
    const [below, at] = inner(schema, path);
    if (below.properties) {
      if (places.has(below)) return;
      if (Object.keys(below.properties).length >= TOLD_ONCE_FROM) places.set(below, { kind, path });
    }
    for (const [name, child] of Object.entries(below.properties ?? {})) visit(kind, joined(at, name), child);
  };
  for (const [kind, schema] of kinds) visit(kind, '', schema);
  return places;
}

/** The fields of a kind. */
export function fieldsOf(kind: string, schema: Schema, places: ReadonlyMap<Schema, Place>, path = ''): Field[] {
  const [{ properties = {}, required = [] }, at] = inner(schema, path);
  return Object.entries(properties).map(([name, child]) => {
    const childPath = joined(at, name);
    const [below] = inner(child, childPath);
    const place = places.get(below);
    const toldAt = place && (place.kind !== kind || place.path !== childPath) ? place : undefined;
    const isToldElsewhere = toldAt !== undefined || OF_PODS.includes(name);
    const children = isToldElsewhere ? [] : fieldsOf(kind, child, places, childPath);
    return {
      path: childPath,
      schema: child,
      isRequired: required.includes(name),
      toldAt,
      children,
      below: children.flatMap((field) => [field, ...field.below]),
    };
  });
}

/** The row of a field in a table of field, type and description. */
export function fieldRow({ path, schema, isRequired, toldAt }: Field, remark = ''): string {
  const says = [
    ...(isRequired ? ['**Required.**'] : []),
    schema.description ?? '',
    ...rulesOf(schema),
    ...(toldAt ? [`As [${toldAt.kind}](#${toldAt.kind.toLowerCase()}) \`${toldAt.path}\`.`] : []),
    ...(OF_PODS.includes(path.split('.').at(-1) ?? '') ? ["As a Pod's."] : []),
    remark,
  ];
  return `| \`${path}\` | ${typeOf(schema)} | ${says
    .filter((text) => text !== '')
    .join(' ')
    .replaceAll('|', '\\|')} |`;
}

/** What has the properties, and the path to it: through lists and maps. */
function inner(schema: Schema, path: string): [Schema, string] {
  if (schema.items) return inner(schema.items, `${path}[]`);
  if (typeof schema.additionalProperties === 'object') return inner(schema.additionalProperties, `${path}{}`);
  return [schema, path];
}

const joined = (path: string, name: string): string => (path === '' ? name : `${path}.${name}`);

function typeOf(schema: Schema): string {
  if (schema.items) return `list of ${typeOf(schema.items)}`;
  if (typeof schema.additionalProperties === 'object') return `map of ${typeOf(schema.additionalProperties)}`;
  if (schema['x-kubernetes-int-or-string']) return 'quantity';
  if (schema.format === 'date-time') return 'time';
  if (schema.type === 'object' && schema['x-kubernetes-preserve-unknown-fields'] && !schema.properties)
    return 'object (kept)';
  return schema.type ?? 'any';
}

function rulesOf(schema: Schema): string[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, items } = schema;
  const values = (schema.enum ?? items?.enum)?.filter((value) => value !== '');
  const rules = schema['x-kubernetes-validations'] ?? [];
  return [
    ...(values
      ? [
          `One of ${values.map((value) => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``).join(', ')}.`,
        ]
      : []),
    ...(schema.default === undefined ? [] : [`Default: \`${JSON.stringify(schema.default)}\`.`]),
    ...bounds(minimum, maximum, ''),
    ...bounds(minLength, maxLength, ' characters'),
    ...bounds(minItems, maxItems, ' items'),
    ...(pattern && !schema['x-kubernetes-int-or-string'] ? [`Matches \`${pattern}\`.`] : []),
    ...rules.map(({ rule, message }) => `Rule: ${message ?? `\`${rule}\``}.`),
  ];
}

/** The largest number of a uint32 says nothing. */
const UINT32_MAX = 4_294_967_295;

function bounds(from: number | undefined, to: number | undefined, unit: string): string[] {
  const top = to === UINT32_MAX ? undefined : to;
  if (from !== undefined && top !== undefined) return [`${from} to ${top}${unit}.`];
  if (from !== undefined) return [`At least ${from}${unit}.`];
  return top === undefined ? [] : [`At most ${top}${unit}.`];
}
