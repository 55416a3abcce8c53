import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';

/**
 * Which old item an item of a list was. Only lists keyed by fields can tell: items of sets are their own identity,
 * and atomic lists are one value.
 */
export function correlateItems(schema: Schema, old: Json | undefined): (item: Json) => Json | undefined {
  const keys = schema['x-kubernetes-list-map-keys'];
  if (schema['x-kubernetes-list-type'] !== 'map' || keys === undefined || !Array.isArray(old)) return () => undefined;
  const byKey = new Map<string, Json>();
  for (const item of old) {
    const key = itemKey(item, keys);
    // Of several old items with one key the first stands; the list was invalid then.
    if (key !== undefined && !byKey.has(key)) byKey.set(key, item);
  }
  return (item) => {
    const key = itemKey(item, keys);
    return key === undefined ? undefined : byKey.get(key);
  };
}

/** The key fields of an item as one text; undefined where the item is no object. */
export function itemKey(item: Json, keys: readonly string[]): string | undefined {
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return undefined;
  return JSON.stringify(keys.map((key) => (Object.hasOwn(item, key) ? [(item as JsonObject)[key]] : [])));
}
