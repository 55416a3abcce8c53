import { type Budget, CHARACTERS_PER_UNIT, evaluationError } from './budget.ts';
import { equals } from './equality.ts';
import { type Implementation, type Overload, overload } from './functions.ts';
import { Duration, type ListValue, type MapValue, numberOf, Timestamp, Uint, type Value } from './values.ts';

/** The operators of the language, except those that do not evaluate all their operands. */

const INT_MIN = -(2n ** 63n);
const INT_MAX = 2n ** 63n - 1n;
const UINT_MAX = 2n ** 64n - 1n;
/** From 0001-01-01 to the end of 9999, as in protobuf. */
const TIMESTAMP_MIN = -62_135_596_800_000_000_000n;
const TIMESTAMP_MAX = 253_402_300_799_999_999_999n;

/** An int, or the error of one that does not fit 64 bits. */
export function int(value: bigint): bigint {
  if (value < INT_MIN || value > INT_MAX) throw evaluationError('integer overflow');
  return value;
}

/** A uint, or the error of one that does not fit 64 bits. */
export function uint(value: bigint): Uint {
  if (value < 0n || value > UINT_MAX) throw evaluationError('unsigned integer overflow');
  return new Uint(value);
}

export function timestamp(nanoseconds: bigint): Timestamp {
  if (nanoseconds < TIMESTAMP_MIN || nanoseconds > TIMESTAMP_MAX) throw evaluationError('timestamp overflow');
  return new Timestamp(nanoseconds);
}

export function duration(nanoseconds: bigint): Duration {
  if (nanoseconds < INT_MIN || nanoseconds > INT_MAX) throw evaluationError('duration overflow');
  return new Duration(nanoseconds);
}

const INT_OPERATIONS: readonly (readonly [string, (left: bigint, right: bigint) => bigint])[] = [
  ['_+_', (left, right) => left + right],
  ['_-_', (left, right) => left - right],
  ['_*_', (left, right) => left * right],
  ['_/_', (left, right) => left / nonZero(right, 'division by zero')],
  ['_%_', (left, right) => left % nonZero(right, 'modulus by zero')],
];

function nonZero(value: bigint, message: string): bigint {
  if (value === 0n) throw evaluationError(message);
  return value;
}

function arithmetic(): Overload[] {
  const overloads: Overload[] = [];
  for (const [name, operate] of INT_OPERATIONS) {
    overloads.push(
      overload(`${name}(int, int): int`, ([left, right]) => int(operate(left as bigint, right as bigint))),
      overload(`${name}(uint, uint): uint`, ([left, right]) =>
        uint(operate((left as Uint).value, (right as Uint).value)),
      ),
    );
  }
  return [
    ...overloads,
    overload('_+_(double, double): double', ([left, right]) => (left as number) + (right as number)),
    overload('_-_(double, double): double', ([left, right]) => (left as number) - (right as number)),
    overload('_*_(double, double): double', ([left, right]) => (left as number) * (right as number)),
    overload('_/_(double, double): double', ([left, right]) => (left as number) / (right as number)),
    overload('-_(int): int', ([value]) => int(-(value as bigint))),
    overload('-_(double): double', ([value]) => -(value as number)),
    overload('!_(bool): bool', ([value]) => !(value as boolean)),
  ];
}

function concatenation(): Overload[] {
  return [
    overload('_+_(string, string): string', ([left, right], budget) => {
      const length = (left as string).length + (right as string).length;
      budget.spend(length / CHARACTERS_PER_UNIT);
      return (left as string) + (right as string);
    }),
    overload('_+_(bytes, bytes): bytes', ([left, right], budget) => {
      const [head, tail] = [left as Uint8Array, right as Uint8Array];
      budget.spend((head.length + tail.length) / CHARACTERS_PER_UNIT);
      const joined = new Uint8Array(head.length + tail.length);
      joined.set(head);
      joined.set(tail, head.length);
      return joined;
    }),
    overload('_+_(list(A), list(A)): list(A)', ([left, right], budget) => {
      budget.spend((left as ListValue).size + (right as ListValue).size);
      return (left as ListValue).concat(right as ListValue);
    }),
  ];
}

