/** What a strategic merge patch may say besides values, and how to get rid of it. */

import type { Json, JsonObject } from '../../api/meta.ts';
import { type ApiError, badRequest } from '../../api/status.ts';
import { setOwn } from '../clone.ts';

export const DIRECTIVE = '$patch';
export const RETAIN_KEYS = '$retainKeys';
export const DELETE_FROM_PRIMITIVE_LIST = '$deleteFromPrimitiveList';
export const SET_ELEMENT_ORDER = '$setElementOrder';

/** Characters of a value that an error message shows. */
const SHOWN_LENGTH_MAX = 200;

/** The field that a directive such as `$setElementOrder/finalizers` is about. */
export function fieldOfDirective(
  directive: string,
  prefix: typeof DELETE_FROM_PRIMITIVE_LIST | typeof SET_ELEMENT_ORDER,
): string {
  if (directive.startsWith(`${prefix}/`)) return directive.slice(prefix.length + 1);
  const name = prefix === SET_ELEMENT_ORDER ? 'setElementOrder list' : 'primitive list';
  throw badRequest(`invalid patch format of ${name}`);
}

/**
 * Drops directives from a value that is taken whole, wherever they are: there is nothing that they could direct.
 * Undefined when the value is a directive itself. Changes the value.
 */
export function stripDirectives(value: Json): Json | undefined {
  if (Array.isArray(value)) {
    return value.map(stripDirectives).filter((item) => item !== undefined);
  }
  if (!isObject(value)) return value;
  if (Object.hasOwn(value, DIRECTIVE)) return undefined;
  for (const key of Object.keys(value)) {
    const stripped = isDirectiveKey(key) ? undefined : stripDirectives(value[key] as Json);
    if (stripped === undefined) delete value[key];
    else setOwn(value, key, stripped);
  }
  return value;
}

/** Whether a field of a patch is a directive about its neighbours rather than a value. */
export function isDirectiveKey(key: string): boolean {
  return key === RETAIN_KEYS || key.startsWith(DELETE_FROM_PRIMITIVE_LIST) || key.startsWith(SET_ELEMENT_ORDER);
}

/** Drops fields that are null, also in the items of lists: nothing is there that they could delete. Changes the value. */
export function discardNulls(value: Json): void {
  if (Array.isArray(value)) {
    for (const item of value) discardNulls(item);
  } else if (isObject(value)) {
    for (const key of Object.keys(value)) {
      if (value[key] === null) delete value[key];
      else discardNulls(value[key] as Json);
    }
  }
}

/** The error for a list item without the field that identifies it. */
export function noMergeKey(item: Json, mergeKey: string): ApiError {
  return badRequest(`map: ${describe(item)} does not contain declared merge key: ${mergeKey}`);
}

/** A value as error messages show it. */
export function describe(value: Json): string {
  const text = JSON.stringify(value);
  return text.length > SHOWN_LENGTH_MAX ? `${text.slice(0, SHOWN_LENGTH_MAX)}...` : text;
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
