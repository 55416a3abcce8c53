/**
 * How the schema splits an object into fields that can have different owners.
 *
 * Maps and objects are granular (each field on its own) unless the schema says atomic; lists are atomic unless they are
 * sets or keyed by some of their items' fields. Below the end of the schema (unknown fields that are preserved) maps
 * are granular and lists atomic. Whatever does not fit its schema is atomic: a value that validation should have
 * refused must not stop a write.
 */

import type { Json } from '../../api/meta.ts';
import { objectMeta } from '../../api/kinds/meta.ts';
import { type Schema, str } from '../../api/schema.ts';
import { type PathElement, keyElement, valueElement } from './path-element.ts';

/** Undefined below the end of the schema. */
export type MaybeSchema = Schema | undefined;

/** `leaf` is everything that has one owner: scalars, and what is atomic. */
type Shape = 'leaf' | 'map' | 'list';

export function shapeOf(value: unknown, schema: MaybeSchema): Shape {
  if (typeof value !== 'object' || value === null) return 'leaf';
  if (Array.isArray(value)) return schema !== undefined && isGranularList(schema) ? 'list' : 'leaf';
  return schema === undefined || isGranularMap(schema) ? 'map' : 'leaf';
}

function isGranularList(schema: Schema): boolean {
  if (schema.type !== undefined && schema.type !== 'array') return false;
  return schema['x-kubernetes-list-type'] === 'set' || schema['x-kubernetes-list-type'] === 'map';
}

function isGranularMap(schema: Schema): boolean {
  if (schema.type !== undefined && schema.type !== 'object') return false;
  return schema['x-kubernetes-map-type'] !== 'atomic' && schema.format !== 'raw';
}

/** Whether values of this schema can only be owned as a whole. False where the schema leaves it open. */
export function isAtomic(schema: MaybeSchema): boolean {
  if (schema?.type === 'array') return !isGranularList(schema);
  return schema?.type === 'object' && !isGranularMap(schema);
}

/** Whether the schema names this field, rather than allowing it among others. */
export function isDeclared(schema: MaybeSchema, field: string): boolean {
  return schema?.properties !== undefined && Object.hasOwn(schema.properties, field);
}

/** The schema of a field or map entry. */
export function schemaOfField(schema: MaybeSchema, field: string): MaybeSchema {
  if (schema === undefined) return undefined;
  if (isDeclared(schema, field)) return schema.properties?.[field];
  return typeof schema.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

/** A list by the elements that name its items, in order of first appearance. More than one item: duplicates. */
export type ItemsByElement = ReadonlyMap<PathElement, readonly Json[]>;

/** Indexes a granular list. Undefined when an item cannot be told from others: then the list can only be atomic. */
export function indexItems(list: readonly Json[], schema: MaybeSchema): ItemsByElement | undefined {
  const items = new Map<PathElement, Json[]>();
  for (const item of list) {
    const element = elementOf(item, schema);
    if (element === undefined) return undefined;
    const same = items.get(element);
    if (same === undefined) items.set(element, [item]);
    else same.push(item);
  }
  return items;
}

/** The element that names an item of a granular list; undefined for an item without any of the list's keys. */
export function elementOf(item: Json, schema: MaybeSchema): PathElement | undefined {
  const keys = schema?.['x-kubernetes-list-type'] === 'map' ? sortedKeysOf(schema) : undefined;
  if (keys === undefined) return valueElement(item);
  if (typeof item !== 'object' || item === null || Array.isArray(item)) return undefined;
  const fields: [string, Json][] = [];
  for (const key of keys) {
    const value = Object.hasOwn(item, key) ? item[key] : absentKey(schema?.items, key);
    // A key field that is absent and has no default is no part of the identity.
    if (value !== undefined) fields.push([key, value]);
  }
  return fields.length === 0 ? undefined : keyElement(fields);
}

/** What an item without this key field has in it. Go's required fields cannot be absent: they are zero. */
function absentKey(items: MaybeSchema, key: string): Json | undefined {
  const field = schemaOfField(items, key);
  const isZero = items?.name !== undefined && items.required?.includes(key) === true;
  return field?.default ?? (isZero ? (field?.type === 'integer' ? 0 : '') : undefined);
}

const sortedKeys = new WeakMap<readonly string[], readonly string[]>();

function sortedKeysOf(schema: Schema): readonly string[] | undefined {
  const keys = schema['x-kubernetes-list-map-keys'];
  if (keys === undefined || keys.length < 2) return keys;
  let sorted = sortedKeys.get(keys);
  if (sorted === undefined) {
    sorted = keys.toSorted();
    sortedKeys.set(keys, sorted);
  }
  return sorted;
}

const rootSchemas = new WeakMap<Schema, Schema>();

/**
 * The schema of a whole object with the parts that all objects share: a CRD's schema leaves metadata open, but its
 * finalizers are a set there too.
 */
export function rootSchemaOf(schema: Schema): Schema {
  if (schema.properties?.['metadata']?.properties !== undefined) return schema;
  let root = rootSchemas.get(schema);
  if (root === undefined) {
    root = { ...schema, properties: { apiVersion: str(), kind: str(), ...schema.properties, metadata: objectMeta } };
    rootSchemas.set(schema, root);
  }
  return root;
}
