/** Validation of metadata, the same for every kind. */

import { entry, type FieldError, forbidden, invalid, required, show, tooLong } from './field-error.ts';
import { type ObjectMeta, type OwnerReference, parseApiVersion } from './meta.ts';
import { byteLength, dnsLabelErrors, labelValueErrors, maskTrailingDash, qualifiedNameErrors } from './names.ts';

/** All annotations of an object together, keys and values. */
export const ANNOTATIONS_BYTES_MAX = 256 * 1024;
export const FIELD_IMMUTABLE = 'field is immutable';
const FIELD_MANAGER_BYTES_MAX = 128;
const SUBRESOURCE_BYTES_MAX = 256;

/** Metadata of a new object, its name already generated. `nameErrors` is the rule for names of the kind. */
export function validateObjectMeta(
  meta: ObjectMeta,
  namespaced: boolean,
  nameErrors: (name: string) => string[],
): FieldError[] {
  const errors: FieldError[] = [];
  if (meta.generateName !== undefined && meta.generateName !== '') {
    for (const message of nameErrors(maskTrailingDash(meta.generateName))) {
      errors.push(invalid('metadata.generateName', meta.generateName, message));
    }
  }
  if (meta.name === undefined || meta.name === '') {
    errors.push(required('metadata.name', 'name or generateName is required'));
  } else {
    for (const message of nameErrors(meta.name)) errors.push(invalid('metadata.name', meta.name, message));
  }
  errors.push(...namespaceErrors(meta.namespace ?? '', namespaced));
  if ((meta.generation ?? 0) < 0) {
    errors.push(invalid('metadata.generation', meta.generation, 'must be greater than or equal to 0'));
  }
  errors.push(...sharedErrors(meta));
  errors.push(...finalizerErrors(meta.finalizers ?? []));
  return errors;
}

/** What an update may not change of the metadata, and whether what it says is well formed. */
export function validateObjectMetaUpdate(meta: ObjectMeta, old: ObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  if (old.deletionTimestamp !== undefined && old.deletionTimestamp !== null) {
    errors.push(...newFinalizerErrors(meta.finalizers ?? [], old.finalizers ?? []));
  }
  if ((meta.generation ?? 0) < (old.generation ?? 0)) {
    errors.push(invalid('metadata.generation', meta.generation ?? 0, 'must not be decremented'));
  }
  for (const field of ['name', 'namespace', 'uid'] as const) {
    if ((meta[field] ?? '') !== (old[field] ?? '')) {
      errors.push(invalid(`metadata.${field}`, meta[field] ?? '', FIELD_IMMUTABLE));
    }
  }
  for (const field of ['creationTimestamp', 'deletionTimestamp', 'deletionGracePeriodSeconds'] as const) {
    if ((meta[field] ?? null) !== (old[field] ?? null)) {
      errors.push(invalid(`metadata.${field}`, meta[field], FIELD_IMMUTABLE));
    }
  }
  errors.push(...sharedErrors(meta));
  return errors;
}

/** What is wrong with a map of labels at `path`, which need not be metadata's (selectors, templates). */
export function labelsErrors(labels: Readonly<Record<string, string>> | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  for (const [key, value] of Object.entries(labels ?? {})) {
    for (const message of qualifiedNameErrors(key)) errors.push(invalid(path, key, message));
    for (const message of labelValueErrors(value)) errors.push(invalid(path, value, message));
  }
  return errors;
}

/** What is wrong with a map of annotations at `path`. */
export function annotationsErrors(
  annotations: Readonly<Record<string, string>> | undefined,
  path: string,
): FieldError[] {
  const errors: FieldError[] = [];
  let bytes = 0;
  for (const [key, value] of Object.entries(annotations ?? {})) {
    for (const message of qualifiedNameErrors(key.toLowerCase())) errors.push(invalid(path, key, message));
    bytes += byteLength(key) + byteLength(value);
  }
  if (bytes > ANNOTATIONS_BYTES_MAX) errors.push(tooLong(path, ANNOTATIONS_BYTES_MAX));
  return errors;
}

