/** Validation of the sources that pods' volumes and persistent volumes have in common. */

import { child, type FieldError, forbidden, invalid, notSupported, required, tooLong } from '../../field-error.ts';
import type { JsonObject } from '../../meta.ts';
import { byteLength, dnsSubdomainErrors, rangeMessage } from '../../names.ts';
import { has, isObject, isSet, numberAt, objectAt, textAt, textsAt } from './fields.ts';
import { backstepErrors } from './paths.ts';

/** Fields that may not be empty, where the schema can only say that they may not be missing. */
const NEEDED: { readonly [source: string]: readonly string[] } = {
  awsElasticBlockStore: ['volumeID'],
  azureDisk: ['diskName', 'diskURI'],
  azureFile: ['secretName', 'shareName'],
  cephfs: ['monitors'],
  cinder: ['volumeID'],
  csi: ['driver', 'volumeHandle'],
  flexVolume: ['driver'],
  gcePersistentDisk: ['pdName'],
  gitRepo: ['repository'],
  glusterfs: ['endpoints', 'path'],
  hostPath: ['path'],
  iscsi: ['targetPortal', 'iqn'],
  local: ['path'],
  nfs: ['server', 'path'],
  persistentVolumeClaim: ['claimName'],
  photonPersistentDisk: ['pdID'],
  portworxVolume: ['volumeID'],
  quobyte: ['registry', 'volume'],
  rbd: ['monitors', 'image'],
  scaleIO: ['gateway', 'system'],
  vsphereVolume: ['volumePath'],
};
const HOST_PATH_TYPES = [
  '',
  'BlockDevice',
  'CharDevice',
  'Directory',
  'DirectoryOrCreate',
  'File',
  'FileOrCreate',
  'Socket',
];
const DRIVER_BYTES_MAX = 63;

/** The sources that are set, in the order in which they are named; more than one is an error on each after the first. */
export function volumeSourceErrors(
  volume: JsonObject,
  path: string,
  names: readonly string[],
  errorsOf: (name: string, source: JsonObject, path: string) => FieldError[],
): FieldError[] {
  const present = names.filter((name) => has(volume, name));
  if (present.length === 0) return [required(path, 'must specify a volume type')];
  return present.flatMap((name, index) => {
    const sourcePath = child(path, name);
    if (index > 0) return [forbidden(sourcePath, 'may not specify more than 1 volume type')];
    const source = volume[name];
    return isObject(source) ? errorsOf(name, source, sourcePath) : [];
  });
}

/** What is wrong with a source that pods and persistent volumes share. */
export function sharedSourceErrors(name: string, source: JsonObject, path: string): FieldError[] {
  const errors = emptyErrors(name, source, path);
  switch (name) {
    case 'hostPath':
      return [...errors, ...hostPathErrors(source, path)];
    case 'local':
      return [...errors, ...backstepErrors(textAt(source, 'path'), child(path, 'path'))];
    case 'nfs': {
      const exported = textAt(source, 'path');
      const isAbsolute = exported === '' || exported.startsWith('/');
      return isAbsolute ? errors : [...errors, invalid(child(path, 'path'), exported, 'must be an absolute path')];
    }
    case 'iscsi':
      return [...errors, ...iscsiErrors(source, path)];
    case 'fc':
      return fcErrors(source, path);
    case 'csi':
      return [...errors, ...driverErrors(textAt(source, 'driver'), child(path, 'driver'))];
    default:
      return errors;
  }
}

function emptyErrors(name: string, source: JsonObject, path: string): FieldError[] {
  const needed = Object.hasOwn(NEEDED, name) ? (NEEDED[name] ?? []) : [];
  return needed
    .filter((field) => source[field] === '' || (Array.isArray(source[field]) && source[field].length === 0))
    .map((field) => required(child(path, field)));
}

function hostPathErrors(source: JsonObject, path: string): FieldError[] {
  const errors = backstepErrors(textAt(source, 'path'), child(path, 'path'));
  const type = textAt(source, 'type');
  if (!HOST_PATH_TYPES.includes(type)) errors.push(notSupported(child(path, 'type'), type, HOST_PATH_TYPES));
  return errors;
}

const INITIATORS: readonly [prefix: string, pattern: RegExp][] = [
  ['iqn', /^iqn\.\d{4}-\d{2}\.[a-zA-Z0-9.-]+:[^,;*&$|\s]+$/],
  ['eui', /^eui\.[a-zA-Z0-9]{16}$/],
  ['naa', /^naa\.[a-zA-Z0-9]{32}$/],
];

function iscsiErrors(source: JsonObject, path: string): FieldError[] {
  const errors = iscsiNameErrors(textAt(source, 'iqn'), child(path, 'iqn'));
  const lun = numberAt(source, 'lun') ?? 0;
  if (lun < 0 || lun > 255) errors.push(invalid(child(path, 'lun'), lun, rangeMessage(0, 255)));
  const needsSecret = isSet(source, 'chapAuthDiscovery') || isSet(source, 'chapAuthSession');
  if (needsSecret && objectAt(source, 'secretRef') === undefined) errors.push(required(child(path, 'secretRef')));
  if (has(source, 'initiatorName')) {
    errors.push(...iscsiNameErrors(textAt(source, 'initiatorName'), child(path, 'initiatorname')));
  }
  return errors;
}

function iscsiNameErrors(name: string, path: string): FieldError[] {
  if (name === '') return [];
  const form = INITIATORS.find(([prefix]) => name.startsWith(prefix));
  if (form === undefined) return [invalid(path, name, 'must be valid format starting with iqn, eui, or naa')];
  return form[1].test(name) ? [] : [invalid(path, name, 'must be valid format')];
}

function fcErrors(source: JsonObject, path: string): FieldError[] {
  const names = textsAt(source, 'targetWWNs');
  const ids = textsAt(source, 'wwids');
  const namesPath = child(path, 'targetWWNs');
  if (names.length === 0 && ids.length === 0) {
    return [required(namesPath, 'must specify either targetWWNs or wwids, but not both')];
  }
  const errors: FieldError[] = [];
  if (names.length > 0 && ids.length > 0) {
    errors.push(invalid(namesPath, names, 'targetWWNs and wwids can not be specified simultaneously'));
  }
  const lun = numberAt(source, 'lun');
  if (names.length > 0 && lun === undefined) {
    errors.push(required(child(path, 'lun'), 'lun is required if targetWWNs is specified'));
  }
  if (lun !== undefined && (lun < 0 || lun > 255)) errors.push(invalid(child(path, 'lun'), lun, rangeMessage(0, 255)));
  return errors;
}

function driverErrors(driver: string, path: string): FieldError[] {
  if (driver === '') return [];
  const errors = byteLength(driver) > DRIVER_BYTES_MAX ? [tooLong(path, DRIVER_BYTES_MAX)] : [];
  return [...errors, ...dnsSubdomainErrors(driver.toLowerCase()).map((message) => invalid(path, driver, message))];
}
