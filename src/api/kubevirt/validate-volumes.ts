import { decodeText } from '../kinds/core/base64.ts';
import { child, type FieldError, invalid, required } from '../field-error.ts';
import { dnsLabelErrors } from '../names.ts';
import { nulErrors } from './validate-machine.ts';
import { positiveErrors } from './validate-quantities.ts';
import type { Volume } from './volumes.ts';

/** What the schema cannot say of volumes. */

/** Fields of a volume that say where its contents come from. */
const SOURCES = [
  'containerDisk',
  'persistentVolumeClaim',
  'dataVolume',
  'emptyDisk',
  'hostDisk',
  'configMap',
  'secret',
  'cloudInitNoCloud',
  'cloudInitConfigDrive',
  'ephemeral',
  'containerPath',
  'memoryDump',
  'serviceAccount',
  'downwardAPI',
  'downwardMetrics',
  'sysprep',
] as const satisfies readonly (keyof Volume)[];

/** What an object may carry of cloud-init's data itself, as in KubeVirt; more belongs into a Secret. */
const CLOUD_INIT_BYTES_MAX = 2048;

/** What is wrong with each volume by itself. */
export function volumeErrors(volume: Volume, path: string): FieldError[] {
  const sources = SOURCES.filter((source) => volume[source] !== undefined);
  return [
    ...dnsLabelErrors(volume.name).map((detail) => invalid(child(path, 'name'), volume.name, detail)),
    ...(sources.length === 1 ? [] : [invalid(path, sources, 'must have exactly one source')]),
    ...cloudInitErrors(volume.cloudInitNoCloud, child(path, 'cloudInitNoCloud')),
    ...cloudInitErrors(volume.cloudInitConfigDrive, child(path, 'cloudInitConfigDrive')),
    ...positiveErrors(volume.emptyDisk?.capacity, child(path, 'emptyDisk.capacity')),
    ...nulErrors(volume.containerDisk?.path, child(path, 'containerDisk.path')),
    ...hostDiskErrors(volume.hostDisk, child(path, 'hostDisk')),
    ...nameErrors(volume, path),
  ];
}

type CloudInit = NonNullable<Volume['cloudInitNoCloud']>;

function cloudInitErrors(source: CloudInit | undefined, path: string): FieldError[] {
  if (!source) return [];
  const { userData, userDataBase64, secretRef, networkData, networkDataBase64, networkDataSecretRef } = source;
  const user = countOf(userData, userDataBase64, secretRef?.name);
  const network = countOf(networkData, networkDataBase64, networkDataSecretRef?.name);
  return [
    ...(user + network === 0 ? [required(path, 'user data or network data must be given')] : []),
    ...(user > 1 ? [invalid(path, user, 'user data must be given in one way only')] : []),
    ...(network > 1 ? [invalid(path, network, 'network data must be given in one way only')] : []),
    ...sizeErrors(userData, child(path, 'userData')),
    ...sizeErrors(networkData, child(path, 'networkData')),
    ...base64Errors(userDataBase64, child(path, 'userDataBase64')),
    ...base64Errors(networkDataBase64, child(path, 'networkDataBase64')),
  ];
}

function countOf(...values: readonly (string | undefined)[]): number {
  return values.filter(Boolean).length;
}

function sizeErrors(text: string | undefined, path: string): FieldError[] {
  if (text === undefined || new TextEncoder().encode(text).length <= CLOUD_INIT_BYTES_MAX) return [];
  return [invalid(path, text.length, `must not be longer than ${CLOUD_INIT_BYTES_MAX} bytes: use a Secret`)];
}

function base64Errors(base64: string | undefined, path: string): FieldError[] {
  if (!base64) return [];
  const text = decodeText(base64);
  return text === undefined ? [invalid(path, base64, 'must be base64 of UTF-8')] : sizeErrors(text, path);
}

function hostDiskErrors(source: Volume['hostDisk'], path: string): FieldError[] {
  if (!source) return [];
  return [
    ...(source.path.startsWith('/') && !source.path.split('/').includes('..')
      ? []
      : [invalid(child(path, 'path'), source.path, 'must be an absolute path without ".."')]),
    ...nulErrors(source.path, child(path, 'path')),
    ...positiveErrors(source.capacity, child(path, 'capacity')),
    ...(source.capacity !== undefined && source.type === 'Disk'
      ? [invalid(child(path, 'capacity'), source.capacity, 'may be set only where the type is DiskOrCreate')]
      : []),
  ];
}

/** Names that the schema does not need, but the guest does. */
function nameErrors({ configMap, secret, serviceAccount }: Volume, path: string): FieldError[] {
  return [
    ...(configMap && !configMap.name ? [required(child(path, 'configMap.name'))] : []),
    ...(secret && !secret.secretName ? [required(child(path, 'secret.secretName'))] : []),
    ...(serviceAccount && !serviceAccount.serviceAccountName
      ? [required(child(path, 'serviceAccount.serviceAccountName'))]
      : []),
  ];
}
