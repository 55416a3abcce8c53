/** Validation of resource lists: what may be named, and how much. */

import { type FieldError, invalid } from '../../field-error.ts';
import { qualifiedNameErrors } from '../../names.ts';
import { formatQuantity, parseQuantity } from '../../quantity.ts';
import type { Fields } from './fields.ts';
import type { Json } from '../../meta.ts';
import {
  isExtended,
  isInteger,
  isNative,
  isStandardContainerResource,
  isStandardQuotaResource,
  isStandardResource,
} from './resource-names.ts';

const UNIT = 1_000_000_000n;

/** What is wrong with the name of a resource. */
export function resourceNameErrors(name: string, path: string): FieldError[] {
  const errors = qualifiedNameErrors(name).map((message) => invalid(path, name, message));
  if (errors.length === 0 && !name.includes('/') && !isStandardResource(name)) {
    errors.push(invalid(path, name, 'must be a standard resource type or fully qualified'));
  }
  return errors;
}

/** What is wrong with the name of a resource that a container asks for. */
export function containerResourceNameErrors(name: string, path: string): FieldError[] {
  const errors = resourceNameErrors(name, path);
  if (!name.includes('/')) {
    if (!isStandardContainerResource(name)) {
      errors.push(invalid(path, name, 'must be a standard resource for containers'));
    }
  } else if (!isNative(name) && !isExtended(name)) {
    errors.push(invalid(path, name, "doesn't follow extended resource name standard"));
  }
  return errors;
}

/** What is wrong with the name of a resource in a quota. */
export function quotaResourceNameErrors(name: string, path: string): FieldError[] {
  const errors = resourceNameErrors(name, path);
  if (!name.includes('/') && !isStandardQuotaResource(name)) {
    errors.push(invalid(path, name, 'must be a standard resource for quota'));
  }
  return errors;
}

/** What is wrong with the amount of a resource: negative, or a fraction of what has none. */
export function quantityErrors(list: Fields | undefined, name: string, path: string): FieldError[] {
  const quantity = parseQuantity(list?.[name] as Json | undefined);
  if (quantity === undefined) return [];
  const errors: FieldError[] = [];
  const text = formatQuantity(quantity);
  if (quantity.amount < 0n) errors.push(invalid(path, text, 'must be greater than or equal to 0'));
  if (isInteger(name) && quantity.amount % UNIT !== 0n) errors.push(invalid(path, text, 'must be an integer'));
  return errors;
}

/** Refuses zero and less. */
export function positiveQuantityErrors(list: Fields | undefined, name: string, path: string): FieldError[] {
  const quantity = parseQuantity(list?.[name] as Json | undefined);
  if (quantity === undefined || quantity.amount > 0n) return [];
  return [invalid(path, formatQuantity(quantity), 'must be greater than zero')];
}
