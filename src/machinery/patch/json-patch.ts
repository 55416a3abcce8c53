/**
 * JSON Patch (RFC 6902) with the manners of the library that kube-apiserver uses, because clients depend on them:
 * `replace` of a field that is missing adds it, `copy` of a missing field adds null, a missing field and null pass the
 * same `test`, indexes may be negative and count from the end, and only the root cannot be added, moved or removed.
 */

import type { Json, JsonObject } from '../../api/meta.ts';
import { ApiError, badRequest } from '../../api/status.ts';
import { clone, setOwn } from '../clone.ts';
import { NESTING_DEPTH_MAX } from '../decode.ts';
import { deepEqual } from '../equal.ts';
import { goNameOf } from '../go-text.ts';
import { rejectPatch } from './rejection.ts';

/** Operations that one patch may hold; kube-apiserver's limit. */
export const JSON_PATCH_OPERATIONS_MAX = 10_000;
/** Bytes that all `copy` operations of one patch may add, so that a small patch cannot make a huge object. */
const JSON_PATCH_COPY_BYTES_MAX = 3 * 1024 * 1024;

interface Operation {
  readonly op: string;
  readonly path: string;
  readonly from: string | undefined;
  /** Undefined where the operation names none: adding it adds null. */
  readonly value: Json | undefined;
}

interface State {
  root: JsonObject | Json[];
  copiedBytes: number;
}

/** Where a path leads: the object or list that holds it, and the key or index in there. */
interface Location {
  readonly parent: JsonObject | Json[];
  readonly key: string;
}

/** Applies a JSON patch and answers a new document; neither argument is changed. 400 when malformed, 422 when it does not apply. */
export function applyJsonPatch(document: Json, patch: Json): Json {
  const operations = parsePatch(patch);
  const root = clone(document);
  if (!isContainer(root)) throw rejectPatch('the document is neither an object nor a list');
  const state: State = { root, copiedBytes: 0 };
  for (const operation of operations) applyOperation(state, operation);
  checkDepth(state.root, 1);
  return state.root;
}

