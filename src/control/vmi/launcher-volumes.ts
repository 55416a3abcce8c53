import type { Volume } from '../../api/kubevirt/volumes.ts';
import type { JsonObject } from '../../api/meta.ts';
import { claimNameOf } from '../volume-claims.ts';

/** What of a guest's volumes its launcher pod must have: claims, and what only pods may read. */

export interface PodVolumes {
  readonly volumes: JsonObject[];
  readonly volumeMounts: JsonObject[];
  readonly volumeDevices: JsonObject[];
}

const PRIVATE = '/var/run/kubevirt-private';
const EPHEMERAL: JsonObject = { name: 'ephemeral-disks', emptyDir: {} };
const EPHEMERAL_MOUNT: JsonObject = { name: 'ephemeral-disks', mountPath: '/var/run/kubevirt-ephemeral-disks' };

/** Volumes and mounts of the pod; `isBlock` says which claims are devices and no filesystems. */
export function podVolumes(volumes: readonly Volume[], isBlock: (claimName: string) => boolean): PodVolumes {
  const made: PodVolumes = { volumes: [EPHEMERAL], volumeMounts: [EPHEMERAL_MOUNT], volumeDevices: [] };
  for (const volume of volumes) add(made, volume, isBlock);
  return made;
}

function add(made: PodVolumes, volume: Volume, isBlock: (claimName: string) => boolean): void {
  const { name, configMap, secret, hostDisk } = volume;
  const claimName = claimNameOf(volume);
  if (claimName !== undefined) {
    const readOnly = volume.persistentVolumeClaim?.readOnly ?? volume.ephemeral?.persistentVolumeClaim?.readOnly;
    made.volumes.push({ name, persistentVolumeClaim: { claimName, ...(readOnly ? { readOnly } : {}) } });
    if (isBlock(claimName)) made.volumeDevices.push({ name, devicePath: `/dev/${name}` });
    else made.volumeMounts.push({ name, mountPath: `${PRIVATE}/vmi-disks/${name}` });
  }
  if (configMap) {
    const { name: source = '', optional } = configMap;
    made.volumes.push({ name, configMap: { name: source, ...(optional === undefined ? {} : { optional }) } });
    made.volumeMounts.push({ name, mountPath: `${PRIVATE}/config-map/${name}`, readOnly: true });
  }
  if (secret) {
    const { secretName = '', optional } = secret;
    addSecret(made, name, secretName, optional);
  }
  if (hostDisk) {
    const type = hostDisk.type === 'DiskOrCreate' ? 'DirectoryOrCreate' : 'Directory';
    made.volumes.push({ name, hostPath: { path: directoryOf(hostDisk.path), type } });
    made.volumeMounts.push({ name, mountPath: `${PRIVATE}/vmi-disks/${name}` });
  }
  addCloudInit(made, volume);
}

/** Data for cloud-init that is not in the guest's own object. */
function addCloudInit(made: PodVolumes, { name, cloudInitNoCloud, cloudInitConfigDrive }: Volume): void {
  const source = cloudInitNoCloud ?? cloudInitConfigDrive;
  if (source?.secretRef?.name) addSecret(made, `${name}-udata`, source.secretRef.name);
  if (source?.networkDataSecretRef?.name) addSecret(made, `${name}-ndata`, source.networkDataSecretRef.name);
}

function addSecret(made: PodVolumes, name: string, secretName: string, optional?: boolean): void {
  made.volumes.push({ name, secret: { secretName, ...(optional === undefined ? {} : { optional }) } });
  made.volumeMounts.push({ name, mountPath: `${PRIVATE}/secret/${name}`, readOnly: true });
}

function directoryOf(path: string): string {
  return path.slice(0, path.lastIndexOf('/')) || '/';
}
