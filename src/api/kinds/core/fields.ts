/**
 * Reading and filling fields of objects that may not have been validated yet. Readers answer the zero value where
 * a field is absent or of another type: the schema reports wrong types, and rules that come after it need not care.
 */

import type { Json, JsonObject, KubeObject } from '../../meta.ts';

/** Anything with fields. */
export type Fields = { readonly [field: string]: unknown };

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object in a field; undefined where there is none. */
export function objectAt(parent: Fields | undefined, field: string): JsonObject | undefined {
  const value = parent?.[field];
  return isObject(value) ? value : undefined;
}

/** The objects of a list; an empty object stands in for an item of another type, so that indexes stay right. */
export function objectsAt(parent: Fields | undefined, field: string): JsonObject[] {
  const value = parent?.[field];
  return Array.isArray(value) ? value.map((item: Json) => (isObject(item) ? item : {})) : [];
}

/** The string in a field, or the empty one. */
export function textAt(parent: Fields | undefined, field: string): string {
  const value = parent?.[field];
  return typeof value === 'string' ? value : '';
}

/** The strings of a list; others are left out. */
export function textsAt(parent: Fields | undefined, field: string): string[] {
  const value = parent?.[field];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === 'string') : [];
}

/** The number in a field. */
export function numberAt(parent: Fields | undefined, field: string): number | undefined {
  const value = parent?.[field];
  return typeof value === 'number' ? value : undefined;
}

/** Whether a field is true. */
export function isSet(parent: Fields | undefined, field: string): boolean {
  return parent?.[field] === true;
}

/** Whether a field is present at all; null counts as absent, as Go reads it. */
export function has(parent: Fields | undefined, field: string): boolean {
  return parent?.[field] !== undefined && parent[field] !== null;
}

/** The entries of a map of strings; others are left out. */
export function textEntriesAt(parent: Fields | undefined, field: string): [key: string, value: string][] {
  const entries = Object.entries(objectAt(parent, field) ?? {});
  return entries.filter((each): each is [string, string] => typeof each[1] === 'string');
}

/** A map of strings. */
export function textMapAt(parent: Fields | undefined, field: string): Record<string, string> {
  return Object.fromEntries(textEntriesAt(parent, field));
}

/** Fills a field that is absent, null, or the empty string, which to Go is the same. */
export function setDefault(object: JsonObject, field: string, value: Json): void {
  const present = object[field];
  if (present === undefined || present === null || present === '') object[field] = value;
}

/** Fills a number that is absent or zero, where zero means that nobody chose one. */
export function setDefaultNumber(object: JsonObject, field: string, value: number): void {
  const present = object[field];
  if (present === undefined || present === null || present === 0) object[field] = value;
}

/** The object in a field, put there if there is none. Undefined where something else is in the way. */
export function ensureObject(parent: JsonObject | KubeObject, field: string): JsonObject | undefined {
  const fields = parent as { [field: string]: unknown };
  const present = fields[field];
  if (present === undefined || present === null) {
    const created: JsonObject = {};
    fields[field] = created;
    return created;
  }
  return isObject(present) ? present : undefined;
}