function parsePatch(patch: Json): Operation[] {
  if (patch === null) return [];
  if (!Array.isArray(patch)) {
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${goNameOf(patch)} into Go value of type []handlers.jsonPatchOp`,
    );
  }
  if (patch.length > JSON_PATCH_OPERATIONS_MAX) {
    throw new ApiError(
      413,
      'RequestEntityTooLarge',
      `Request entity too large: The allowed maximum operations in a JSON patch is ${JSON_PATCH_OPERATIONS_MAX}, got ${patch.length}`,
    );
  }
  return patch.map(parseOperation);
}

function parseOperation(operation: Json, index: number): Operation {
  if (typeof operation !== 'object' || operation === null || Array.isArray(operation)) {
    throw badRequest(
      `error decoding patch: json: cannot unmarshal ${goNameOf(operation)} into Go value of type handlers.jsonPatchOp`,
    );
  }
  const op = stringField(operation, 'op', index);
  const path = stringField(operation, 'path', index);
  if (path === undefined) throw rejectPatch(`operation ${index} has no path`);
  return {
    op: op ?? 'unknown',
    path,
    from: stringField(operation, 'from', index),
    value: Object.hasOwn(operation, 'value') ? operation['value'] : undefined,
  };
}

function stringField(operation: JsonObject, field: string, index: number): string | undefined {
  const value = Object.hasOwn(operation, field) ? operation[field] : undefined;
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string')
    throw badRequest(`error decoding patch: ${field} of operation ${index} is not a string`);
  return value;
}

function applyOperation(state: State, operation: Operation): void {
  switch (operation.op) {
    case 'add':
      return insert(locate(state, operation.path), clone(operation.value ?? null));
    case 'remove':
      return remove(locate(state, operation.path));
    case 'replace':
      return replace(state, operation);
    case 'move':
      return move(state, operation);
    case 'copy':
      return copy(state, operation);
    case 'test':
      return test(state, operation);
    default:
      throw rejectPatch(`unexpected kind of operation: ${operation.op}`);
  }
}

function replace(state: State, operation: Operation): void {
  const value = clone(operation.value ?? null);
  if (operation.path === '') {
    if (!isContainer(value)) throw rejectPatch('the whole document can only be replaced by an object or a list');
    state.root = value;
    return;
  }
  const { parent, key } = locate(state, operation.path);
  if (Array.isArray(parent)) parent[existingIndex(parent, key)] = value;
  else setOwn(parent, key, value);
}

function move(state: State, operation: Operation): void {
  const source = locate(state, operation.from);
  const value = read(source) ?? null;
  remove(source);
  insert(locate(state, operation.path), value);
}

function copy(state: State, operation: Operation): void {
  const value = read(locate(state, operation.from));
  const target = locate(state, operation.path);
  if (value !== undefined) {
    checkDepth(value, 1);
    state.copiedBytes += Buffer.byteLength(JSON.stringify(value));
    if (state.copiedBytes > JSON_PATCH_COPY_BYTES_MAX) {
      throw rejectPatch(`copies add ${state.copiedBytes} bytes, the limit is ${JSON_PATCH_COPY_BYTES_MAX}`);
    }
  }
  insert(target, clone(value ?? null));
}

function test(state: State, operation: Operation): void {
  if (operation.value === undefined) throw rejectPatch(`test of ${operation.path} names no value`);
  const actual = operation.path === '' ? state.root : (read(locate(state, operation.path)) ?? null);
  if (!deepEqual(actual, operation.value)) throw rejectPatch(`testing value ${operation.path} failed`);
}

function locate(state: State, path: string | undefined): Location {
  if (path === undefined) throw rejectPatch('the operation has no from');
  const segments = path.split('/');
  const last = segments.length - 1;
  if (last < 1) throw rejectPatch(`the document has no path ${JSON.stringify(path)}`);
  let parent = state.root;
  for (let index = 1; index < last; index++) {
    const next = read({ parent, key: unescape(segments[index] as string) });
    if (!isContainer(next)) throw rejectPatch(`the document is missing path ${JSON.stringify(path)}`);
    parent = next;
  }
  return { parent, key: unescape(segments[last] as string) };
}

/** RFC 6901: `~1` is a slash and `~0` a tilde, in one pass so that `~01` is `~1`. */
function unescape(segment: string): string {
  return segment.includes('~') ? segment.replaceAll(/~[01]/g, (escape) => (escape === '~1' ? '/' : '~')) : segment;
}

function read({ parent, key }: Location): Json | undefined {
  if (Array.isArray(parent)) return parent[existingIndex(parent, key)];
  return Object.hasOwn(parent, key) ? parent[key] : undefined;
}

function insert({ parent, key }: Location, value: Json): void {
  if (!Array.isArray(parent)) setOwn(parent, key, value);
  else if (key === '-') parent.push(value);
  else parent.splice(indexWithin(key, parent.length + 1), 0, value);
}

function remove({ parent, key }: Location): void {
  if (Array.isArray(parent)) {
    parent.splice(existingIndex(parent, key), 1);
    return;
  }
  if (!Object.hasOwn(parent, key)) throw rejectPatch(`unable to remove nonexistent key: ${key}`);
  delete parent[key];
}

function existingIndex(list: readonly Json[], key: string): number {
  return indexWithin(key, list.length);
}

/** An index as Go's Atoi reads it; a negative one counts from the end. */
function indexWithin(key: string, length: number): number {
  if (!/^[+-]?[0-9]+$/.test(key)) throw rejectPatch(`value was not a proper array index: '${key}'`);
  const given = Number(key);
  const index = given < 0 ? given + length : given + 0;
  if (index < 0 || index >= length) throw rejectPatch(`unable to access invalid index: ${key}`);
  return index;
}

function isContainer(value: Json | undefined): value is JsonObject | Json[] {
  return typeof value === 'object' && value !== null;
}

/** Moves can nest an object ever deeper without making it larger; everything after us walks it recursively. */
function checkDepth(value: Json, depth: number): void {
  if (!isContainer(value)) return;
  if (depth > NESTING_DEPTH_MAX) throw rejectPatch(`the patch nests deeper than ${NESTING_DEPTH_MAX} levels`);
  for (const child of Array.isArray(value) ? value : Object.values(value)) checkDepth(child, depth + 1);
}
