import { child, entry, type FieldError, invalid, required } from '../../field-error.ts';
import type { JsonObject } from '../../meta.ts';
import { dnsLabelErrors, dnsSubdomainErrors } from '../../names.ts';
import { labelSelectorErrors } from '../validation.ts';
import { accessModeErrors } from './access-modes.ts';
import { has, objectAt, textAt, textsAt } from './fields.ts';
import { positiveQuantityErrors } from './resource-validation.ts';

/** What is wrong with what a claim asks for, also where a template does. */
export function claimSpecErrors(spec: JsonObject | undefined, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const modes = textsAt(spec, 'accessModes');
  if (modes.length === 0) errors.push(required(child(path, 'accessModes'), 'at least 1 access mode is required'));
  errors.push(...labelSelectorErrors(objectAt(spec, 'selector'), child(path, 'selector')));
  errors.push(...accessModeErrors(modes, child(path, 'accessModes')));
  const requests = objectAt(objectAt(spec, 'resources'), 'requests');
  const storagePath = entry(child(path, 'resources'), 'storage');
  if (!has(requests, 'storage')) errors.push(required(storagePath));
  errors.push(...positiveQuantityErrors(requests, 'storage', storagePath));
  for (const field of ['storageClassName', 'volumeAttributesClassName']) {
    const name = textAt(spec, field);
    if (name === '') continue;
    for (const message of dnsSubdomainErrors(name)) errors.push(invalid(child(path, field), name, message));
  }
  return [...errors, ...dataSourceErrors(spec, path)];
}

function dataSourceErrors(spec: JsonObject | undefined, path: string): FieldError[] {
  const source = objectAt(spec, 'dataSource');
  const reference = objectAt(spec, 'dataSourceRef');
  const errors = [
    ...referenceErrors(source, child(path, 'dataSource')),
    ...referenceErrors(reference, child(path, 'dataSourceRef')),
  ];
  const namespace = textAt(reference, 'namespace');
  const sourcePath = child(path, 'dataSource');
  if (namespace !== '') {
    const namespacePath = child(child(path, 'dataSourceRef'), 'namespace');
    for (const message of dnsLabelErrors(namespace)) errors.push(invalid(namespacePath, namespace, message));
    if (source !== undefined) {
      errors.push(invalid(path, sourcePath, 'may not be specified when dataSourceRef.namespace is specified'));
    }
  } else if (source !== undefined && reference !== undefined) {
    const isEqual = ['apiGroup', 'kind', 'name'].every((field) => textAt(source, field) === textAt(reference, field));
    if (!isEqual) errors.push(invalid(path, sourcePath, 'must match dataSourceRef'));
  }
  return errors;
}

function referenceErrors(reference: JsonObject | undefined, path: string): FieldError[] {
  if (reference === undefined) return [];
  const errors: FieldError[] = [];
  for (const field of ['name', 'kind']) if (reference[field] === '') errors.push(required(child(path, field)));
  const group = textAt(reference, 'apiGroup');
  if (group === '' && textAt(reference, 'kind') !== 'PersistentVolumeClaim') {
    const detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
    errors.push(invalid(path, textAt(reference, 'kind'), detail));
  }
  if (group !== '') {
    for (const message of dnsSubdomainErrors(group)) errors.push(invalid(child(path, 'apiGroup'), group, message));
  }
  return errors;
}
