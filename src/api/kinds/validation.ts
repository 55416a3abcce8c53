import { child, type FieldError, forbidden, invalid, notSupported, required } from '../field-error.ts';
import { labelValueErrors, qualifiedNameErrors } from '../names.ts';
import { FIELD_IMMUTABLE, labelsErrors } from '../validate-meta.ts';
import {
  type Fields,
  isObject,
  numberAt,
  objectsAt,
  textAt,
  textEntriesAt,
  textMapAt,
  textsAt,
} from './core/fields.ts';

/** Checks that several kinds share, worded as kube-apiserver words them. All of them let pass what is absent. */

const NOT_NEGATIVE = 'must be greater than or equal to 0';

/** Refuses negative numbers in the named fields. */
export function nonNegativeErrors(
  object: Fields | undefined,
  path: string,
  ...fields: readonly string[]
): FieldError[] {
  return fields
    .filter((field) => (numberAt(object, field) ?? 0) < 0)
    .map((field) => invalid(child(path, field), object?.[field], NOT_NEGATIVE));
}

/** Refuses a text that is not one of a few. */
export function enumErrors(
  object: Fields | undefined,
  path: string,
  field: string,
  values: readonly string[],
): FieldError[] {
  const value = object?.[field];
  return typeof value !== 'string' || values.includes(value) ? [] : [notSupported(child(path, field), value, values)];
}

const PERCENTAGE = /^[0-9]+%$/;

/** Refuses what is neither a number from zero nor a percentage. */
export function intOrPercentErrors(value: unknown, path: string): FieldError[] {
  if (typeof value === 'string' && !PERCENTAGE.test(value)) {
    const detail =
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')";
    return [invalid(path, value, detail)];
  }
  return typeof value === 'number' && value < 0 ? [invalid(path, value, NOT_NEGATIVE)] : [];
}

/** Refuses percentages above 100. */
export function percentLimitErrors(value: unknown, path: string): FieldError[] {
  const isTooMuch = typeof value === 'string' && PERCENTAGE.test(value) && intOrPercentValue(value) > 100;
  return isTooMuch ? [invalid(path, value, 'must not be greater than 100%')] : [];
}

/** The number, whether it is one or a percentage. */
export function intOrPercentValue(value: unknown): number {
  if (typeof value === 'string') return Number.parseInt(value, 10) || 0;
  return typeof value === 'number' ? value : 0;
}

/** Refuses a LabelSelector that no list could use. */
export function labelSelectorErrors(selector: Fields | undefined, path: string): FieldError[] {
  return [
    ...labelsErrors(textMapAt(selector, 'matchLabels'), child(path, 'matchLabels')),
    ...objectsAt(selector, 'matchExpressions').flatMap((expression, index) =>
      requirementErrors(expression, child(child(path, 'matchExpressions'), index)),
    ),
  ];
}

function requirementErrors(requirement: Fields, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const key = textAt(requirement, 'key');
  const values = textsAt(requirement, 'values');
  const valuesPath = child(path, 'values');
  const operator = textAt(requirement, 'operator');
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0) errors.push(required(valuesPath, "must be specified when `operator` is 'In' or 'NotIn'"));
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    const detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
    if (values.length > 0) errors.push(forbidden(valuesPath, detail));
  } else if (operator !== '') {
    errors.push(invalid(child(path, 'operator'), operator, 'not a valid selector operator'));
  }
  errors.push(...qualifiedNameErrors(key).map((detail) => invalid(child(path, 'key'), key, detail)));
  values.forEach((value, index) => {
    errors.push(...labelValueErrors(value).map((detail) => invalid(child(valuesPath, index), value, detail)));
  });
  return errors;
}

/** Whether a selector has no requirement at all. */
export function isEmptySelector(selector: Fields | undefined): boolean {
  return textEntriesAt(selector, 'matchLabels').length + objectsAt(selector, 'matchExpressions').length === 0;
}

/** Whether labels satisfy a selector. */
export function selectorMatches(
  selector: Fields | undefined,
  labels: readonly [key: string, value: string][],
): boolean {
  const values = new Map(labels);
  return (
    textEntriesAt(selector, 'matchLabels').every(([key, value]) => values.get(key) === value) &&
    objectsAt(selector, 'matchExpressions').every((requirement) =>
      requirementHolds(requirement, values.get(textAt(requirement, 'key'))),
    )
  );
}

function requirementHolds(requirement: Fields, value: string | undefined): boolean {
  const isListed = value !== undefined && textsAt(requirement, 'values').includes(value);
  switch (textAt(requirement, 'operator')) {
    case 'In':
      return isListed;
    case 'NotIn':
      return !isListed;
    case 'Exists':
      return value !== undefined;
    case 'DoesNotExist':
      return value === undefined;
    default:
      return false;
  }
}

/** Whether two JSON values are the same, whatever the order of their keys; null and undefined are absent. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b || ((a ?? null) === null && (b ?? null) === null)) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => isSame(item, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) =>
    isSame(Object.hasOwn(a, key) ? a[key] : undefined, Object.hasOwn(b, key) ? b[key] : undefined),
  );
}

/** Refuses any change of a value. */
export function immutableErrors(value: unknown, old: unknown, path: string): FieldError[] {
  return isSame(value, old) ? [] : [invalid(path, value, FIELD_IMMUTABLE)];
}
