import { child, duplicate, entry, type FieldError, forbidden, invalid, required } from '../../field-error.ts';
import type { JsonObject } from '../../meta.ts';
import { qualifiedNameErrors } from '../../names.ts';
import { compareQuantities, formatQuantity, type Quantity, quantityToNumber } from '../../quantity.ts';
import type { Strategy } from '../../resource.ts';
import { nameColumn } from '../columns.ts';
import { objectSchema } from '../meta.ts';
import { amountsAt, canonicalizeAmounts, fillAmounts } from './amounts.ts';
import { ensureObject, has, objectAt, objectsAt, textAt } from './fields.ts';
import { coreKind } from './kind.ts';
import { isOvercommitAllowed } from './resource-names.ts';
import { containerResourceNameErrors, resourceNameErrors } from './resource-validation.ts';
import { CORE } from './schema/package.ts';
import { limitRangeSpec } from './schema/quota.ts';

const TYPES = ['Pod', 'Container', 'PersistentVolumeClaim'];
const LISTS = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const;

const strategy: Strategy = {
  applyDefaults(range) {
    for (const limit of objectsAt(objectAt(range, 'spec'), 'limits')) {
      canonicalizeAmounts(limit, ...LISTS);
      if (textAt(limit, 'type') === 'Container') completeDefaults(limit);
    }
  },
  validate(range) {
    const seen = new Set<string>();
    return objectsAt(objectAt(range, 'spec'), 'limits').flatMap((limit, index) => {
      const path = child('spec.limits', index);
      const type = textAt(limit, 'type');
      const errors = has(limit, 'type') ? typeErrors(type, child(path, 'type')) : [];
      if (seen.has(type)) errors.push(duplicate(child(path, 'type'), type));
      seen.add(type);
      return [...errors, ...listErrors(limit, type, path), ...relationErrors(limit, path)];
    });
  },
};

/** The most is the default limit, which is the default request; failing that, the least is. */
function completeDefaults(limit: JsonObject): void {
  const limits = ensureObject(limit, 'default');
  const requests = ensureObject(limit, 'defaultRequest');
  if (limits === undefined || requests === undefined) return;
  fillAmounts(limits, objectAt(limit, 'max'));
  fillAmounts(requests, limits);
  fillAmounts(requests, objectAt(limit, 'min'));
}

function typeErrors(type: string, path: string): FieldError[] {
  const errors = qualifiedNameErrors(type).map((message) => invalid(path, type, message));
  if (errors.length === 0 && !type.includes('/') && !TYPES.includes(type)) {
    errors.push(invalid(path, type, 'must be a standard limit type or fully qualified'));
  }
  return errors;
}

function listErrors(limit: JsonObject, type: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const nameErrors = type === 'PersistentVolumeClaim' ? resourceNameErrors : containerResourceNameErrors;
  for (const list of LISTS) {
    const names = Object.keys(objectAt(limit, list) ?? {});
    const isDefault = list === 'default' || list === 'defaultRequest';
    if (type === 'Pod' && isDefault && names.length > 0) {
      errors.push(forbidden(child(path, list), "may not be specified when `type` is 'Pod'"));
      continue;
    }
    for (const name of names) errors.push(...nameErrors(name, entry(child(path, list), name)));
  }
  const hasStorage = has(objectAt(limit, 'min'), 'storage') || has(objectAt(limit, 'max'), 'storage');
  if (type === 'PersistentVolumeClaim' && !hasStorage) {
    const detail = 'either minimum or maximum storage value is required, but neither was provided';
    errors.push(required(child(path, 'limits'), detail));
  }
  return errors;
}

type Lists = { readonly [list in (typeof LISTS)[number]]: Quantity | undefined };

/** Pairs of lists of which the first may not exceed the second, with the words for it. */
const ORDER: readonly [
  lower: keyof Lists,
  upper: keyof Lists,
  path: keyof Lists,
  lowerText: string,
  upperText: string,
][] = [
  ['min', 'max', 'min', 'min value', 'max value'],
  ['min', 'defaultRequest', 'defaultRequest', 'min value', 'default request value'],
  ['defaultRequest', 'max', 'defaultRequest', 'default request value', 'max value'],
  ['defaultRequest', 'default', 'defaultRequest', 'default request value', 'default limit value'],
  ['min', 'default', 'default', 'min value', 'default value'],
  ['default', 'max', 'default', 'default value', 'max value'],
];

function relationErrors(limit: JsonObject, path: string): FieldError[] {
  const amounts = new Map(LISTS.map((list) => [list, amountsAt(limit, list)]));
  const names = new Set([...amounts.values()].flatMap((list) => [...list.keys()]));
  return [...names].flatMap((name) => {
    const at = (list: keyof Lists): Quantity | undefined => amounts.get(list)?.get(name);
    return [...orderErrors(at, name, path), ...ratioErrors(at, name, path), ...equalityErrors(at, name, path)];
  });
}

function orderErrors(at: (list: keyof Lists) => Quantity | undefined, name: string, path: string): FieldError[] {
  return ORDER.flatMap(([lower, upper, blamed, lowerText, upperText]) => {
    const low = at(lower);
    const high = at(upper);
    const shown = at(blamed);
    if (low === undefined || high === undefined || shown === undefined || compareQuantities(low, high) <= 0) return [];
    const detail = `${lowerText} ${formatQuantity(low)} is greater than ${upperText} ${formatQuantity(high)}`;
    return [invalid(entry(child(path, blamed), name), formatQuantity(shown), detail)];
  });
}

function ratioErrors(at: (list: keyof Lists) => Quantity | undefined, name: string, path: string): FieldError[] {
  const ratio = at('maxLimitRequestRatio');
  if (ratio === undefined) return [];
  const ratioPath = entry(child(path, 'maxLimitRequestRatio'), name);
  const text = formatQuantity(ratio);
  const errors: FieldError[] = [];
  if (quantityToNumber(ratio) < 1) errors.push(invalid(ratioPath, text, `ratio ${text} is less than 1`));
  const min = at('min');
  const max = at('max');
  if (min !== undefined && max !== undefined) {
    const highest = quantityToNumber(max) / quantityToNumber(min);
    if (quantityToNumber(ratio) > highest) {
      errors.push(invalid(ratioPath, text, `ratio ${text} is greater than max/min = ${highest.toFixed(6)}`));
    }
  }
  return errors;
}

function equalityErrors(at: (list: keyof Lists) => Quantity | undefined, name: string, path: string): FieldError[] {
  const limit = at('default');
  const request = at('defaultRequest');
  if (isOvercommitAllowed(name) || limit === undefined || request === undefined) return [];
  if (compareQuantities(limit, request) === 0) return [];
  const detail = `default value ${formatQuantity(limit)} must equal to defaultRequest value ${formatQuantity(request)} in ${name}`;
  return [invalid(entry(child(path, 'defaultRequest'), name), formatQuantity(request), detail)];
}

/** core/v1 LimitRange. */
export const limitRangeDefinition = coreKind({
  plural: 'limitranges',
  kind: 'LimitRange',
  namespaced: true,
  createsOnUpdate: true,
  shortNames: ['limits'],
  schema: objectSchema(`${CORE}.LimitRange`, 'Limits for objects of a namespace.', {
    spec: [2, limitRangeSpec, 'The limits.'],
  }),
  columns: [
    nameColumn,
    {
      name: 'Created At',
      type: 'date',
      description: 'When the object was created.',
      cell: (object) => object.metadata.creationTimestamp ?? null,
    },
  ],
  strategy,
});
