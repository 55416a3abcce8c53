/** Validation of a pod's volumes. */

import { child, duplicate, type FieldError, forbidden, invalid, required } from '../../../field-error.ts';
import type { JsonObject, ObjectMeta } from '../../../meta.ts';
import { dnsLabelErrors, dnsSubdomainErrors } from '../../../names.ts';
import { parseQuantity } from '../../../quantity.ts';
import { annotationsErrors, labelsErrors } from '../../../validate-meta.ts';
import { claimSpecErrors } from '../claim-validation.ts';
import { objectAt, objectsAt, textAt, textMapAt } from '../fields.ts';
import { descendingPathErrors } from '../paths.ts';
import { volume as volumeSchema } from '../schema/volumes.ts';
import { sharedSourceErrors, volumeSourceErrors } from '../volume-source-validation.ts';
import { downwardFileErrors, modeErrors, pathsErrors, projectedErrors } from './validate-projected.ts';

const SOURCES = Object.keys(volumeSchema.properties ?? {}).filter((field) => field !== 'name');

/** The pod's volumes by name, less the malformed ones, and what is wrong with those. */
export function checkVolumes(
  spec: JsonObject,
  path: string,
  pod: ObjectMeta | undefined,
): { readonly volumes: ReadonlyMap<string, JsonObject>; readonly errors: FieldError[] } {
  const volumes = new Map<string, JsonObject>();
  const errors: FieldError[] = [];
  const made = madeClaims(spec, pod);
  for (const [index, volume] of objectsAt(spec, 'volumes').entries()) {
    const own = child(path, index);
    const name = textAt(volume, 'name');
    const found = volumeSourceErrors(volume, own, SOURCES, (source, value, sourcePath) =>
      sourceErrors(source, value, sourcePath, pod),
    );
    if (volume['name'] === '') found.push(required(child(own, 'name')));
    else if (name !== '') {
      for (const message of dnsLabelErrors(name)) found.push(invalid(child(own, 'name'), name, message));
    }
    if (volumes.has(name)) found.push(duplicate(child(own, 'name'), name));
    if (found.length === 0 && name !== '') volumes.set(name, volume);
    errors.push(...found);
    const claim = textAt(objectAt(volume, 'persistentVolumeClaim'), 'claimName');
    if (made.has(claim)) {
      const claimPath = child(child(own, 'persistentVolumeClaim'), 'claimName');
      errors.push(invalid(claimPath, claim, 'must not reference a PVC that gets created for an ephemeral volume'));
    }
  }
  return { volumes, errors };
}

/** Names of the claims that will be made for the pod's ephemeral volumes. */
function madeClaims(spec: JsonObject, pod: ObjectMeta | undefined): ReadonlySet<string> {
  const name = pod?.name ?? '';
  if (name === '') return new Set();
  return new Set(
    objectsAt(spec, 'volumes')
      .filter((volume) => objectAt(volume, 'ephemeral') !== undefined)
      .map((volume) => `${name}-${textAt(volume, 'name')}`),
  );
}

function sourceErrors(name: string, source: JsonObject, path: string, pod: ObjectMeta | undefined): FieldError[] {
  switch (name) {
    case 'emptyDir': {
      const limit = parseQuantity(source['sizeLimit']);
      const isNegative = limit !== undefined && limit.amount < 0n;
      return isNegative
        ? [forbidden(child(path, 'sizeLimit'), 'SizeLimit field must be a valid resource quantity')]
        : [];
    }
    case 'secret':
      return keyedErrors(source, path, 'secretName');
    case 'configMap':
      return keyedErrors(source, path, 'name');
    case 'downwardAPI':
      return [
        ...modeErrors(source, path, 'defaultMode'),
        ...objectsAt(source, 'items').flatMap((file) => downwardFileErrors(file, path)),
      ];
    case 'projected':
      return projectedErrors(source, path);
    case 'gitRepo':
      return [
        ...sharedSourceErrors(name, source, path),
        ...descendingPathErrors(textAt(source, 'directory'), child(path, 'directory')),
      ];
    case 'csi':
      return [...sharedSourceErrors(name, source, path), ...secretNameErrors(source, path)];
    case 'ephemeral':
      return ephemeralErrors(source, path);
    case 'image': {
      const isMissing = pod !== undefined && textAt(source, 'reference') === '';
      return isMissing ? [required(child(path, 'reference'))] : [];
    }
    default:
      return sharedSourceErrors(name, source, path);
  }
}

function keyedErrors(source: JsonObject, path: string, nameField: string): FieldError[] {
  const errors = textAt(source, nameField) === '' ? [required(child(path, nameField))] : [];
  return [...errors, ...modeErrors(source, path, 'defaultMode'), ...pathsErrors(source, path)];
}

function secretNameErrors(source: JsonObject, path: string): FieldError[] {
  const reference = objectAt(source, 'nodePublishSecretRef');
  if (reference === undefined) return [];
  const name = textAt(reference, 'name');
  if (name === '') return [required(child(child(path, 'nodePublishSecretRef'), 'name'))];
  return dnsSubdomainErrors(name).map((message) => invalid(child(path, 'name'), name, message));
}

function ephemeralErrors(source: JsonObject, path: string): FieldError[] {
  const own = child(path, 'volumeClaimTemplate');
  const template = objectAt(source, 'volumeClaimTemplate');
  if (template === undefined) return [required(own)];
  const metadata = objectAt(template, 'metadata');
  const metadataPath = child(own, 'metadata');
  return [
    ...annotationsErrors(textMapAt(metadata, 'annotations'), child(metadataPath, 'annotations')),
    ...labelsErrors(textMapAt(metadata, 'labels'), child(metadataPath, 'labels')),
    ...claimSpecErrors(objectAt(template, 'spec'), child(own, 'spec')),
  ];
}
