/** Validation of a container's environment, and of the references that files share with it. */

import { child, type FieldError, invalid, notSupported, required } from '../../../field-error.ts';
import type { JsonObject } from '../../../meta.ts';
import {
  configKeyErrors,
  dnsLabelErrors,
  dnsSubdomainErrors,
  environmentNameErrors,
  qualifiedNameErrors,
} from '../../../names.ts';
import { formatQuantity, parseQuantity } from '../../../quantity.ts';
import { has, objectAt, objectsAt, textAt } from '../fields.ts';
import { backstepErrors } from '../paths.ts';

const VARIABLE_FIELDS = [
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.podIP',
  'status.podIPs',
];
const FILE_FIELDS = ['metadata.annotations', 'metadata.labels', 'metadata.name', 'metadata.namespace', 'metadata.uid'];
const RESOURCES = [
  'limits.cpu',
  'limits.ephemeral-storage',
  'limits.memory',
  'requests.cpu',
  'requests.ephemeral-storage',
  'requests.memory',
];
const SOURCES = ['fieldRef', 'resourceFieldRef', 'configMapKeyRef', 'secretKeyRef', 'fileKeyRef'];

/** What is wrong with the variables of a container at `path`. */
export function environmentErrors(container: JsonObject, path: string): FieldError[] {
  return [
    ...objectsAt(container, 'env').flatMap((variable, index) =>
      variableErrors(variable, child(child(path, 'env'), index)),
    ),
    ...objectsAt(container, 'envFrom').flatMap((source, index) => setErrors(source, child(path, 'envFrom'), index)),
  ];
}

function variableErrors(variable: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const name = textAt(variable, 'name');
  if (variable['name'] === '') errors.push(required(child(path, 'name')));
  else if (name !== '') {
    for (const message of environmentNameErrors(name)) errors.push(invalid(child(path, 'name'), name, message));
  }
  const source = objectAt(variable, 'valueFrom');
  if (source === undefined) return errors;
  const sourcePath = child(path, 'valueFrom');
  errors.push(...sourceErrors(source, sourcePath));
  const count = SOURCES.filter((each) => has(source, each)).length;
  if (count === 0) {
    const detail = 'must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`';
    errors.push(invalid(sourcePath, '', detail));
  } else if (textAt(variable, 'value') !== '') {
    errors.push(invalid(sourcePath, '', 'may not be specified when `value` is not empty'));
  } else if (count > 1) {
    errors.push(invalid(sourcePath, '', 'may not have more than one field specified at a time'));
  }
  return errors;
}

function sourceErrors(source: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const field = objectAt(source, 'fieldRef');
  if (field !== undefined) errors.push(...fieldReferenceErrors(field, child(path, 'fieldRef'), VARIABLE_FIELDS));
  const resource = objectAt(source, 'resourceFieldRef');
  if (resource !== undefined) {
    errors.push(...resourceReferenceErrors(resource, child(path, 'resourceFieldRef'), false));
  }
  for (const name of ['configMapKeyRef', 'secretKeyRef']) {
    const key = objectAt(source, name);
    if (key !== undefined) errors.push(...keyErrors(key, child(path, name)));
  }
  const file = objectAt(source, 'fileKeyRef');
  if (file !== undefined) errors.push(...fileKeyErrors(file, child(path, 'fileKeyRef')));
  return errors;
}

function keyErrors(reference: JsonObject, path: string): FieldError[] {
  const name = textAt(reference, 'name');
  const errors = dnsSubdomainErrors(name).map((message) => invalid(child(path, 'name'), name, message));
  if (reference['key'] === '') errors.push(required(child(path, 'key')));
  const key = textAt(reference, 'key');
  if (key === '') return errors;
  return [...errors, ...configKeyErrors(key).map((message) => invalid(child(path, 'key'), key, message))];
}

function fileKeyErrors(reference: JsonObject, path: string): FieldError[] {
  const errors = ['key', 'volumeName', 'path']
    .filter((field) => reference[field] === '')
    .map((field) => required(child(path, field)));
  const key = textAt(reference, 'key');
  if (key !== '') {
    for (const message of environmentNameErrors(key)) errors.push(invalid(child(path, 'key'), key, message));
  }
  const volume = textAt(reference, 'volumeName');
  if (volume !== '') {
    for (const message of dnsLabelErrors(volume)) errors.push(invalid(child(path, 'volumeName'), volume, message));
  }
  return [...errors, ...backstepErrors(textAt(reference, 'path'), child(path, 'path'))];
}

