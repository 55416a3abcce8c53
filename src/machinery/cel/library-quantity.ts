import {
  addQuantities,
  compareQuantities,
  parseQuantity,
  type Quantity,
  quantityToNumber,
  subtractQuantities,
} from '../../api/quantity.ts';
import { evaluationError } from './budget.ts';
import { type Overload, overload } from './functions.ts';
import { OpaqueValue, type Value } from './values.ts';

/** Kubernetes quantities such as `1.5Gi`. */
class QuantityValue extends OpaqueValue {
  readonly typeName = 'kubernetes.Quantity';
  readonly quantity: Quantity;

  constructor(quantity: Quantity) {
    super();
    this.quantity = quantity;
  }

  equals(other: OpaqueValue): boolean {
    return other instanceof QuantityValue && compareQuantities(this.quantity, other.quantity) === 0;
  }
}

const NANO = 1_000_000_000n;
const INT64_MAX = 2n ** 63n - 1n;

function of(value: Value | undefined): Quantity {
  return (value as QuantityValue).quantity;
}

function wholeOf(quantity: Quantity): bigint | undefined {
  if (quantity.amount % NANO !== 0n) return undefined;
  const whole = quantity.amount / NANO;
  return whole <= INT64_MAX && whole >= -INT64_MAX - 1n ? whole : undefined;
}

function fromInt(value: Value | undefined): Quantity {
  return { amount: (value as bigint) * NANO, format: 'DecimalSI' };
}

function sign(quantity: Quantity): bigint {
  if (quantity.amount === 0n) return 0n;
  return quantity.amount > 0n ? 1n : -1n;
}

export const quantityFunctions: readonly Overload[] = [
  overload('isQuantity(string): bool', ([text]) => parseQuantity(text as string) !== undefined),
  overload('quantity(string): Quantity', ([text]) => {
    const quantity = parseQuantity(text as string);
    if (quantity === undefined) {
      throw evaluationError(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
      );
    }
    return new QuantityValue(quantity);
  }),
  overload('sign(Quantity): int', ([quantity]) => sign(of(quantity))),
  overload('Quantity.sign(): int', ([quantity]) => sign(of(quantity))),
  overload('Quantity.isGreaterThan(Quantity): bool', ([left, right]) => compareQuantities(of(left), of(right)) > 0),
  overload('Quantity.isLessThan(Quantity): bool', ([left, right]) => compareQuantities(of(left), of(right)) < 0),
  overload('Quantity.compareTo(Quantity): int', ([left, right]) => BigInt(compareQuantities(of(left), of(right)))),
  overload('Quantity.asApproximateFloat(): double', ([quantity]) => quantityToNumber(of(quantity))),
  overload('Quantity.isInteger(): bool', ([quantity]) => wholeOf(of(quantity)) !== undefined),
  overload('Quantity.asInteger(): int', ([quantity]) => {
    const whole = wholeOf(of(quantity));
    if (whole === undefined) throw evaluationError('cannot convert value to integer');
    return whole;
  }),
  overload(
    'Quantity.add(Quantity): Quantity',
    ([left, right]) => new QuantityValue(addQuantities(of(left), of(right))),
  ),
  overload(
    'Quantity.add(int): Quantity',
    ([left, right]) => new QuantityValue(addQuantities(of(left), fromInt(right))),
  ),
  overload(
    'Quantity.sub(Quantity): Quantity',
    ([left, right]) => new QuantityValue(subtractQuantities(of(left), of(right))),
  ),
  overload(
    'Quantity.sub(int): Quantity',
    ([left, right]) => new QuantityValue(subtractQuantities(of(left), fromInt(right))),
  ),
];
