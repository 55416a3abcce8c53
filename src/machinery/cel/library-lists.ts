import { type Budget, evaluationError } from './budget.ts';
import { equals } from './equality.ts';
import { type Overload, overload } from './functions.ts';
import { compare, duration, includes, int, uint } from './library-operators.ts';
import { ArrayList, Duration, ListValue, Uint, type Value } from './values.ts';

/** Functions of lists: Kubernetes' own, the language's extension, and sets. */

/** Types whose lists have an order; sorting and extremes are declared for each, so that others are refused early. */
const ORDERED = ['int', 'uint', 'double', 'bool', 'duration', 'timestamp', 'string', 'bytes'];
const SUMMABLE: readonly (readonly [string, Value, (left: Value, right: Value) => Value])[] = [
  ['int', 0n, (left, right) => int((left as bigint) + (right as bigint))],
  ['uint', new Uint(0n), (left, right) => uint((left as Uint).value + (right as Uint).value)],
  ['double', 0, (left, right) => (left as number) + (right as number)],
  [
    'duration',
    new Duration(0n),
    (left, right) => duration((left as Duration).nanoseconds + (right as Duration).nanoseconds),
  ],
];
/** Longest list that `lists.range` makes. */
const RANGE_MAX = 1_000_000n;

/** A list's items, paid for. */
export function itemsOf(list: Value, budget: Budget): Value[] {
  const { size } = list as ListValue;
  budget.spend(size);
  return Array.from({ length: size }, (_, index) => (list as ListValue).at(index));
}

function ordered(): Overload[] {
  return ORDERED.flatMap((type) => [
    overload(`list(${type}).isSorted(): bool`, ([list], budget) => {
      const items = itemsOf(list as Value, budget);
      return items.every((item, index) => index === 0 || compare(items[index - 1] as Value, item, budget) <= 0);
    }),
    overload(`list(${type}).min(): ${type}`, ([list], budget) => extreme(list as Value, 'min', budget)),
    overload(`list(${type}).max(): ${type}`, ([list], budget) => extreme(list as Value, 'max', budget)),
    overload(`list(${type}).sort(): list(${type})`, ([list], budget) => {
      const items = itemsOf(list as Value, budget);
      return new ArrayList(sortBy(items, items, budget));
    }),
  ]);
}

function extreme(list: Value, name: 'min' | 'max', budget: Budget): Value {
  const [first, ...rest] = itemsOf(list, budget);
  if (first === undefined) throw evaluationError(`${name} called on empty list`);
  let best = first;
  for (const item of rest) {
    const order = compare(item, best, budget);
    if (name === 'min' ? order < 0 : order > 0) best = item;
  }
  return best;
}

/** The items in the order of their keys; equal keys keep their order. */
export function sortBy(items: readonly Value[], keys: readonly Value[], budget: Budget): Value[] {
  const positions = items.map((_, index) => index);
  positions.sort((left, right) => compare(keys[left] as Value, keys[right] as Value, budget));
  return positions.map((position) => items[position] as Value);
}

function sums(): Overload[] {
  return SUMMABLE.map(([type, zero, add]) =>
    overload(`list(${type}).sum(): ${type}`, ([list], budget) => {
      let sum = zero;
      for (const item of itemsOf(list as Value, budget)) sum = add(sum, item);
      return sum;
    }),
  );
}

function searches(): Overload[] {
  return [
    overload('list(A).indexOf(A): int', ([list, item], budget) => {
      const items = itemsOf(list as Value, budget);
      return BigInt(items.findIndex((each) => equals(each, item as Value, budget)));
    }),
    overload('list(A).lastIndexOf(A): int', ([list, item], budget) => {
      const items = itemsOf(list as Value, budget);
      return BigInt(items.findLastIndex((each) => equals(each, item as Value, budget)));
    }),
  ];
}

function shapes(): Overload[] {
  return [
    overload('list(A).slice(int, int): list(A)', ([list, start, end], budget) =>
      slice(list as ListValue, start as bigint, end as bigint, budget),
    ),
    overload('list(A).reverse(): list(A)', ([list], budget) => new ArrayList(itemsOf(list as Value, budget).reverse())),
    overload('list(A).distinct(): list(A)', ([list], budget) => distinct(itemsOf(list as Value, budget), budget)),
    overload('list(list(A)).flatten(): list(A)', ([list], budget) => new ArrayList(flatten(list as Value, 1n, budget))),
    overload('list(dyn).flatten(int): list(dyn)', ([list, depth], budget) => {
      if ((depth as bigint) < 0n) throw evaluationError('level must be non-negative');
      return new ArrayList(flatten(list as Value, depth as bigint, budget));
    }),
    overload('lists.range(int): list(int)', ([size], budget) => {
      if ((size as bigint) > RANGE_MAX) throw evaluationError('lists.range: list too long');
      budget.spend(Number(size));
      return new ArrayList(Array.from({ length: Math.max(0, Number(size)) }, (_, index) => BigInt(index)));
    }),
  ];
}

function slice(list: ListValue, start: bigint, end: bigint, budget: Budget): ListValue {
  const call = `cannot slice(${start}, ${end})`;
  if (start < 0n || end < 0n) throw evaluationError(`${call}, negative indexes not supported`);
  if (start > end) throw evaluationError(`${call}, start index must be less than or equal to end index`);
  if (end > list.size) throw evaluationError(`${call}, list is length ${list.size}`);
  return new ArrayList(itemsOf(list, budget).slice(Number(start), Number(end)));
}

function distinct(items: readonly Value[], budget: Budget): ListValue {
  const kept: Value[] = [];
  const scalars = new Set<Value>();
  for (const item of items) {
    if (typeof item === 'string' || typeof item === 'boolean') {
      if (scalars.has(item)) continue;
      scalars.add(item);
    } else if (includes(new ArrayList(kept), item, budget)) continue;
    kept.push(item);
  }
  return new ArrayList(kept);
}

function flatten(list: Value, depth: bigint, budget: Budget): Value[] {
  const items = itemsOf(list, budget);
  if (depth === 0n) return items;
  return items.flatMap((item) => (item instanceof ListValue ? flatten(item, depth - 1n, budget) : [item]));
}

function sets(): Overload[] {
  const contains = (left: Value, right: Value, budget: Budget): boolean =>
    itemsOf(right, budget).every((item) => includes(left as ListValue, item, budget));
  return [
    overload('sets.contains(list(A), list(A)): bool', ([left, right], budget) =>
      contains(left as Value, right as Value, budget),
    ),
    overload(
      'sets.equivalent(list(A), list(A)): bool',
      ([left, right], budget) =>
        contains(left as Value, right as Value, budget) && contains(right as Value, left as Value, budget),
    ),
    overload('sets.intersects(list(A), list(A)): bool', ([left, right], budget) =>
      itemsOf(right as Value, budget).some((item) => includes(left as ListValue, item, budget)),
    ),
  ];
}

export const listFunctions: readonly Overload[] = [...ordered(), ...sums(), ...searches(), ...shapes(), ...sets()];
