/** What of a pod may change after its creation: very little. */

import { child, type FieldError, forbidden, invalid, show } from '../../../field-error.ts';
import type { Json, JsonObject, KubeObject } from '../../../meta.ts';
import { isSame } from '../../validation.ts';
import { changesText } from '../changes.ts';
import { has, numberAt, objectAt, objectsAt, textAt, textEntriesAt, textMapAt } from '../fields.ts';

const UPDATABLE = [
  '`spec.containers[*].image`',
  '`spec.initContainers[*].image`',
  '`spec.activeDeadlineSeconds`',
  '`spec.tolerations` (only additions to existing tolerations)',
  '`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)',
].join(',');

/** Forbidden changes of the main resource. */
export function podUpdateErrors(pod: KubeObject, old: KubeObject): FieldError[] {
  const spec = objectAt(pod, 'spec') ?? {};
  const oldSpec = objectAt(old, 'spec') ?? {};
  for (const list of ['containers', 'initContainers']) {
    if (objectsAt(spec, list).length !== objectsAt(oldSpec, list).length) {
      return [forbidden(child('spec', list), 'pod updates may not add or remove containers')];
    }
  }
  const deadline = deadlineErrors(spec, oldSpec);
  const errors = [...deadline, ...tolerationErrors(spec, oldSpec), ...gateErrors(spec, oldSpec)];
  if (isSame(spec, oldSpec)) return errors;
  const allowed = withOldValues(spec, oldSpec);
  if (objectsAt(oldSpec, 'schedulingGates').length > 0) errors.push(...gatedErrors(allowed, spec, oldSpec));
  if (isSame(allowed, oldSpec)) return errors;
  const detail = `pod updates may not change fields other than ${UPDATABLE}\n${changesText(oldSpec, allowed)}`;
  return [...errors, forbidden('spec', detail)];
}

/** Deadlines can be set, and come nearer. */
function deadlineErrors(spec: JsonObject, oldSpec: JsonObject): FieldError[] {
  const path = 'spec.activeDeadlineSeconds';
  const seconds = numberAt(spec, 'activeDeadlineSeconds');
  const oldSeconds = numberAt(oldSpec, 'activeDeadlineSeconds');
  if (oldSeconds === undefined) return [];
  if (seconds === undefined) return [invalid(path, undefined, 'must not update from a positive integer to nil value')];
  return seconds > oldSeconds ? [invalid(path, seconds, 'must be less than or equal to previous value')] : [];
}

