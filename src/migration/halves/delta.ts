import type { Json, JsonObject } from '../../api/meta.ts';
import { setOwn } from '../../machinery/clone.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { applyMergePatch } from '../../machinery/patch/merge-patch.ts';
import type { SourceHalf, TargetHalf } from './half.ts';

/**
 * What changed of a half, as a JSON merge patch, and back. A patch that somebody else wrote is applied to what they said
 * before, and the result is then parsed like any other half.
 */

/** The merge patch that makes one half of the other; an empty one where they are the same. */
export function delta(before: SourceHalf | TargetHalf, after: SourceHalf | TargetHalf): JsonObject {
  return difference(before as unknown as JsonObject, after as unknown as JsonObject);
}

/** A half, once a patch was applied. It has yet to be parsed. */
export function patched(before: SourceHalf | TargetHalf, patch: JsonObject): Json {
  return applyMergePatch(before as unknown as Json, patch);
}

function difference(before: JsonObject, after: JsonObject): JsonObject {
  const patch: JsonObject = {};
  for (const field of Object.keys(before)) if (valueOf(after, field) === undefined) setOwn(patch, field, null);
  for (const field of Object.keys(after)) {
    const [old, next] = [valueOf(before, field), valueOf(after, field)];
    if (next === undefined || deepEqual(old, next)) continue;
    setOwn(patch, field, isObject(old) && isObject(next) ? difference(old, next) : next);
  }
  return patch;
}

function valueOf(object: JsonObject, field: string): Json | undefined {
  return Object.hasOwn(object, field) ? (object[field] as Json | undefined) : undefined;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
