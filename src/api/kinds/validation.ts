import { child, type FieldError, forbidden, invalid, required } from '../field-error.ts';
import { labelValueErrors, qualifiedNameErrors } from '../names.ts';
import { FIELD_IMMUTABLE, labelsErrors } from '../validate-meta.ts';
import { type Fields, fieldsOf, isAbsent, isFields, itemsOf, numberOf, textOf, textsOf } from './access.ts';

/** Checks that several kinds share, worded as kube-apiserver words them. */

const NOT_NEGATIVE = 'must be greater than or equal to 0';

/** Refuses negative numbers in the named fields; absent ones pass. */
export function nonNegativeErrors(object: Readonly<Fields>, path: string, ...fields: readonly string[]): FieldError[] {
  return fields
    .filter((field) => numberOf(object[field]) < 0)
    .map((field) => invalid(child(path, field), object[field], NOT_NEGATIVE));
}

const PERCENTAGE = /^[0-9]+%$/;

/** Refuses what is neither a number from zero nor a percentage; absent passes. */
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
  return typeof value === 'string' ? Number.parseInt(value, 10) || 0 : numberOf(value);
}

/** Refuses a LabelSelector that no list could use. Absent passes. */
export function labelSelectorErrors(selector: unknown, path: string): FieldError[] {
  if (!isFields(selector)) return [];
  const labels = Object.entries(fieldsOf(selector.matchLabels)).filter(isTextEntry);
  const errors = labelsErrors(Object.fromEntries(labels), child(path, 'matchLabels'));
  itemsOf(selector.matchExpressions).forEach((expression, index) => {
    errors.push(...requirementErrors(fieldsOf(expression), child(child(path, 'matchExpressions'), index)));
  });
  return errors;
}

function isTextEntry(entry: [string, unknown]): entry is [string, string] {
  return typeof entry[1] === 'string';
}

function requirementErrors(requirement: Readonly<Fields>, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const key = textOf(requirement.key);
  const values = itemsOf(requirement.values);
  const valuesPath = child(path, 'values');
  switch (requirement.operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0)
        errors.push(required(valuesPath, "must be specified when `operator` is 'In' or 'NotIn'"));
      break;
    case 'Exists':
    case 'DoesNotExist':
      if (values.length > 0) {
        const detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
        errors.push(forbidden(valuesPath, detail));
      }
      break;
    default:
      errors.push(invalid(child(path, 'operator'), requirement.operator, 'not a valid selector operator'));
  }
  errors.push(...qualifiedNameErrors(key).map((detail) => invalid(child(path, 'key'), key, detail)));
  values.forEach((value, index) => {
    const details = labelValueErrors(textOf(value));
    errors.push(...details.map((detail) => invalid(child(valuesPath, index), value, detail)));
  });
  return errors;
}

/** Whether a selector has no requirement at all. */
export function isEmptySelector(selector: unknown): boolean {
  const { matchLabels, matchExpressions } = fieldsOf(selector);
  return Object.keys(fieldsOf(matchLabels)).length + itemsOf(matchExpressions).length === 0;
}

/** Whether labels satisfy a selector. */
export function selectorMatches(selector: unknown, labels: unknown): boolean {
  const { matchLabels, matchExpressions } = fieldsOf(selector);
  const values = new Map(Object.entries(fieldsOf(labels)));
  if (!Object.entries(fieldsOf(matchLabels)).every(([key, value]) => values.get(key) === value)) return false;
  return itemsOf(matchExpressions)
    .map(fieldsOf)
    .every((expression) => {
      const value = values.get(textOf(expression.key));
      const isListed = value !== undefined && textsOf(expression.values).includes(textOf(value));
      switch (expression.operator) {
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
    });
}

/** Whether two JSON values are the same, whatever the order of their keys; absent, null and undefined are one. */
export function isSame(a: unknown, b: unknown): boolean {
  if (a === b || (isAbsent(a) && isAbsent(b))) return true;
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => isSame(item, b[index]));
  }
  if (!isFields(a) || !isFields(b)) return false;
  return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) =>
    isSame(Object.hasOwn(a, key) ? a[key] : undefined, Object.hasOwn(b, key) ? b[key] : undefined),
  );
}

/** Refuses any change of a value. */
export function immutableErrors(value: unknown, old: unknown, path: string): FieldError[] {
  return isSame(value, old) ? [] : [invalid(path, value, FIELD_IMMUTABLE)];
}
