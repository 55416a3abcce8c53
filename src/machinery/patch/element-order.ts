/**
 * The order of a list after a strategic merge. Items that the patch names come in the patch's order, items that only
 * the server has in the server's order, and the two are interleaved so that a server's item stays in front of the first
 * of the patch's items that it stood in front of.
 */

import type { Json } from '../../api/meta.ts';
import { badRequest } from '../../api/status.ts';
import { rejectPatch } from './rejection.ts';
import { DIRECTIVE, describe, isObject, noMergeKey } from './strategic-directives.ts';

type Identity = (item: Json) => Json;

/** What all items of the lists are: merging makes sense only among equals. Undefined when there are no items. */
export function kindOfElements(lists: readonly (readonly Json[])[]): 'object' | 'scalar' | undefined {
  let first: string | undefined;
  for (const item of lists.flat()) {
    const kind = kindOf(item);
    if (kind === 'list') throw rejectPatch('lists of lists are not supported');
    first ??= kind;
    if (kind !== first) throw badRequest(`list element types are not identical: ${describe(lists as Json)}`);
  }
  if (first === undefined) return undefined;
  return first === 'object' ? 'object' : 'scalar';
}

function kindOf(item: Json): string {
  if (Array.isArray(item)) return 'list';
  return item === null ? 'null' : typeof item;
}

/** Orders a merged list by the patch's and the server's lists; `identity` tells which items are the same. */
export function mergeOrder(
  merged: readonly Json[],
  patchOrder: readonly Json[],
  serverOrder: readonly Json[],
  identity: Identity,
): Json[] {
  const patchPositions = positionsOf(patchOrder, identity);
  const serverPositions = positionsOf(serverOrder, identity);
  const named = merged.filter((item) => patchPositions.has(identity(item)));
  const serverOnly = merged.filter((item) => !patchPositions.has(identity(item)));
  sortBy(named, patchPositions, identity);
  sortBy(serverOnly, serverPositions, identity);
  return interleave(serverOnly, named, serverPositions, identity);
}

export interface ElementOrder {
  readonly merged: readonly Json[];
  /** The items that the patch had for the list, directives included. */
  readonly changes: readonly Json[];
  /** What `$setElementOrder` says. */
  readonly order: readonly Json[];
  readonly serverOrder: readonly Json[];
  /** Empty for a list of scalars. */
  readonly mergeKey: string;
}

/** Checks a `$setElementOrder` directive against the patch it came with and orders the merged list by it. */
export function applyElementOrder({ merged, changes, order, serverOrder, mergeKey }: ElementOrder): Json[] {
  const identity: Identity = mergeKey === '' ? (item) => item : (item) => mergeKeyOf(item, mergeKey);
  checkOrder(changes, order, identity);
  if (kindOfElements([serverOrder, changes]) === undefined) return [...merged];
  return mergeOrder(merged, order, serverOrder, identity);
}

/** Every item that the patch sets must be in the order list, and in that order. */
function checkOrder(changes: readonly Json[], order: readonly Json[], identity: Identity): void {
  if (order.length === 0) return;
  let position = 0;
  for (const item of changes) {
    if (isObject(item) && Object.hasOwn(item, DIRECTIVE)) continue;
    while (position < order.length && identity(order[position] as Json) !== identity(item)) position++;
    if (position === order.length) {
      throw badRequest(
        `The order in patch list:\n${describe([...changes])}\n doesn't match $setElementOrder list:\n${describe([...order])}\n`,
      );
    }
    position++;
  }
}

function mergeKeyOf(item: Json, mergeKey: string): Json {
  if (!isObject(item) || !Object.hasOwn(item, mergeKey)) throw noMergeKey(item, mergeKey);
  return item[mergeKey] as Json;
}

function positionsOf(order: readonly Json[], identity: Identity): Map<Json, number> {
  const positions = new Map<Json, number>();
  for (const [index, item] of order.entries()) {
    const key = identity(item);
    if (!positions.has(key)) positions.set(key, index);
  }
  return positions;
}

function sortBy(items: Json[], positions: ReadonlyMap<Json, number>, identity: Identity): void {
  const positionOf = (item: Json): number => positions.get(identity(item)) ?? positions.size;
  items.sort((a, b) => positionOf(a) - positionOf(b));
}

function interleave(
  serverOnly: readonly Json[],
  named: readonly Json[],
  serverPositions: ReadonlyMap<Json, number>,
  identity: Identity,
): Json[] {
  const result: Json[] = [];
  let next = 0;
  for (const item of named) {
    const position = serverPositions.get(identity(item)) ?? -1;
    for (; next < serverOnly.length; next++) {
      const candidate = serverPositions.get(identity(serverOnly[next] as Json));
      if (candidate === undefined || candidate >= position) break;
      result.push(serverOnly[next] as Json);
    }
    result.push(item);
  }
  return [...result, ...serverOnly.slice(next)];
}
