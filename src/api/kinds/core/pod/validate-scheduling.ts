/** Validation of what decides where a pod runs. */

import { child, duplicate, type FieldError, forbidden, invalid, notSupported, required } from '../../../field-error.ts';
import type { JsonObject } from '../../../meta.ts';
import { dnsLabelErrors, labelValueErrors, qualifiedNameErrors } from '../../../names.ts';
import { labelSelectorErrors } from '../../validation.ts';
import { has, numberAt, objectAt, objectsAt, textAt, textEntriesAt, textsAt } from '../fields.ts';
import { nodeSelectorErrors, nodeSelectorTermErrors } from '../node-selector-validation.ts';

const EFFECTS = ['NoSchedule', 'PreferNoSchedule', 'NoExecute'];

/** What is wrong with a pod's tolerations. */
export function tolerationErrors(tolerations: readonly JsonObject[], path: string): FieldError[] {
  return tolerations.flatMap((toleration, index) => {
    const own = child(path, index);
    const key = textAt(toleration, 'key');
    const operator = textAt(toleration, 'operator');
    const effect = textAt(toleration, 'effect');
    const errors: FieldError[] = [];
    if (key !== '') {
      for (const message of qualifiedNameErrors(key)) errors.push(invalid(child(own, 'key'), key, message));
    } else if (operator !== 'Exists') {
      const detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"';
      errors.push(invalid(child(own, 'operator'), operator, detail));
    }
    if (has(toleration, 'tolerationSeconds') && effect !== 'NoExecute') {
      const detail = "effect must be 'NoExecute' when `tolerationSeconds` is set";
      errors.push(invalid(child(own, 'effect'), effect, detail));
    }
    errors.push(...operatorErrors(toleration, operator, child(own, 'operator')));
    if (effect !== '' && !EFFECTS.includes(effect)) errors.push(notSupported(child(own, 'effect'), effect, EFFECTS));
    return errors;
  });
}

