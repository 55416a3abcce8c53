import type { Json, JsonObject } from '../../api/meta.ts';
import { clone, setOwn } from '../clone.ts';
import { deepEqual } from '../equal.ts';

/**
 * The smallest JSON Merge Patch (RFC 7396) that makes one object of the other; an empty one where they are the same.
 * Undefined where none can: a merge patch cannot say that a field becomes null. Neither argument is changed.
 */
export function mergeDifference(before: JsonObject, after: JsonObject): JsonObject | undefined {
  const patch: JsonObject = {};
  for (const key of Object.keys(before)) {
    if (!Object.hasOwn(after, key)) setOwn(patch, key, null);
  }
  for (const key of Object.keys(after)) {
    const [old, value] = [Object.hasOwn(before, key) ? before[key] : undefined, after[key] as Json];
    if (deepEqual(old, value)) continue;
    const difference = isObject(old) && isObject(value) ? mergeDifference(old, value) : withoutNulls(value);
    if (difference === undefined) return undefined;
    setOwn(patch, key, difference);
  }
  return patch;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A copy of the value, or undefined where a null is in it, which whoever applies the patch might leave out. */
function withoutNulls(value: Json): Json | undefined {
  return hasNull(value) ? undefined : clone(value);
}

function hasNull(value: Json): boolean {
  if (value === null) return true;
  return typeof value === 'object' && Object.values(value).some(hasNull);
}