function time(): Overload[] {
  const at = (value: Value | undefined): bigint => (value as Timestamp | Duration).nanoseconds;
  return [
    overload('_+_(timestamp, duration): timestamp', ([left, right]) => timestamp(at(left) + at(right))),
    overload('_+_(duration, timestamp): timestamp', ([left, right]) => timestamp(at(left) + at(right))),
    overload('_+_(duration, duration): duration', ([left, right]) => duration(at(left) + at(right))),
    overload('_-_(timestamp, timestamp): duration', ([left, right]) => duration(at(left) - at(right))),
    overload('_-_(timestamp, duration): timestamp', ([left, right]) => timestamp(at(left) - at(right))),
    overload('_-_(duration, duration): duration', ([left, right]) => duration(at(left) - at(right))),
  ];
}

const COMPARISONS: readonly (readonly [string, (order: number) => boolean])[] = [
  ['_<_', (order) => order < 0],
  ['_<=_', (order) => order <= 0],
  ['_>_', (order) => order > 0],
  ['_>=_', (order) => order >= 0],
];

const NUMBERS = ['int', 'uint', 'double'];
const ORDERED = ['bool', 'string', 'bytes', 'timestamp', 'duration'];

function comparisons(): Overload[] {
  const pairs = [
    ...ORDERED.map((type) => [type, type]),
    ...NUMBERS.flatMap((left) => NUMBERS.map((right) => [left, right])),
  ];
  return COMPARISONS.flatMap(([name, decide]) => {
    const call: Implementation = ([left, right], budget) => decide(compare(left as Value, right as Value, budget));
    return pairs.map(([left, right]) => overload(`${name}(${left}, ${right}): bool`, call));
  });
}

/** Negative, zero or positive by order; NaN where there is none (NaN itself). Throws for values without an order. */
export function compare(left: Value, right: Value, budget: Budget): number {
  const [first, second] = [orderable(left), orderable(right)];
  if (typeof first === 'string' && typeof second === 'string') {
    budget.spend(Math.min(first.length, second.length) / CHARACTERS_PER_UNIT);
    return compareText(first, second);
  }
  if (left instanceof Uint8Array && right instanceof Uint8Array) {
    budget.spend(Math.min(left.length, right.length) / CHARACTERS_PER_UNIT);
    return Buffer.compare(left, right);
  }
  const isSame = numberOf(left) !== undefined ? numberOf(right) !== undefined : typeof first === typeof second;
  if (first === undefined || second === undefined || !isSame) throw evaluationError('no such overload');
  if (first < second) return -1;
  if (first > second) return 1;
  // oxlint-disable-next-line eqeqeq -- a bigint and a number are equal by value only to ==
  return first == second ? 0 : Number.NaN;
}

function orderable(value: Value): string | number | bigint | undefined {
  if (typeof value === 'boolean') return Number(value);
  if (typeof value === 'string') return value;
  if (value instanceof Timestamp || value instanceof Duration) return value.nanoseconds;
  return numberOf(value);
}

/** By code points, which UTF-16 order is not. */
function compareText(left: string, right: string): number {
  const length = Math.min(left.length, right.length);
  for (let index = 0; index < length; index++) {
    if (left.charCodeAt(index) !== right.charCodeAt(index)) {
      return (left.codePointAt(index) ?? 0) - (right.codePointAt(index) ?? 0);
    }
  }
  return left.length - right.length;
}

function equality(): Overload[] {
  return [
    overload('_==_(A, A): bool', ([left, right], budget) => equals(left as Value, right as Value, budget)),
    overload('_!=_(A, A): bool', ([left, right], budget) => !equals(left as Value, right as Value, budget)),
    overload('@in(A, list(A)): bool', ([item, list], budget) => includes(list as ListValue, item as Value, budget)),
    overload('@in(A, map(A, B)): bool', ([key, map]) => (map as MapValue).has(key as Value)),
  ];
}

/** Whether a list has an item. */
export function includes(list: ListValue, item: Value, budget: Budget): boolean {
  for (let index = 0; index < list.size; index++) if (equals(list.at(index), item, budget)) return true;
  return false;
}

export const operators: readonly Overload[] = [
  ...arithmetic(),
  ...concatenation(),
  ...time(),
  ...comparisons(),
  ...equality(),
];
