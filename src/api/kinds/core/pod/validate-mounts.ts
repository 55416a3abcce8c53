/** Validation of a container's mounts and devices against the pod's volumes. */

import { child, type FieldError, forbidden, invalid, notFound, required } from '../../../field-error.ts';
import type { JsonObject } from '../../../meta.ts';
import { has, isSet, objectAt, objectsAt, textAt } from '../fields.ts';
import { backstepErrors, descendingPathErrors } from '../paths.ts';

/** The pod's volumes that are well formed, by name. */
export type Volumes = ReadonlyMap<string, JsonObject>;

/** What is wrong with the mounts and devices of a container at `path`. */
export function mountsErrors(container: JsonObject, path: string, volumes: Volumes): FieldError[] {
  const mounts = objectsAt(container, 'volumeMounts');
  const devices = objectsAt(container, 'volumeDevices');
  const isPrivileged = isSet(objectAt(container, 'securityContext'), 'privileged');
  const listPath = child(path, 'volumeMounts');
  const seen = new Set<string>();
  const deviceNames = new Set(devices.map((device) => textAt(device, 'name')));
  const devicePaths = new Set(devices.map((device) => textAt(device, 'devicePath')));
  const errors = mounts.flatMap((mount, index) => {
    const mountPath = textAt(mount, 'mountPath');
    const own = mountErrors(mount, child(listPath, index), listPath, volumes, isPrivileged);
    if (mountPath !== '' && seen.has(mountPath)) {
      own.push(invalid(child(child(listPath, index), 'mountPath'), mountPath, 'must be unique'));
    }
    seen.add(mountPath);
    return [...own, ...clashErrors(mount, child(listPath, index), deviceNames, devicePaths)];
  });
  return [...errors, ...devicesErrors(devices, mounts, child(path, 'volumeDevices'), volumes)];
}

function mountErrors(
  mount: JsonObject,
  path: string,
  listPath: string,
  volumes: Volumes,
  isPrivileged: boolean,
): FieldError[] {
  const errors: FieldError[] = [];
  const name = textAt(mount, 'name');
  if (mount['name'] === '') errors.push(required(child(path, 'name')));
  if (has(mount, 'name') && !volumes.has(name)) errors.push(notFound(child(path, 'name'), name));
  if (mount['mountPath'] === '') errors.push(required(child(path, 'mountPath')));
  const subPath = textAt(mount, 'subPath');
  const expression = textAt(mount, 'subPathExpr');
  errors.push(...descendingPathErrors(subPath, child(listPath, 'subPath')));
  if (subPath !== '' && expression !== '') {
    const detail = 'subPathExpr and subPath are mutually exclusive';
    errors.push(invalid(child(path, 'subPathExpr'), expression, detail));
  }
  errors.push(...descendingPathErrors(expression, child(listPath, 'subPathExpr')));
  const propagation = textAt(mount, 'mountPropagation');
  if (propagation === 'Bidirectional' && !isPrivileged) {
    const detail = 'Bidirectional mount propagation is available only to privileged containers';
    errors.push(forbidden(child(listPath, 'mountPropagation'), detail));
  }
  return [...errors, ...readOnlyErrors(mount, propagation, child(listPath, 'recursiveReadOnly'))];
}

function readOnlyErrors(mount: JsonObject, propagation: string, path: string): FieldError[] {
  const mode = textAt(mount, 'recursiveReadOnly');
  if (mode !== 'Enabled' && mode !== 'IfPossible') return [];
  const errors: FieldError[] = [];
  if (!isSet(mount, 'readOnly')) errors.push(forbidden(path, 'may only be specified when readOnly is true'));
  if (propagation !== '' && propagation !== 'None') {
    errors.push(forbidden(path, 'may only be specified when mountPropagation is None or not specified'));
  }
  return errors;
}

function clashErrors(
  mount: JsonObject,
  path: string,
  deviceNames: ReadonlySet<string>,
  devicePaths: ReadonlySet<string>,
): FieldError[] {
  const errors: FieldError[] = [];
  const name = textAt(mount, 'name');
  const mountPath = textAt(mount, 'mountPath');
  if (deviceNames.has(name)) {
    errors.push(invalid(child(path, 'name'), name, 'must not already exist in volumeDevices'));
  }
  if (devicePaths.has(mountPath)) {
    const detail = 'must not already exist as a path in volumeDevices';
    errors.push(invalid(child(path, 'mountPath'), mountPath, detail));
  }
  return errors;
}

function devicesErrors(
  devices: readonly JsonObject[],
  mounts: readonly JsonObject[],
  path: string,
  volumes: Volumes,
): FieldError[] {
  const names = new Set<string>();
  const paths = new Set<string>();
  const mountNames = new Set(mounts.map((mount) => textAt(mount, 'name')));
  const mountPaths = new Set(mounts.map((mount) => textAt(mount, 'mountPath')));
  return devices.flatMap((device, index) => {
    const itemPath = child(path, index);
    const name = textAt(device, 'name');
    const devicePath = textAt(device, 'devicePath');
    const namePath = child(itemPath, 'name');
    const pathPath = child(itemPath, 'devicePath');
    const errors = deviceErrors(device, itemPath, volumes);
    if (name !== '' && names.has(name)) errors.push(invalid(namePath, name, 'must be unique'));
    if (devicePath !== '' && paths.has(devicePath)) errors.push(invalid(pathPath, devicePath, 'must be unique'));
    if (mountNames.has(name)) errors.push(invalid(namePath, name, 'must not already exist in volumeMounts'));
    if (mountPaths.has(devicePath)) {
      errors.push(invalid(pathPath, devicePath, 'must not already exist as a path in volumeMounts'));
    }
    names.add(name);
    paths.add(devicePath);
    return errors;
  });
}

function deviceErrors(device: JsonObject, path: string, volumes: Volumes): FieldError[] {
  const errors: FieldError[] = [];
  const name = textAt(device, 'name');
  const namePath = child(path, 'name');
  if (device['name'] === '') errors.push(required(namePath));
  const volume = volumes.get(name);
  if (volume === undefined) {
    if (has(device, 'name')) errors.push(notFound(namePath, name));
  } else if (!has(volume, 'persistentVolumeClaim') && !has(volume, 'ephemeral')) {
    const detail = 'can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode';
    errors.push(invalid(namePath, name, detail));
  }
  const devicePath = textAt(device, 'devicePath');
  if (device['devicePath'] === '') errors.push(required(child(path, 'devicePath')));
  if (backstepErrors(devicePath, path).length > 0) {
    errors.push(invalid(child(path, 'devicePath'), devicePath, "can not contain backsteps ('..')"));
  }
  return errors;
}
