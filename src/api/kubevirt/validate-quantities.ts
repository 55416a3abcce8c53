import { type FieldError, invalid } from '../field-error.ts';
import { compareQuantities, parseQuantity, type Quantity } from '../quantity.ts';
import type { QuantityValue } from '../typed-schema.ts';

/** What is wrong with amounts. What is no amount at all is for the schema to refuse. */

const ZERO: Quantity = { amount: 0n, format: 'DecimalSI' };

/** Whether both are amounts, and the first is more. */
export function isMore(value: QuantityValue | undefined, most: QuantityValue | undefined): boolean {
  const [amount, limit] = [parseQuantity(value), parseQuantity(most)];
  return amount !== undefined && limit !== undefined && compareQuantities(amount, limit) > 0;
}

/** Refuses what is less than nothing. */
export function notNegativeErrors(value: QuantityValue | undefined, path: string): FieldError[] {
  const amount = parseQuantity(value);
  return amount && compareQuantities(amount, ZERO) < 0 ? [invalid(path, value, 'must not be negative')] : [];
}

/** Refuses what is nothing, or less. */
export function positiveErrors(value: QuantityValue | undefined, path: string): FieldError[] {
  const amount = parseQuantity(value);
  return amount && compareQuantities(amount, ZERO) <= 0 ? [invalid(path, value, 'must be positive')] : [];
}

/** Refuses what is something, but less than the least. */
export function leastErrors(value: QuantityValue | undefined, least: string, path: string): FieldError[] {
  return isMore(value, 0) && isMore(least, value) ? [invalid(path, value, `must be at least ${least}`)] : [];
}
