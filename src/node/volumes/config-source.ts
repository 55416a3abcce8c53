import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Volume } from '../../api/kubevirt/volumes.ts';
import {
  type CloudInitData,
  type CloudInitDisk,
  configDriveDisk,
  noCloudDisk,
} from '../cloud-init/cloud-init-files.ts';
import type { DiskSource } from './disk-source.ts';
import { VolumeError } from './guest-volumes.ts';
import { configMaps, type ObjectReader, secrets } from './resources.ts';

/** Disks with files from objects. */

/** What the file system is called, unless somebody says otherwise; as KubeVirt's. */
const DEFAULT_LABEL = 'cfgdata';

type Files = ReadonlyMap<string, Uint8Array>;

/** A ConfigMap, one file for each key. */
export async function configMapSource(
  guest: VirtualMachineInstance,
  { name, optional, volumeLabel }: NonNullable<Volume['configMap']>,
  reader: ObjectReader,
): Promise<DiskSource> {
  const found = optional ? await reader.find(configMaps, name ?? '') : await reader.get(configMaps, name ?? '');
  const files = new Map<string, Uint8Array>([
    ...Object.entries(found?.data ?? {}).map(([key, text]): [string, Uint8Array] => [key, Buffer.from(text)]),
    ...decoded(found?.binaryData),
  ]);
  return cdrom(guest, volumeLabel || DEFAULT_LABEL, files);
}

/** A Secret, one file for each key. */
export async function secretSource(
  guest: VirtualMachineInstance,
  { secretName, optional, volumeLabel }: NonNullable<Volume['secret']>,
  reader: ObjectReader,
): Promise<DiskSource> {
  const name = secretName ?? '';
  const found = optional ? await reader.find(secrets, name) : await reader.get(secrets, name);
  return cdrom(guest, volumeLabel || DEFAULT_LABEL, new Map(decoded(found?.data)));
}

type CloudInit = NonNullable<Volume['cloudInitNoCloud']>;

/** A disk for cloud-init, of either kind; undefined for a volume that is none. */
export async function cloudInitSource(
  guest: VirtualMachineInstance,
  { name, cloudInitNoCloud, cloudInitConfigDrive }: Volume,
  reader: ObjectReader,
): Promise<DiskSource | undefined> {
  const source = cloudInitNoCloud ?? cloudInitConfigDrive;
  if (!source) return undefined;
  const data = await cloudInitData(name, source, reader);
  const { label, files }: CloudInitDisk = cloudInitNoCloud ? noCloudDisk(guest, data) : configDriveDisk(guest, data);
  return cdrom(guest, label, files);
}

async function cloudInitData(volume: string, source: CloudInit, reader: ObjectReader): Promise<CloudInitData> {
  const { userData, userDataBase64, secretRef, networkData, networkDataBase64, networkDataSecretRef } = source;
  return {
    userData:
      given(userData, userDataBase64) ?? (await fromSecret(volume, secretRef?.name, ['userdata', 'userData'], reader)),
    networkData:
      given(networkData, networkDataBase64) ??
      (await fromSecret(volume, networkDataSecretRef?.name, ['networkdata', 'networkData'], reader)),
  };
}

function given(text: string | undefined, base64: string | undefined): Uint8Array | undefined {
  if (text) return Buffer.from(text);
  return base64 ? Buffer.from(base64, 'base64') : undefined;
}

async function fromSecret(
  volume: string,
  name: string | undefined,
  keys: readonly string[],
  reader: ObjectReader,
): Promise<Uint8Array | undefined> {
  if (!name) return undefined;
  const { data = {} } = await reader.get(secrets, name);
  const key = keys.find((each) => Object.hasOwn(data, each));
  if (key === undefined)
    throw new VolumeError(volume, 'SecretIncomplete', `Secret ${name} has no key ${keys.join(' or ')}`);
  return Buffer.from(data[key] ?? '', 'base64');
}

function decoded(data: { readonly [key: string]: string } | undefined): [string, Uint8Array][] {
  return Object.entries(data ?? {}).map(([key, base64]) => [key, Buffer.from(base64, 'base64')]);
}

/** With the time of the guest's creation: a guest that moves has the same disk on the other node. */
function cdrom(guest: VirtualMachineInstance, label: string, files: Files): DiskSource {
  const modifiedMs = Date.parse(guest.metadata.creationTimestamp ?? '');
  return { kind: 'cdrom', contents: { label, files, modifiedMs: Number.isNaN(modifiedMs) ? 0 : modifiedMs } };
}
