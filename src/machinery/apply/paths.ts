/** Which paths of a value there are to own. */

import type { Json, JsonObject } from '../../api/meta.ts';
import { type FieldSet, type FieldSetBuilder, NOTHING, SELF, asMember, isEmpty } from './field-set.ts';
import { fieldElement, fieldNameOf } from './path-element.ts';
import { type MaybeSchema, indexItems, isAtomic, isDeclared, schemaOfField, shapeOf } from './typed.ts';

/** Every path of a value, containers included, as a node: what appears or disappears with it. */
export function everyPath(value: Json, schema: MaybeSchema): FieldSet {
  const shape = shapeOf(value, schema);
  if (shape === 'leaf') return NOTHING;
  const node: FieldSetBuilder = {};
  let isLeaf = true;
  if (shape === 'map') {
    const object = value as JsonObject;
    for (const key of Object.keys(object)) {
      if (object[key] === undefined) continue;
      if (isLeaf) node[SELF] = NOTHING;
      isLeaf = false;
      node[fieldElement(key)] = everyPath(object[key], schemaOfField(schema, key));
    }
  } else {
    for (const [element, items] of indexItems(value as Json[], schema) ?? []) {
      if (isLeaf) node[SELF] = NOTHING;
      isLeaf = false;
      // Items that share a key can only be owned together.
      node[element] = items.length > 1 ? NOTHING : everyPath(items[0] as Json, schema?.items);
    }
  }
  return isLeaf ? NOTHING : node;
}

/** Every path inside a container, without its own; undefined when there are none. */
export function pathsInside(value: Json, schema: MaybeSchema): FieldSet | undefined {
  const { [SELF]: self, ...inside } = everyPath(value, schema);
  return self === undefined ? undefined : inside;
}

/**
 * The paths that applying this value claims: leaves, list items, and entries of maps, but not the named objects on the
 * way to them. Empty when there are none.
 */
export function appliedPaths(value: JsonObject, schema: MaybeSchema): FieldSet {
  return claimedBy(value, schema) ?? NOTHING;
}

/** As a node; undefined when the value claims nothing, not even itself. */
function claimedBy(value: Json, schema: MaybeSchema): FieldSet | undefined {
  const shape = shapeOf(value, schema);
  if (shape === 'leaf') return NOTHING;
  return shape === 'map' ? claimedByMap(value as JsonObject, schema) : claimedByList(value as Json[], schema);
}

function claimedByMap(object: JsonObject, schema: MaybeSchema): FieldSet | undefined {
  const node: FieldSetBuilder = {};
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (value === undefined) continue;
    const claimed = claimedBy(value, schemaOfField(schema, key));
    const isEntry = !isDeclared(schema, key) || isEmptyMap(value);
    if (claimed !== undefined) node[fieldElement(key)] = isEntry ? asMember(claimed) : claimed;
    else if (isEntry) node[fieldElement(key)] = NOTHING;
  }
  return isEmpty(node) ? undefined : node;
}

function claimedByList(list: readonly Json[], schema: MaybeSchema): FieldSet | undefined {
  const items = indexItems(list, schema);
  if (items === undefined) return NOTHING;
  const node: FieldSetBuilder = {};
  for (const [element, same] of items) {
    const claimed = same.length > 1 ? undefined : claimedBy(same[0] as Json, schema?.items);
    node[element] = claimed === undefined ? NOTHING : asMember(claimed);
  }
  return isEmpty(node) ? undefined : node;
}

function isEmptyMap(value: Json): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && Object.keys(value).length === 0;
}

/** The set with all named objects that lead to its members: who owns `spec.replicas` has a stake in `spec`. */
export function withNamedFields(set: FieldSet, schema: MaybeSchema): FieldSet {
  return mapBelow(set, schema, (child, below, name) => {
    const node = withNamedFields(child, below);
    return name !== undefined && isDeclared(schema, name) ? asMember(node) : node;
  });
}

/** The set as the schema sees it now: paths into what has become atomic turn into the path of the whole. */
export function reconcileWithSchema(set: FieldSet, schema: MaybeSchema): FieldSet {
  return mapBelow(set, schema, (child, below) => (isAtomic(below) ? NOTHING : reconcileWithSchema(child, below)));
}

type Change = (child: FieldSet, schema: MaybeSchema, name: string | undefined) => FieldSet;

/** Changes the nodes of a set that have children; answers the set itself when nothing changed. */
function mapBelow(set: FieldSet, schema: MaybeSchema, change: Change): FieldSet {
  if (schema === undefined) return set;
  let result: FieldSetBuilder | undefined;
  for (const element of Object.keys(set)) {
    const child = set[element] as FieldSet;
    if (isEmpty(child)) continue;
    const name = fieldNameOf(element);
    const changed = change(child, name === undefined ? schema.items : schemaOfField(schema, name), name);
    if (changed === child) continue;
    result ??= { ...set };
    result[element] = changed;
  }
  return result ?? set;
}