function tolerationErrors(spec: JsonObject, oldSpec: JsonObject): FieldError[] {
  const identity = (toleration: JsonObject): string => {
    const { tolerationSeconds: _seconds, ...rest } = toleration;
    return show(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
  };
  const present = new Set(objectsAt(spec, 'tolerations').map(identity));
  if (objectsAt(oldSpec, 'tolerations').every((toleration) => present.has(identity(toleration)))) return [];
  return [forbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')];
}

function gateErrors(spec: JsonObject, oldSpec: JsonObject): FieldError[] {
  const known = new Set(objectsAt(oldSpec, 'schedulingGates').map((gate) => textAt(gate, 'name')));
  return objectsAt(spec, 'schedulingGates').flatMap((gate, index) => {
    const name = textAt(gate, 'name');
    if (known.has(name)) return [];
    const detail = `only deletion is allowed, but found new scheduling gate '${name}'`;
    return [forbidden(`spec.schedulingGates[${index}].name`, detail)];
  });
}

/** The new spec with the old values of what may change: whatever still differs may not. */
function withOldValues(spec: JsonObject, oldSpec: JsonObject): JsonObject {
  const allowed: JsonObject = { ...spec };
  for (const list of ['containers', 'initContainers']) {
    if (!has(spec, list)) continue;
    const old = objectsAt(oldSpec, list);
    allowed[list] = objectsAt(spec, list).map((container, index) => keepOld({ ...container }, old[index], 'image'));
  }
  keepOld(allowed, oldSpec, 'activeDeadlineSeconds', 'tolerations', 'schedulingGates');
  const grace = numberAt(oldSpec, 'terminationGracePeriodSeconds') ?? 0;
  if (grace < 0 && spec['terminationGracePeriodSeconds'] === 1)
    keepOld(allowed, oldSpec, 'terminationGracePeriodSeconds');
  return allowed;
}

function keepOld(object: JsonObject, old: JsonObject | undefined, ...fields: readonly string[]): JsonObject {
  for (const field of fields) {
    if (has(old, field)) object[field] = old?.[field] as Json;
    else delete object[field];
  }
  return object;
}

const REQUIRED = 'requiredDuringSchedulingIgnoredDuringExecution';

/** While gates hold it back, a pod may still be told more about where to run. */
function gatedErrors(allowed: JsonObject, spec: JsonObject, oldSpec: JsonObject): FieldError[] {
  const errors: FieldError[] = [];
  const selector = textMapAt(spec, 'nodeSelector');
  const isKept = textEntriesAt(oldSpec, 'nodeSelector').every(
    ([key, value]) => Object.hasOwn(selector, key) && selector[key] === value,
  );
  if (!isKept) {
    const detail = 'only additions to spec.nodeSelector are allowed (no mutations or deletions)';
    errors.push(invalid('spec.nodeSelector', selector, detail));
  }
  keepOld(allowed, oldSpec, 'nodeSelector');
  errors.push(...affinityErrors(objectAt(spec, 'affinity'), objectAt(oldSpec, 'affinity')));
  const affinity = keepOld({ ...objectAt(spec, 'affinity') }, objectAt(oldSpec, 'affinity'), 'nodeAffinity');
  if (Object.keys(affinity).length > 0 || has(oldSpec, 'affinity')) allowed['affinity'] = affinity;
  else delete allowed['affinity'];
  return errors;
}

function affinityErrors(affinity: JsonObject | undefined, old: JsonObject | undefined): FieldError[] {
  const path = `spec.affinity.nodeAffinity.${REQUIRED}.nodeSelectorTerms`;
  const termsOf = (from: JsonObject | undefined): JsonObject[] =>
    objectsAt(objectAt(objectAt(from, 'nodeAffinity'), REQUIRED), 'nodeSelectorTerms');
  const oldTerms = termsOf(old);
  const terms = termsOf(affinity);
  if (oldTerms.length === 0) return [];
  if (terms.length !== oldTerms.length) {
    return [invalid(path, terms, 'no additions/deletions to non-empty NodeSelectorTerms list are allowed')];
  }
  return terms.flatMap((term, index) =>
    hasOnlyAdditions(term, oldTerms[index] ?? {})
      ? []
      : [invalid(child(path, index), term, 'only additions are allowed (no mutations or deletions)')],
  );
}

function hasOnlyAdditions(term: JsonObject, old: JsonObject): boolean {
  const lists = ['matchExpressions', 'matchFields'];
  // An empty term matches nothing: any addition would make it match something.
  const isEmpty = (each: JsonObject): boolean => lists.every((list) => objectsAt(each, list).length === 0);
  if (isEmpty(old)) return isEmpty(term);
  return lists.every((list) => {
    const before = objectsAt(old, list);
    return isSame(objectsAt(term, list).slice(0, before.length), before);
  });
}

/** Ephemeral containers are only ever added, through their own door. */
export function ephemeralUpdateErrors(pod: KubeObject, old: KubeObject): FieldError[] {
  const path = 'spec.ephemeralContainers';
  const listed = objectsAt(objectAt(pod, 'spec'), 'ephemeralContainers');
  const byName = new Map(listed.map((container) => [textAt(container, 'name'), container]));
  return objectsAt(objectAt(old, 'spec'), 'ephemeralContainers').flatMap((container) => {
    const name = show(textAt(container, 'name'));
    const updated = byName.get(textAt(container, 'name'));
    if (updated === undefined) return [forbidden(path, `existing ephemeral containers ${name} may not be removed\n`)];
    if (isSame(updated, container)) return [];
    const changes = changesText(container, updated);
    return [forbidden(path, `existing ephemeral containers ${name} may not be changed\n${changes}`)];
  });
}