function sharedErrors(meta: ObjectMeta): FieldError[] {
  return [
    ...labelsErrors(meta.labels, 'metadata.labels'),
    ...annotationsErrors(meta.annotations, 'metadata.annotations'),
    ...ownerErrors(meta.ownerReferences ?? []),
    ...managedFieldsErrors(meta),
  ];
}

function namespaceErrors(namespace: string, namespaced: boolean): FieldError[] {
  const path = 'metadata.namespace';
  if (!namespaced) return namespace === '' ? [] : [forbidden(path, 'not allowed on this type')];
  if (namespace === '') return [required(path)];
  return dnsLabelErrors(namespace).map((message) => invalid(path, namespace, message));
}

function ownerErrors(owners: readonly OwnerReference[]): FieldError[] {
  const path = 'metadata.ownerReferences';
  const errors: FieldError[] = [];
  for (const owner of owners) errors.push(...ownerFieldErrors(owner, path));
  const [first, second] = owners
    .filter((owner) => owner.controller === true)
    .map((owner) => `${owner.kind}/${owner.name}`);
  // Said once: each time it shows all owners, and all of them may claim to be the controller.
  if (second !== undefined) {
    const detail = `Only one reference can have Controller set to true. Found "true" in references for ${first} and ${second}`;
    errors.push(invalid(path, owners, detail));
  }
  return errors;
}

function ownerFieldErrors(owner: OwnerReference, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (parseApiVersion(owner.apiVersion ?? '').version === '') {
    errors.push(invalid(`${path}.apiVersion`, owner.apiVersion ?? '', 'version must not be empty'));
  }
  for (const field of ['kind', 'name', 'uid'] as const) {
    if ((owner[field] ?? '') === '') errors.push(invalid(`${path}.${field}`, '', 'must not be empty'));
  }
  if (owner.apiVersion === 'v1' && owner.kind === 'Event') {
    errors.push(invalid(path, owner, '/v1, Kind=Event is disallowed from being an owner'));
  }
  return errors;
}

function finalizerErrors(finalizers: readonly string[]): FieldError[] {
  const path = 'metadata.finalizers';
  const errors = finalizers.flatMap((finalizer) =>
    qualifiedNameErrors(finalizer).map((message) => invalid(path, finalizer, message)),
  );
  if (finalizers.includes('orphan') && finalizers.includes('foregroundDeletion')) {
    errors.push(invalid(path, finalizers, 'finalizer orphan and foregroundDeletion cannot be both set'));
  }
  return errors;
}

function newFinalizerErrors(finalizers: readonly string[], old: readonly string[]): FieldError[] {
  const known = new Set(old);
  const added = [...new Set(finalizers)].filter((finalizer) => !known.has(finalizer)).sort();
  if (added.length === 0) return [];
  const list = `[]string{${added.map(show).join(', ')}}`;
  return [
    forbidden(
      'metadata.finalizers',
      `no new finalizers can be added if the object is being deleted, found new finalizers ${list}`,
    ),
  ];
}

function managedFieldsErrors(meta: ObjectMeta): FieldError[] {
  const errors: FieldError[] = [];
  for (const [index, each] of (meta.managedFields ?? []).entries()) {
    const path = entry('metadata.managedFields', String(index));
    if (each.operation !== 'Apply' && each.operation !== 'Update') {
      errors.push(invalid(`${path}.operation`, each.operation ?? '', 'must be `Apply` or `Update`'));
    }
    if (each.fieldsType !== undefined && each.fieldsType !== 'FieldsV1') {
      errors.push(invalid(`${path}.fieldsType`, each.fieldsType, 'must be `FieldsV1`'));
    }
    if (byteLength(each.manager ?? '') > FIELD_MANAGER_BYTES_MAX) {
      errors.push(tooLong(`${path}.manager`, FIELD_MANAGER_BYTES_MAX));
    }
    if (byteLength(each.subresource ?? '') > SUBRESOURCE_BYTES_MAX) {
      errors.push(tooLong(`${path}.subresource`, SUBRESOURCE_BYTES_MAX));
    }
  }
  return errors;
}
