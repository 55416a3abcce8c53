/**
 * Strategic merge patch, the dialect that kubectl speaks for built-in kinds. It is a merge patch in which the schema
 * says which lists are merged (by key, or as sets of scalars), and in which directives say what a merge cannot:
 *
 *     $patch: replace | delete                 in a map, or in an item of a merged list
 *     $retainKeys: [a, b]                      drops all other fields of this map first
 *     $deleteFromPrimitiveList/field: [x]      takes scalars out of a merged list
 *     $setElementOrder/field: [x, y]           the order of a merged list afterwards
 *
 * Like kube-apiserver's, the work is done in place, but on copies: arguments are never changed.
 */

import type { Json, JsonObject } from '../../api/meta.ts';
import type { Schema } from '../../api/schema.ts';
import { type ApiError, badRequest } from '../../api/status.ts';
import { clone, setOwn } from '../clone.ts';
import { applyElementOrder, kindOfElements, mergeOrder } from './element-order.ts';
import {
  DELETE_FROM_PRIMITIVE_LIST,
  DIRECTIVE,
  RETAIN_KEYS,
  SET_ELEMENT_ORDER,
  describe,
  discardNulls,
  fieldOfDirective,
  isDirectiveKey,
  isObject,
  noMergeKey,
  stripDirectives,
} from './strategic-directives.ts';

/** Where schemas end (raw JSON), maps merge and lists are replaced. */
type MaybeSchema = Schema | undefined;

/** How the list or map in a field is to be merged. */
interface FieldPlan {
  readonly strategy: 'merge' | 'replace' | '';
  readonly mergeKey: string;
  /** Of the field's value, or of its items for a list. */
  readonly schema: MaybeSchema;
}

/** Applies a strategic merge patch and answers a new document. 400 when malformed, 422 for lists of lists. */
export function applyStrategicMergePatch(document: Json, patch: Json, schema: Schema): Json {
  if (!isObject(document) || !isObject(patch)) throw badRequest('invalid JSON document');
  return mergeMap(clone(document), clone(patch), schema);
}

/** Merges `patch` into `original`. Both are ours to change. */
function mergeMap(original: JsonObject, patch: JsonObject, schema: MaybeSchema): JsonObject {
  if (Object.hasOwn(patch, DIRECTIVE)) return obeyDirective(patch);
  retainKeys(original, patch);
  orderLists(original, patch, schema);
  // Deletions come first: what one patch both takes out of a list and puts into it is there afterwards.
  const [deletions, values] = [true, false].map((isDeletion) =>
    Object.keys(patch).filter((key) => key.startsWith(DELETE_FROM_PRIMITIVE_LIST) === isDeletion),
  ) as [string[], string[]];
  for (const key of [...deletions, ...values]) mergeField(original, key, patch[key] as Json, schema);
  return original;
}

function obeyDirective(patch: JsonObject): JsonObject {
  const directive = patch[DIRECTIVE];
  if (directive === 'delete') return {};
  if (directive !== 'replace') throw unknownDirective(patch);
  delete patch[DIRECTIVE];
  return patch;
}

function mergeField(original: JsonObject, key: string, value: Json, schema: MaybeSchema): void {
  const isDeletion = key.startsWith(DELETE_FROM_PRIMITIVE_LIST);
  const field = isDeletion ? fieldOfDirective(key, DELETE_FROM_PRIMITIVE_LIST) : key;
  if (value === null) {
    delete original[field];
    return;
  }
  const current = Object.hasOwn(original, field) ? original[field] : undefined;
  if (isObject(current) && isObject(value)) {
    const plan = planOf(schema, field, false);
    setOwn(original, field, plan.strategy === 'replace' ? value : mergeMap(current, value, plan.schema));
  } else if (Array.isArray(current) && Array.isArray(value)) {
    setOwn(original, field, mergeListField(current, value, planOf(schema, field, true), isDeletion));
  } else if (!isDeletion) {
    takeWhole(original, field, value);
  }
}

