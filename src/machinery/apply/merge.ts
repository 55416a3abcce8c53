/** Merging an applied configuration into the live object. Nothing is removed here; that is pruning's work. */

import type { Json, JsonObject } from '../../api/meta.ts';
import { setOwn } from '../clone.ts';
import type { PathElement } from './path-element.ts';
import { type ItemsByElement, type MaybeSchema, elementOf, indexItems, schemaOfField, shapeOf } from './typed.ts';

/**
 * The live value with everything that the applied one says. What is atomic is replaced, the rest is merged; an applied
 * null or empty container leaves a container's contents alone. The result shares parts with both.
 */
export function mergeTyped(live: Json | undefined, applied: Json | undefined, schema: MaybeSchema): Json | undefined {
  if (applied === undefined) return live;
  if (live === undefined) return applied;
  const shape = shapeOf(applied === null ? live : applied, schema);
  if (applied === null) return shape === 'leaf' || isEmptyContainer(live) ? applied : live;
  if (shape === 'leaf' || shapeOf(live, schema) !== shape) return applied;
  if (shape === 'map') return mergeMaps(live as JsonObject, applied as JsonObject, schema);
  return mergeLists(live as Json[], applied as Json[], schema);
}

function isEmptyContainer(value: Json): boolean {
  return typeof value === 'object' && value !== null && Object.keys(value).length === 0;
}

function mergeMaps(live: JsonObject, applied: JsonObject, schema: MaybeSchema): JsonObject {
  const merged: JsonObject = {};
  for (const key of Object.keys(live)) {
    const own = Object.hasOwn(applied, key) ? applied[key] : undefined;
    const value = mergeTyped(live[key], own, schemaOfField(schema, key));
    if (value !== undefined) setOwn(merged, key, value);
  }
  for (const key of Object.keys(applied)) {
    if (applied[key] !== undefined && !Object.hasOwn(live, key)) setOwn(merged, key, applied[key]);
  }
  return merged;
}

/**
 * Merges lists by their items. The applied order wins among the applied items; live items that are not applied keep
 * their place relative to the shared items around them.
 */
function mergeLists(live: readonly Json[], applied: readonly Json[], schema: MaybeSchema): Json[] {
  const [liveItems, appliedItems] = [indexItems(live, schema), indexItems(applied, schema)];
  if (liveItems === undefined || appliedItems === undefined) return [...applied];
  const merge = (element: PathElement): Json => {
    const [own, ...duplicates] = liveItems.get(element) ?? [];
    const [value] = appliedItems.get(element) as readonly Json[];
    return mergeTyped(duplicates.length > 0 ? undefined : own, value, schema?.items) as Json;
  };
  return interleave(live, liveItems, appliedItems, schema, merge);
}

function interleave(
  live: readonly Json[],
  liveItems: ItemsByElement,
  appliedItems: ItemsByElement,
  schema: MaybeSchema,
  merge: (element: PathElement) => Json,
): Json[] {
  const result: Json[] = [];
  const order = [...appliedItems.keys()];
  const shared = order.filter((element) => liveItems.has(element));
  let [next, nextShared] = [0, 0];
  for (const item of live) {
    const element = elementOf(item, schema) as PathElement;
    if (!appliedItems.has(element)) {
      result.push(item);
    } else if (element === shared[nextShared]) {
      do result.push(merge(order[next] as PathElement));
      while (order[next++] !== element);
      nextShared++;
    }
  }
  return [...result, ...order.slice(next).map(merge)];
}
