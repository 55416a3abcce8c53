/** Validation of volumes that show keys and fields as files. */

import { child, type FieldError, forbidden, invalid, required } from '../../../field-error.ts';
import type { JsonObject } from '../../../meta.ts';
import { has, numberAt, objectAt, objectsAt, textAt } from '../fields.ts';
import { localPathErrors } from '../paths.ts';
import { fileReferenceErrors } from './validate-environment.ts';

const MODE_MAX = 0o777;
const TOKEN_SECONDS_MIN = 600;
const TOKEN_SECONDS_MAX = 2 ** 32;
const SOURCES = ['secret', 'configMap', 'downwardAPI', 'serviceAccountToken', 'clusterTrustBundle', 'podCertificate'];

/** Refuses permission bits that are none. */
export function modeErrors(source: JsonObject, path: string, field: string): FieldError[] {
  const mode = numberAt(source, field);
  if (mode === undefined || (mode >= 0 && mode <= MODE_MAX)) return [];
  return [invalid(child(path, field), mode, 'must be a number between 0 and 0777 (octal), both inclusive')];
}

/** What is wrong with where keys appear. */
export function pathsErrors(source: JsonObject, path: string): FieldError[] {
  return objectsAt(source, 'items').flatMap((item, index) => {
    const own = child(child(path, 'items'), index);
    const errors = ['key', 'path'].filter((field) => item[field] === '').map((field) => required(child(own, field)));
    errors.push(...localPathErrors(textAt(item, 'path'), child(own, 'path')));
    return [...errors, ...modeErrors(item, own, 'mode')];
  });
}

/** What is wrong with a file that shows a field of the pod; upstream blames the list, not the item. */
export function downwardFileErrors(file: JsonObject, path: string): FieldError[] {
  const errors = file['path'] === '' ? [required(child(path, 'path'))] : [];
  errors.push(...localPathErrors(textAt(file, 'path'), child(path, 'path')));
  return [...errors, ...fileReferenceErrors(file, path), ...modeErrors(file, path, 'mode')];
}

/** What is wrong with a projected volume. */
export function projectedErrors(projected: JsonObject, path: string): FieldError[] {
  const taken = new Set<string>();
  const claim = (file: string, shown: string): FieldError[] => {
    if (file === '') return [];
    if (taken.has(file)) return [invalid(path, shown, 'conflicting duplicate paths')];
    taken.add(file);
    return [];
  };
  const errors = modeErrors(projected, path, 'defaultMode');
  for (const [index, source] of objectsAt(projected, 'sources').entries()) {
    const own = child(child(path, 'sources'), index);
    errors.push(...sourceErrors(source, own, path, claim));
    if (SOURCES.filter((name) => has(source, name)).length > 1) {
      errors.push(forbidden(own, 'may not specify more than 1 volume type per source'));
    }
  }
  return errors;
}

type Claim = (file: string, shown: string) => FieldError[];

function sourceErrors(source: JsonObject, path: string, volumePath: string, claim: Claim): FieldError[] {
  const errors: FieldError[] = [];
  for (const field of ['secret', 'configMap']) {
    const keyed = objectAt(source, field);
    if (keyed === undefined) continue;
    const name = textAt(keyed, 'name');
    if (name === '') errors.push(required(child(child(path, field), 'name')));
    errors.push(...pathsErrors(keyed, child(path, field)));
    for (const item of objectsAt(keyed, 'items')) errors.push(...claim(textAt(item, 'path'), name));
  }
  for (const file of objectsAt(objectAt(source, 'downwardAPI'), 'items')) {
    errors.push(...downwardFileErrors(file, child(path, 'downwardAPI')));
    errors.push(...claim(textAt(file, 'path'), textAt(file, 'path')));
  }
  const token = objectAt(source, 'serviceAccountToken');
  if (token !== undefined) errors.push(...tokenErrors(token, child(path, 'serviceAccountToken'), volumePath));
  const bundle = objectAt(source, 'clusterTrustBundle');
  if (bundle !== undefined) {
    errors.push(...bundleErrors(bundle, child(path, 'clusterTrustBundle')));
    errors.push(...claim(textAt(bundle, 'path'), textAt(bundle, 'path')));
  }
  return errors;
}

function tokenErrors(token: JsonObject, path: string, volumePath: string): FieldError[] {
  const errors: FieldError[] = [];
  const seconds = numberAt(token, 'expirationSeconds');
  const secondsPath = child(path, 'expirationSeconds');
  if (seconds !== undefined && seconds < TOKEN_SECONDS_MIN) {
    errors.push(invalid(secondsPath, seconds, 'may not specify a duration less than 10 minutes'));
  }
  if (seconds !== undefined && seconds > TOKEN_SECONDS_MAX) {
    errors.push(invalid(secondsPath, seconds, 'may not specify a duration larger than 2^32 seconds'));
  }
  if (token['path'] === '') errors.push(required(child(volumePath, 'path')));
  return [...errors, ...localPathErrors(textAt(token, 'path'), child(volumePath, 'path'))];
}

function bundleErrors(bundle: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const byName = has(bundle, 'name');
  const bySigner = has(bundle, 'signerName');
  if (byName && bySigner) errors.push(invalid(path, bundle, 'only one of name and signerName may be used'));
  else if (!byName && !bySigner) errors.push(required(path, 'either name or signerName must be specified'));
  else if (byName && has(bundle, 'labelSelector')) {
    const detail = 'labelSelector must be unset if name is specified';
    errors.push(invalid(child(path, 'labelSelector'), bundle['labelSelector'], detail));
  }
  if (bundle['path'] === '') errors.push(required(child(path, 'path')));
  return [...errors, ...localPathErrors(textAt(bundle, 'path'), child(path, 'path'))];
}