function operatorErrors(toleration: JsonObject, operator: string, path: string): FieldError[] {
  const value = textAt(toleration, 'value');
  switch (operator) {
    case '':
    case 'Equal': {
      const messages = labelValueErrors(value);
      return messages.length === 0 ? [] : [invalid(path, value, messages.join(';'))];
    }
    case 'Exists':
      return value === '' ? [] : [invalid(path, value, "value must be empty when `operator` is 'Exists'")];
    default:
      return [notSupported(path, operator, ['Equal', 'Exists'])];
  }
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';
const PREFERRED = 'preferredDuringSchedulingIgnoredDuringExecution';

/** What is wrong with a pod's affinities. */
export function affinityErrors(affinity: JsonObject | undefined, path: string): FieldError[] {
  const errors = nodeAffinityErrors(objectAt(affinity, 'nodeAffinity'), child(path, 'nodeAffinity'));
  for (const field of ['podAffinity', 'podAntiAffinity']) {
    const rules = objectAt(affinity, field);
    const own = child(path, field);
    for (const [index, term] of objectsAt(rules, REQUIRED).entries()) {
      errors.push(...podTermErrors(term, child(child(own, REQUIRED), index)));
    }
    for (const [index, weighted] of objectsAt(rules, PREFERRED).entries()) {
      const itemPath = child(child(own, PREFERRED), index);
      errors.push(...weightErrors(weighted, itemPath));
      const term = objectAt(weighted, 'podAffinityTerm');
      if (term !== undefined) errors.push(...podTermErrors(term, child(itemPath, 'podAffinityTerm')));
    }
  }
  return errors;
}

function nodeAffinityErrors(affinity: JsonObject | undefined, path: string): FieldError[] {
  const needed = objectAt(affinity, REQUIRED);
  const errors = needed === undefined ? [] : nodeSelectorErrors(needed, child(path, REQUIRED));
  for (const [index, term] of objectsAt(affinity, PREFERRED).entries()) {
    const itemPath = child(child(path, PREFERRED), index);
    errors.push(...weightErrors(term, itemPath));
    const preference = objectAt(term, 'preference');
    if (preference !== undefined)
      errors.push(...nodeSelectorTermErrors(preference, child(itemPath, 'preference'), true));
  }
  return errors;
}

function weightErrors(term: JsonObject, path: string): FieldError[] {
  const weight = numberAt(term, 'weight');
  if (weight === undefined || (weight > 0 && weight <= 100)) return [];
  return [invalid(child(path, 'weight'), weight, 'must be in the range 1-100')];
}

function podTermErrors(term: JsonObject, path: string): FieldError[] {
  const errors = [
    ...labelSelectorErrors(objectAt(term, 'labelSelector'), child(path, 'labelSelector')),
    ...labelSelectorErrors(objectAt(term, 'namespaceSelector'), child(path, 'namespaceSelector')),
  ];
  for (const name of textsAt(term, 'namespaces')) {
    for (const message of dnsLabelErrors(name)) errors.push(invalid(child(path, 'namespace'), name, message));
  }
  errors.push(...labelKeyErrors(term, path));
  const key = textAt(term, 'topologyKey');
  if (!has(term, 'topologyKey')) return errors;
  if (key === '') errors.push(required(child(path, 'topologyKey'), 'can not be empty'));
  for (const message of qualifiedNameErrors(key)) errors.push(invalid(child(path, 'topologyKey'), key, message));
  return errors;
}

function labelKeyErrors(term: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const selector = objectAt(term, 'labelSelector');
  for (const field of ['matchLabelKeys', 'mismatchLabelKeys']) {
    const keys = textsAt(term, field);
    if (keys.length > 0 && selector === undefined) {
      const detail = 'must not be specified when labelSelector is not set';
      errors.push(forbidden(child(path, field), detail));
    }
    for (const [index, key] of keys.entries()) {
      const keyPath = child(child(path, field), index);
      for (const message of qualifiedNameErrors(key)) errors.push(invalid(keyPath, key, message));
    }
  }
  const mismatched = new Set(textsAt(term, 'mismatchLabelKeys'));
  for (const [index, key] of textsAt(term, 'matchLabelKeys').entries()) {
    if (!mismatched.has(key)) continue;
    const keyPath = child(child(path, 'matchLabelKeys'), index);
    errors.push(invalid(keyPath, key, 'exists in both matchLabelKeys and mismatchLabelKeys'));
  }
  return errors;
}

/** What is wrong with how a pod wants to be spread. */
export function spreadErrors(constraints: readonly JsonObject[], path: string): FieldError[] {
  const seen = new Set<string>();
  return constraints.flatMap((constraint, index) => {
    const own = child(path, index);
    const errors = [...positiveErrors(constraint, own, 'maxSkew'), ...positiveErrors(constraint, own, 'minDomains')];
    const key = textAt(constraint, 'topologyKey');
    const action = textAt(constraint, 'whenUnsatisfiable');
    if (constraint['topologyKey'] === '') errors.push(required(child(own, 'topologyKey'), 'can not be empty'));
    const pair = `{${key}, ${action}}`;
    if (seen.has(pair)) errors.push(duplicate(child(own, '{topologyKey, whenUnsatisfiable}'), pair));
    seen.add(pair);
    const domains = numberAt(constraint, 'minDomains');
    if (domains !== undefined && action !== 'DoNotSchedule') {
      const detail = `can only use minDomains if whenUnsatisfiable=DoNotSchedule, not ${action}`;
      errors.push(invalid(child(own, 'minDomains'), domains, detail));
    }
    errors.push(...matchKeyErrors(constraint, own));
    const selector = objectAt(constraint, 'labelSelector');
    return [...errors, ...labelSelectorErrors(selector, child(own, 'labelSelector'))];
  });
}

function positiveErrors(constraint: JsonObject, path: string, field: string): FieldError[] {
  const value = numberAt(constraint, field);
  return value === undefined || value > 0 ? [] : [invalid(child(path, field), value, 'must be greater than zero')];
}

function matchKeyErrors(constraint: JsonObject, path: string): FieldError[] {
  const errors = labelKeyErrors(constraint, path);
  const selector = objectAt(constraint, 'labelSelector');
  const selected = new Set([
    ...textEntriesAt(selector, 'matchLabels').map(([key]) => key),
    ...objectsAt(selector, 'matchExpressions').map((each) => textAt(each, 'key')),
  ]);
  for (const [index, key] of textsAt(constraint, 'matchLabelKeys').entries()) {
    if (!selected.has(key)) continue;
    const keyPath = child(child(path, 'matchLabelKeys'), index);
    errors.push(invalid(keyPath, key, 'exists in both matchLabelKeys and labelSelector'));
  }
  return errors;
}
