import { type Budget, CHARACTERS_PER_UNIT } from './budget.ts';
import {
  Duration,
  ListValue,
  MapValue,
  numberOf,
  OpaqueValue,
  OptionalValue,
  Timestamp,
  TypeValue,
  type Value,
} from './values.ts';

/** Whether two values are equal. Values of different types are not, except numbers, which compare by value. */
export function equals(left: Value, right: Value, budget: Budget): boolean {
  const isText = typeof left === 'string' && typeof right === 'string';
  budget.spend(isText ? 1 + Math.min(left.length, right.length) / CHARACTERS_PER_UNIT : 1);
  if (left === right) return true;
  const leftNumber = numberOf(left);
  const rightNumber = numberOf(right);
  // oxlint-disable-next-line eqeqeq -- a bigint and a number are equal by value only to ==
  if (leftNumber !== undefined && rightNumber !== undefined) return leftNumber == rightNumber;
  if (typeof left !== 'object' || typeof right !== 'object' || left === null || right === null) return false;
  if (left instanceof ListValue) return right instanceof ListValue && equalLists(left, right, budget);
  if (left instanceof MapValue) return right instanceof MapValue && equalMaps(left, right, budget);
  if (left instanceof Uint8Array) return right instanceof Uint8Array && equalBytes(left, right, budget);
  if (left instanceof Timestamp) return right instanceof Timestamp && left.nanoseconds === right.nanoseconds;
  if (left instanceof Duration) return right instanceof Duration && left.nanoseconds === right.nanoseconds;
  if (left instanceof TypeValue) return right instanceof TypeValue && left.name === right.name;
  if (left instanceof OptionalValue) return right instanceof OptionalValue && equalOptionals(left, right, budget);
  return left instanceof OpaqueValue && right instanceof OpaqueValue && left.equals(right);
}

function equalLists(left: ListValue, right: ListValue, budget: Budget): boolean {
  if (left.size !== right.size) return false;
  if (left.size > 0 && left.identity(0) !== undefined) return equalUnordered(left, right, budget);
  for (let index = 0; index < left.size; index++) {
    if (!equals(left.at(index), right.at(index), budget)) return false;
  }
  return true;
}

function equalUnordered(left: ListValue, right: ListValue, budget: Budget): boolean {
  const positions = new Map<string | undefined, number>();
  for (let index = 0; index < left.size; index++) positions.set(left.identity(index), index);
  for (let index = 0; index < right.size; index++) {
    // A plain list on the other side has no identities: position decides.
    const identity = right.identity(index);
    const other = identity === undefined ? index : positions.get(identity);
    if (other === undefined || !equals(left.at(other), right.at(index), budget)) return false;
  }
  return true;
}

function equalMaps(left: MapValue, right: MapValue, budget: Budget): boolean {
  if (left.size !== right.size) return false;
  for (const key of left.hiddenKeys()) {
    const value = left.getHidden(key);
    const other = right.getHidden(key);
    if (value === undefined || other === undefined) {
      if (value !== other) return false;
    } else if (!equals(value, other, budget)) return false;
  }
  return true;
}

function equalBytes(left: Uint8Array, right: Uint8Array, budget: Budget): boolean {
  budget.spend(left.length / CHARACTERS_PER_UNIT);
  return left.length === right.length && left.every((octet, index) => octet === right[index]);
}

function equalOptionals(left: OptionalValue, right: OptionalValue, budget: Budget): boolean {
  if (left.value === undefined || right.value === undefined) return left.value === right.value;
  return equals(left.value, right.value, budget);
}
