/** Lists of resources: quantities by name. */

import type { Json } from '../../meta.ts';
import { formatQuantity, parseQuantity, type Quantity } from '../../quantity.ts';
import { type Fields, isObject, objectAt } from './fields.ts';

/** One thousandth, in the unit of Quantity. */
const MILLI = 1_000_000n;

/** Amounts by resource name, in order. What is no quantity is left out: the schema has reported it. */
export type Amounts = ReadonlyMap<string, Quantity>;

/** Reads a resource list. */
export function amountsAt(parent: Fields | undefined, field: string): Amounts {
  const amounts = new Map<string, Quantity>();
  for (const [name, value] of Object.entries(objectAt(parent, field) ?? {})) {
    const quantity = parseQuantity(value);
    if (quantity !== undefined) amounts.set(name, quantity);
  }
  return amounts;
}

/** Writes quantities in canonical form, none finer than a thousandth, as Kubernetes stores resource lists. */
export function canonicalizeAmounts(parent: Fields | undefined, ...fields: readonly string[]): void {
  for (const field of fields) {
    const list = objectAt(parent, field);
    if (list === undefined) continue;
    for (const [name, value] of Object.entries(list)) {
      const quantity = parseQuantity(value);
      if (quantity !== undefined) define(list, name, formatQuantity(roundUp(quantity)));
    }
  }
}

/** The same for a single quantity, which keeps its precision. */
export function canonicalizeQuantity(parent: { [field: string]: Json } | undefined, field: string): void {
  if (!isObject(parent)) return;
  const quantity = parseQuantity(parent[field]);
  if (quantity !== undefined) parent[field] = formatQuantity(quantity);
}

/** Copies into one list what another has and it has not. */
export function fillAmounts(target: { [field: string]: Json }, source: Fields | undefined): void {
  for (const [name, value] of Object.entries(source ?? {})) {
    if (!Object.hasOwn(target, name)) define(target, name, value as Json);
  }
}

/** Keys are data: a resource named `__proto__` must become a property like any other. */
function define(list: { [field: string]: Json }, name: string, value: Json): void {
  Object.defineProperty(list, name, { value, writable: true, enumerable: true, configurable: true });
}

function roundUp(quantity: Quantity): Quantity {
  const rest = quantity.amount % MILLI;
  if (rest === 0n) return quantity;
  // Away from zero, as Kubernetes rounds.
  return { ...quantity, amount: quantity.amount - rest + (rest > 0n ? MILLI : -MILLI) };
}
