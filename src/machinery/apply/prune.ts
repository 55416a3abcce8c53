/** Taking out what an applier once applied, applies no longer, and nobody else owns. */

import type { Json, JsonObject } from '../../api/meta.ts';
import { setOwn } from '../clone.ts';
import { type FieldSet, NOTHING, difference, intersection, isEmpty, isMember, union } from './field-set.ts';
import { fieldElement } from './path-element.ts';
import { appliedPaths, pathsInside, withNamedFields } from './paths.ts';
import { type MaybeSchema, elementOf, schemaOfField, shapeOf } from './typed.ts';

/**
 * The merged object without the paths in `last` (what the applier owned before) that are not in `owned` (what anyone,
 * the applier included, owns now). A container that others still have something in stays.
 */
export function prune(merged: JsonObject, last: FieldSet, owned: FieldSet, schema: MaybeSchema): JsonObject {
  if (isEmpty(last)) return merged;
  const lastNamed = withNamedFields(last, schema);
  const all = withNamedFields(appliedPaths(merged, schema), schema);
  // Removing an item removes everything in it, also what others own: those parts are put back first, and after them
  // the parts that the applier never owned.
  const withoutLast = pathsWithout(merged, lastNamed, schema);
  const withOwned = pathsWithout(merged, difference(all, union(withoutLast, withNamedFields(owned, schema))), schema);
  const doomed = intersection(difference(all, withOwned), lastNamed);
  return removePaths(merged, doomed, schema);
}

function pathsWithout(value: JsonObject, doomed: FieldSet, schema: MaybeSchema): FieldSet {
  return pathsInside(removePaths(value, doomed, schema), schema) ?? NOTHING;
}

/** The object without these paths and what is below them. A container that is not among them stays, if only empty. */
function removePaths(value: JsonObject, doomed: FieldSet, schema: MaybeSchema): JsonObject {
  return isEmpty(doomed) ? value : removeFromMap(value, doomed, schema);
}

function removeFromMap(object: JsonObject, doomed: FieldSet, schema: MaybeSchema): JsonObject {
  const result: JsonObject = {};
  for (const key of Object.keys(object)) {
    const value = object[key];
    if (value === undefined) continue;
    const left = removeFromValue(value, doomed[fieldElement(key)], schemaOfField(schema, key));
    if (left !== undefined) setOwn(result, key, left);
  }
  return result;
}

function removeFromList(list: readonly Json[], doomed: FieldSet, schema: MaybeSchema): Json[] {
  const result: Json[] = [];
  for (const item of list) {
    const element = elementOf(item, schema);
    const left = removeFromValue(item, element === undefined ? undefined : doomed[element], schema?.items);
    if (left !== undefined) result.push(left);
  }
  return result;
}

function removeFromValue(value: Json, doomed: FieldSet | undefined, schema: MaybeSchema): Json | undefined {
  if (doomed === undefined) return value;
  if (isMember(doomed)) return undefined;
  const shape = shapeOf(value, schema);
  if (shape === 'leaf') return value;
  if (shape === 'map') return removeFromMap(value as JsonObject, doomed, schema);
  return removeFromList(value as Json[], doomed, schema);
}