function setErrors(source: JsonObject, path: string, index: number): FieldError[] {
  const itemPath = child(path, index);
  const errors: FieldError[] = [];
  const prefix = textAt(source, 'prefix');
  if (prefix !== '') {
    for (const message of environmentNameErrors(prefix)) {
      errors.push(invalid(child(itemPath, 'prefix'), prefix, message));
    }
  }
  const present = ['configMapRef', 'secretRef'].filter((field) => has(source, field));
  for (const field of present) {
    const name = textAt(objectAt(source, field), 'name');
    const namePath = child(child(itemPath, field), 'name');
    if (name === '') errors.push(required(namePath));
    else for (const message of dnsSubdomainErrors(name)) errors.push(invalid(namePath, name, message));
  }
  if (present.length === 0) errors.push(invalid(path, '', 'must specify one of: `configMapRef` or `secretRef`'));
  if (present.length > 1) errors.push(invalid(path, '', 'may not have more than one field specified at a time'));
  return errors;
}

/** What is wrong with a file of a downward API volume. `fieldRef` and `resourceFieldRef` are its sources. */
export function fileReferenceErrors(file: JsonObject, path: string): FieldError[] {
  const field = objectAt(file, 'fieldRef');
  const resource = objectAt(file, 'resourceFieldRef');
  if (field !== undefined) {
    const errors = fieldReferenceErrors(field, child(path, 'fieldRef'), FILE_FIELDS);
    const detail = 'fieldRef and resourceFieldRef can not be specified simultaneously';
    return resource === undefined ? errors : [...errors, invalid(path, 'resource', detail)];
  }
  if (resource !== undefined) return resourceReferenceErrors(resource, child(path, 'resourceFieldRef'), true);
  return [required(path, 'one of fieldRef and resourceFieldRef is required')];
}

function fieldReferenceErrors(reference: JsonObject, path: string, supported: readonly string[]): FieldError[] {
  const fieldPath = textAt(reference, 'fieldPath');
  if (fieldPath === '') return reference['fieldPath'] === '' ? [required(child(path, 'fieldPath'))] : [];
  const version = textAt(reference, 'apiVersion');
  if (version !== 'v1') {
    const detail = `error converting fieldPath: unsupported pod version: ${version}`;
    return [invalid(child(path, 'fieldPath'), fieldPath, detail)];
  }
  const subscript = /^(.*)\['([^']*)'\]$/.exec(fieldPath);
  if (subscript !== null) {
    const [, base = '', key = ''] = subscript;
    if (base !== 'metadata.annotations' && base !== 'metadata.labels') {
      return [invalid(path, base, 'does not support subscript')];
    }
    const name = base === 'metadata.annotations' ? key.toLowerCase() : key;
    return qualifiedNameErrors(name).map((message) => invalid(path, name, message));
  }
  if (supported.includes(fieldPath)) return [];
  if (POD_FIELDS.has(fieldPath)) return [notSupported(child(path, 'fieldPath'), fieldPath, supported)];
  const detail = `error converting fieldPath: field label not supported: ${fieldPath}`;
  return [invalid(child(path, 'fieldPath'), fieldPath, detail)];
}

/** Fields that a pod could be asked for by somebody; what is none of these is a mistake of another kind. */
const POD_FIELDS: ReadonlySet<string> = new Set([
  'metadata.annotations',
  'metadata.labels',
  'metadata.name',
  'metadata.namespace',
  'metadata.uid',
  'spec.nodeName',
  'spec.restartPolicy',
  'spec.schedulerName',
  'spec.serviceAccountName',
  'status.hostIP',
  'status.hostIPs',
  'status.phase',
  'status.podIP',
  'status.podIPs',
]);

function resourceReferenceErrors(reference: JsonObject, path: string, isFile: boolean): FieldError[] {
  const resource = textAt(reference, 'resource');
  const errors: FieldError[] = [];
  if (isFile && textAt(reference, 'containerName') === '') errors.push(required(child(path, 'containerName')));
  else if (reference['resource'] === '') errors.push(required(child(path, 'resource')));
  else if (resource !== '' && !RESOURCES.includes(resource) && !/^(limits|requests)\.hugepages-/.test(resource)) {
    errors.push(notSupported(child(path, 'resource'), resource, RESOURCES));
  }
  return [...errors, ...divisorErrors(reference, resource, child(path, 'divisor'))];
}

const BYTE_DIVISORS = ['1', '1k', '1M', '1G', '1T', '1P', '1E', '1Ki', '1Mi', '1Gi', '1Ti', '1Pi', '1Ei'];

function divisorErrors(reference: JsonObject, resource: string, path: string): FieldError[] {
  const quantity = parseQuantity(reference['divisor']);
  if (quantity === undefined || quantity.amount === 0n) return [];
  const divisor = formatQuantity(quantity);
  const name = resource.replace(/^(limits|requests)\./, '');
  if (name === 'cpu') {
    if (divisor === '1m' || divisor === '1') return [];
    return [invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource")];
  }
  const label =
    name === 'ephemeral-storage' ? 'local ephemeral storage' : name.startsWith('hugepages-') ? 'hugepages' : name;
  if (BYTE_DIVISORS.includes(divisor) || !['memory', 'local ephemeral storage', 'hugepages'].includes(label)) return [];
  const detail = `only divisor's values ${BYTE_DIVISORS.join(', ')} are supported with the ${label} resource`;
  return [invalid(path, resource, detail)];
}
