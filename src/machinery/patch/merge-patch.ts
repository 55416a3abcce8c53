import type { Json, JsonObject } from '../../api/meta.ts';
import { badRequest } from '../../api/status.ts';
import { clone, setOwn } from '../clone.ts';
import { goNameOf } from '../go-text.ts';

/**
 * JSON Merge Patch (RFC 7396) as kube-apiserver applies it: the patch must be an object, and what it adds as a whole is
 * cleared of nulls, also inside lists. Answers a new document; neither argument is changed. 400 when malformed.
 */
export function applyMergePatch(document: Json, patch: Json): Json {
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
  const merged: JsonObject = {};
  for (const key of Object.keys(target)) {
    if (!Object.hasOwn(patch, key)) setOwn(merged, key, clone(target[key]));
    else if (patch[key] !== null) setOwn(merged, key, merge(target[key], patch[key] as Json));
  }
  for (const key of Object.keys(patch)) {
    if (patch[key] !== null && !Object.hasOwn(target, key)) setOwn(merged, key, withoutNulls(patch[key] as Json));
  }
  return merged;
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