/** Sets a field to what the patch says as it is: there is nothing to merge it with. */
function takeWhole(original: JsonObject, field: string, value: Json): void {
  discardNulls(value);
  const stripped = stripDirectives(value);
  if (stripped === undefined) delete original[field];
  else setOwn(original, field, stripped);
}

function mergeListField(current: Json[], patch: Json[], plan: FieldPlan, isDeletion: boolean): Json[] {
  if (isDeletion) return deleteScalars(current, patch);
  return plan.strategy === 'merge' ? mergeList(current, patch, plan) : patch;
}

function deleteScalars(current: Json[], unwanted: readonly Json[]): Json[] {
  if (kindOfElements([current, unwanted]) === 'object') throw badRequest('invalid patch format of primitive list');
  const set = new Set(unwanted);
  return current.filter((item) => !set.has(item));
}

function mergeList(original: Json[], patch: Json[], plan: FieldPlan): Json[] {
  const kind = kindOfElements([original, patch]);
  if (kind === undefined) return original;
  if (kind !== 'object') {
    return mergeOrder([...new Set([...original, ...patch])], patch, original, (item) => item);
  }
  const { mergeKey } = plan;
  if (mergeKey === '') throw badRequest(`cannot merge lists without merge key for ${plan.schema?.name ?? 'object'}`);
  const kept = obeyItemDirectives(original as JsonObject[], patch as JsonObject[], mergeKey);
  const merged = mergeItems(kept.original, kept.patch, mergeKey, plan.schema);
  return mergeOrder(merged, kept.patch, kept.original, (item) => keyOf(item, mergeKey));
}

/** Carries out `$patch` items of a merged list; answers what is left to merge. */
function obeyItemDirectives(
  original: JsonObject[],
  patch: JsonObject[],
  mergeKey: string,
): { original: JsonObject[]; patch: JsonObject[] } {
  const plain: JsonObject[] = [];
  const deleted = new Set<Json>();
  let isReplaced = false;
  for (const item of patch) {
    if (!Object.hasOwn(item, DIRECTIVE)) plain.push(item);
    else if (item[DIRECTIVE] === 'delete') deleted.add(keyOf(item, mergeKey));
    else if (item[DIRECTIVE] === 'replace') isReplaced = true;
    else if (item[DIRECTIVE] === 'merge') throw badRequest('merging lists cannot yet be specified in the patch');
    else throw unknownDirective(item);
  }
  if (isReplaced) return { original: plain, patch: [] };
  if (deleted.size === 0) return { original, patch: plain };
  const remaining = original.filter((item) => !(Object.hasOwn(item, mergeKey) && deleted.has(item[mergeKey] as Json)));
  return { original: remaining, patch: plain };
}

function mergeItems(
  original: readonly JsonObject[],
  patch: readonly JsonObject[],
  mergeKey: string,
  schema: MaybeSchema,
): JsonObject[] {
  const merged = [...original];
  const positions = new Map<Json, number>();
  for (const [index, item] of merged.entries()) {
    if (!Object.hasOwn(item, mergeKey)) continue;
    const key = item[mergeKey] as Json;
    if (!positions.has(key)) positions.set(key, index);
  }
  for (const item of patch) {
    const key = keyOf(item, mergeKey);
    const position = positions.get(key);
    if (position === undefined) {
      discardNulls(item);
      positions.set(key, merged.push(stripDirectives(item) as JsonObject) - 1);
    } else {
      merged[position] = mergeMap(merged[position] as JsonObject, item, schema);
    }
  }
  return merged;
}

function keyOf(item: Json, mergeKey: string): Json {
  if (!isObject(item) || !Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey);
  return item[mergeKey] as Json;
}

/** Obeys `$retainKeys`: fields it does not name go, and the patch may name no others. */
function retainKeys(original: JsonObject, patch: JsonObject): void {
  if (!Object.hasOwn(patch, RETAIN_KEYS)) return;
  const list = patch[RETAIN_KEYS];
  delete patch[RETAIN_KEYS];
  if (!Array.isArray(list)) throw badRequest('invalid patch format of retainKeys');
  const retained = new Set(list);
  for (const key of Object.keys(patch)) {
    if (patch[key] === null || isDirectiveKey(key) || retained.has(key)) continue;
    throw badRequest('invalid patch format of retainKeys');
  }
  for (const key of Object.keys(original)) if (!retained.has(key)) delete original[key];
}

