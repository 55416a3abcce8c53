import { evaluationError } from './budget.ts';
import { type Overload, overload } from './functions.ts';
import { Duration, ListValue, MapValue, numberOf, OptionalValue, type Value } from './values.ts';

/** Values that may be absent. `or` and `orValue` are not here: they evaluate their argument only when needed. */

function isZero(value: Value): boolean {
  if (value === null || value === false || value === '') return true;
  if (value instanceof ListValue || value instanceof MapValue) return value.size === 0;
  if (value instanceof Uint8Array) return value.length === 0;
  if (value instanceof Duration) return value.nanoseconds === 0n;
  const number = numberOf(value);
  return number !== undefined && Number(number) === 0;
}

export const optionalFunctions: readonly Overload[] = [
  overload('optional.none(): optional(A)', () => OptionalValue.none),
  overload('optional.of(A): optional(A)', ([value]) => new OptionalValue(value)),
  overload('optional.ofNonZeroValue(A): optional(A)', ([value]) =>
    isZero(value as Value) ? OptionalValue.none : new OptionalValue(value),
  ),
  overload('optional(A).hasValue(): bool', ([optional]) => (optional as OptionalValue).value !== undefined),
  overload('optional(A).value(): A', ([optional]) => {
    const { value } = optional as OptionalValue;
    if (value === undefined) throw evaluationError('optional.none() dereference');
    return value;
  }),
];
