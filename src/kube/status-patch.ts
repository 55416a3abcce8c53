import type { JsonObject, KubeObject } from '../api/meta.ts';
import { deepEqual } from '../machinery/equal.ts';

/**
 * The merge patch that makes these fields of a status what they should be, for the version that was looked at: lists
 * have several writers, and a list is replaced as a whole. Fields that are to be absent are undefined; undefined is
 * returned where all is as it should be.
 */
export function statusPatch(object: KubeObject, next: object): JsonObject | undefined {
  const old = new Map(Object.entries((object['status'] as object | undefined) ?? {}));
  const changed = Object.entries(next).filter(([field, value]) => !deepEqual(old.get(field), value));
  if (changed.length === 0) return undefined;
  const { uid = '', resourceVersion = '' } = object.metadata;
  const status = Object.fromEntries(changed.map(([field, value]) => [field, merging(old.get(field), value)]));
  return { metadata: { uid, resourceVersion }, status };
}

/** A merge leaves in place what it does not name: what is gone from an object has to be named. */
function merging(old: unknown, next: unknown): JsonObject[string] {
  if (next === undefined) return null;
  if (!isObject(old) || !isObject(next)) return next as JsonObject[string];
  const gone = Object.keys(old).filter((field) => !Object.hasOwn(next, field) || next[field] === undefined);
  const kept = Object.entries(next).map(([field, value]) => [
    field,
    merging(Object.hasOwn(old, field) ? old[field] : undefined, value),
  ]);
  return Object.fromEntries([
    ...gone.map((field) => [field, null]),
    ...kept.filter(([, value]) => value !== null),
  ]) as JsonObject;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
