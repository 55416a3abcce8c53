import type { Json, JsonObject } from '../../api/meta.ts';
import { badRequest } from '../../api/status.ts';
import { clone, setOwn } from '../clone.ts';
import { goNameOf } from '../go-text.ts';

/**
 * JSON Merge Patch (RFC 7396) as kube-apiserver applies it: the patch must be an object, and what it adds as a whole is
 * cleared of nulls, also inside lists. Answers a new document; neither argument is changed. 400 when malformed.
 */
export function applyMergePatch(document: Json, patch: Json): Json {
  return clone(mergeSharing(document, patch));
}

/** The same, except that the parts of the document that the patch does not name are the very same in the new one. */
export function mergeSharing(document: Json, patch: Json): Json {
  if (!isObject(patch)) {
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${goNameOf(patch)} into Go value of type map[string]interface {}`,
    );
  }
  return merge(document, patch);
}

function merge(target: Json | undefined, patch: Json): Json {
  if (!isObject(target)) return withoutNulls(patch);
  if (!isObject(patch)) return clone(patch);
  const keys = Object.keys(patch);
  const merged = keys.some((key) => patch[key] === null) ? withoutFields(target, patch) : { ...target };
  for (const key of keys) {
    const value = patch[key] as Json;
    if (value === null) continue;
    setOwn(merged, key, Object.hasOwn(target, key) ? merge(target[key], value) : withoutNulls(value));
  }
  return merged;
}

/** A copy without the fields that the patch says are to go: one that they are deleted from later would be a slow one. */
function withoutFields(target: JsonObject, patch: JsonObject): JsonObject {
  const kept: JsonObject = {};
  for (const key of Object.keys(target)) {
    const goes = Object.hasOwn(patch, key) && patch[key] === null;
    if (!goes) setOwn(kept, key, target[key]);
  }
  return kept;
}

/** A copy without the fields that are null; null elements of lists stay. */
function withoutNulls(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (!isObject(value)) return value;
  const copy: JsonObject = {};
  for (const key of Object.keys(value)) {
    if (value[key] !== null) setOwn(copy, key, withoutNulls(value[key] as Json));
  }
  return copy;
}

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
