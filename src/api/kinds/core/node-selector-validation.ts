import { child, type FieldError, forbidden, invalid, required } from '../../field-error.ts';
import type { JsonObject } from '../../meta.ts';
import { dnsSubdomainErrors, labelValueErrors, qualifiedNameErrors } from '../../names.ts';
import { has, objectsAt, textAt, textsAt } from './fields.ts';

/** What is wrong with a selector of nodes. */
export function nodeSelectorErrors(selector: JsonObject, path: string): FieldError[] {
  const termsPath = child(path, 'nodeSelectorTerms');
  const terms = objectsAt(selector, 'nodeSelectorTerms');
  if (terms.length === 0) {
    return has(selector, 'nodeSelectorTerms') ? [required(termsPath, 'must have at least one node selector term')] : [];
  }
  return terms.flatMap((term, index) => nodeSelectorTermErrors(term, child(termsPath, index), false));
}

/** What is wrong with one term. Preferences may have values that no label can have, as they always could. */
export function nodeSelectorTermErrors(term: JsonObject, path: string, allowsAnyValue: boolean): FieldError[] {
  return [
    ...objectsAt(term, 'matchExpressions').flatMap((requirement, index) =>
      expressionErrors(requirement, child(child(path, 'matchExpressions'), index), allowsAnyValue),
    ),
    ...objectsAt(term, 'matchFields').flatMap((requirement, index) =>
      fieldErrors(requirement, child(child(path, 'matchFields'), index)),
    ),
  ];
}

function expressionErrors(requirement: JsonObject, path: string, allowsAnyValue: boolean): FieldError[] {
  const errors: FieldError[] = [];
  const values = textsAt(requirement, 'values');
  const valuesPath = child(path, 'values');
  const operator = textAt(requirement, 'operator');
  switch (operator) {
    case 'In':
    case 'NotIn':
      if (values.length === 0)
        errors.push(required(valuesPath, "must be specified when `operator` is 'In' or 'NotIn'"));
      break;
    case 'Exists':
    case 'DoesNotExist': {
      const detail = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
      if (values.length > 0) errors.push(forbidden(valuesPath, detail));
      break;
    }
    case 'Gt':
    case 'Lt': {
      const detail = "must be specified single value when `operator` is 'Lt' or 'Gt'";
      if (values.length !== 1) errors.push(required(valuesPath, detail));
      break;
    }
    default:
      if (has(requirement, 'operator')) {
        errors.push(invalid(child(path, 'operator'), operator, 'not a valid selector operator'));
      }
  }
  const key = textAt(requirement, 'key');
  if (has(requirement, 'key')) {
    for (const message of qualifiedNameErrors(key)) errors.push(invalid(child(path, 'key'), key, message));
  }
  if (allowsAnyValue) return errors;
  for (const [index, value] of values.entries()) {
    for (const message of labelValueErrors(value)) errors.push(invalid(child(valuesPath, index), value, message));
  }
  return errors;
}

function fieldErrors(requirement: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const values = textsAt(requirement, 'values');
  const operator = textAt(requirement, 'operator');
  if (operator !== 'In' && operator !== 'NotIn') {
    errors.push(invalid(child(path, 'operator'), operator, 'not a valid selector operator'));
  } else if (values.length !== 1) {
    const detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
    errors.push(required(child(path, 'values'), detail));
  }
  const key = textAt(requirement, 'key');
  if (key !== 'metadata.name') return [...errors, invalid(child(path, 'key'), key, 'not a valid field selector key')];
  for (const [index, value] of values.entries()) {
    const valuePath = child(child(path, 'values'), index);
    for (const message of dnsSubdomainErrors(value)) errors.push(invalid(valuePath, value, message));
  }
  return errors;
}