/** Obeys each `$setElementOrder/field`, merging the field's list on the way and taking both out of the patch. */
function orderLists(original: JsonObject, patch: JsonObject, schema: MaybeSchema): void {
  for (const directive of Object.keys(patch)) {
    if (!directive.startsWith(SET_ELEMENT_ORDER)) continue;
    const order = patch[directive];
    delete patch[directive];
    const field = fieldOfDirective(directive, SET_ELEMENT_ORDER);
    if (!Array.isArray(order)) throw badRequest('invalid patch format of setElementOrder list');
    const current = listIn(original, field);
    const changes = listIn(patch, field);
    if (current === undefined && changes === undefined) continue;
    delete patch[field];
    const plan = planOf(schema, field, true);
    setOwn(original, field, mergeInOrder(current, changes, order, plan));
  }
}

function mergeInOrder(
  current: Json[] | undefined,
  changes: Json[] | undefined,
  order: Json[],
  plan: FieldPlan,
): Json[] {
  const serverOrder = orderAfter(current ?? [], changes ?? [], plan.mergeKey);
  let merged: Json[];
  if (changes === undefined) {
    merged = current ?? [];
  } else if (current === undefined) {
    discardNulls(changes);
    merged = stripDirectives(changes) as Json[];
  } else {
    merged = mergeListField(current, changes, plan, false);
  }
  return applyElementOrder({ merged, changes: changes ?? [], order, serverOrder, mergeKey: plan.mergeKey });
}

/**
 * The server's order of a keyed list once items have left it: new ones take the places that were freed, at the end.
 * Upstream's lists come out like that because it deletes and appends in one array.
 */
function orderAfter(current: readonly Json[], changes: readonly Json[], mergeKey: string): Json[] {
  if (mergeKey === '' || !changes.every(isObject)) return [...current];
  const keysOf = (items: readonly Json[]): Set<Json> => new Set(items.map((item) => keyOf(item, mergeKey)));
  const isDeletion = (item: JsonObject): boolean => item[DIRECTIVE] === 'delete';
  const deleted = keysOf(changes.filter(isDeletion));
  if (deleted.size === 0) return [...current];
  const remaining = current.filter((item) => !deleted.has(keyOf(item, mergeKey)));
  const known = keysOf(remaining);
  const added = changes.filter((item) => !Object.hasOwn(item, DIRECTIVE) && !known.has(keyOf(item, mergeKey)));
  return [...remaining, ...added].slice(0, current.length);
}

function listIn(object: JsonObject, field: string): Json[] | undefined {
  const value = Object.hasOwn(object, field) ? object[field] : undefined;
  if (value === undefined || value === null) return undefined;
  if (!Array.isArray(value)) throw badRequest(`expected a list in ${field}, but received ${describe(value)}`);
  return value;
}

function planOf(schema: MaybeSchema, field: string, isList: boolean): FieldPlan {
  const found = childSchema(schema, field);
  const strategies = (found?.['x-kubernetes-patch-strategy'] ?? '').split(',');
  const strategy = strategies.find((each) => each === 'merge' || each === 'replace') ?? '';
  return {
    strategy: strategy as FieldPlan['strategy'],
    mergeKey: found?.['x-kubernetes-patch-merge-key'] ?? '',
    schema: isList ? found?.items : found,
  };
}

function childSchema(schema: MaybeSchema, field: string): MaybeSchema {
  if (schema?.properties !== undefined && Object.hasOwn(schema.properties, field)) return schema.properties[field];
  return typeof schema?.additionalProperties === 'object' ? schema.additionalProperties : undefined;
}

function unknownDirective(patch: JsonObject): ApiError {
  return badRequest(`unknown patch type: ${describe(patch[DIRECTIVE] ?? null)} in map: ${describe(patch)}`);
}
