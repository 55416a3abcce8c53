import { bool, int32, list, map, message, str } from '../../../schema.ts';
import { localObjectReference } from './references.ts';
import { CORE } from './package.ts';

/** Schemas of volumes that only old clusters and cloud providers know; we keep what they say. */

export const awsElasticBlockStoreVolumeSource = message(
  `${CORE}.AWSElasticBlockStoreVolumeSource`,
  'An AWS disk.',
  {
    volumeID: [1, str(), 'ID of the disk.'],
    fsType: [2, str(), 'Filesystem to mount.'],
    partition: [3, int32(), 'Partition to mount.'],
    readOnly: [4, bool(), 'Whether the volume is read-only.'],
  },
  { required: ['volumeID'] },
);

export const gcePersistentDiskVolumeSource = message(
  `${CORE}.GCEPersistentDiskVolumeSource`,
  'A Google Cloud disk.',
  {
    pdName: [1, str(), 'Name of the disk.'],
    fsType: [2, str(), 'Filesystem to mount.'],
    partition: [3, int32(), 'Partition to mount.'],
    readOnly: [4, bool(), 'Whether the volume is read-only.'],
  },
  { required: ['pdName'] },
);

export const azureDiskVolumeSource = message(
  `${CORE}.AzureDiskVolumeSource`,
  'An Azure data disk.',
  {
    diskName: [1, str(), 'Name of the disk.'],
    diskURI: [2, str(), 'URI of the disk.'],
    cachingMode: [3, str({ default: 'ReadWrite', pointer: true }), 'None, ReadOnly or ReadWrite.'],
    fsType: [4, str({ default: 'ext4', pointer: true }), 'Filesystem to mount.'],
    readOnly: [5, bool({ pointer: true }), 'Whether the volume is read-only.'],
    kind: [6, str({ default: 'Shared', pointer: true }), 'Shared, Dedicated or Managed.'],
  },
  { required: ['diskName', 'diskURI'] },
);

export const azureFileVolumeSource = message(
  `${CORE}.AzureFileVolumeSource`,
  'An Azure file share.',
  {
    secretName: [1, str(), "Secret with the account's name and key."],
    shareName: [2, str(), 'Name of the share.'],
    readOnly: [3, bool(), 'Whether the volume is read-only.'],
  },
  { required: ['secretName', 'shareName'] },
);

export const cephFSVolumeSource = message(
  `${CORE}.CephFSVolumeSource`,
  'A Ceph filesystem.',
  {
    monitors: [1, list(str()), 'Addresses of the monitors.'],
    path: [2, str(), 'Root to mount; / by default.'],
    user: [3, str(), 'User; admin by default.'],
    secretFile: [4, str(), 'Keyring of the user.'],
    secretRef: [5, localObjectReference, 'Secret with the credentials.'],
    readOnly: [6, bool(), 'Whether the volume is read-only.'],
  },
  { required: ['monitors'] },
);

export const cinderVolumeSource = message(
  `${CORE}.CinderVolumeSource`,
  'An OpenStack disk.',
  {
    volumeID: [1, str(), 'ID of the disk.'],
    fsType: [2, str(), 'Filesystem to mount.'],
    readOnly: [3, bool(), 'Whether the volume is read-only.'],
    secretRef: [4, localObjectReference, 'Secret with the credentials.'],
  },
  { required: ['volumeID'] },
);

export const fcVolumeSource = message(`${CORE}.FCVolumeSource`, 'A Fibre Channel disk.', {
  targetWWNs: [1, list(str()), 'World wide names of the target.'],
  lun: [2, int32({ pointer: true }), 'Number of the unit.'],
  fsType: [3, str(), 'Filesystem to mount.'],
  readOnly: [4, bool(), 'Whether the volume is read-only.'],
  wwids: [5, list(str()), 'World wide identifiers, instead of names and unit.'],
});

export const flexVolumeSource = message(
  `${CORE}.FlexVolumeSource`,
  'A volume of a flex driver.',
  {
    driver: [1, str(), 'Name of the driver.'],
    fsType: [2, str(), 'Filesystem to mount.'],
    secretRef: [3, localObjectReference, 'Secret with the credentials.'],
    readOnly: [4, bool(), 'Whether the volume is read-only.'],
    options: [5, map(str()), 'What the driver is told.'],
  },
  { required: ['driver'] },
);

export const flockerVolumeSource = message(`${CORE}.FlockerVolumeSource`, 'A Flocker dataset.', {
  datasetName: [1, str(), 'Name of the dataset.'],
  datasetUUID: [2, str(), 'UUID of the dataset.'],
});

export const gitRepoVolumeSource = message(
  `${CORE}.GitRepoVolumeSource`,
  'A clone of a Git repository.',
  {
    repository: [1, str(), 'URL of the repository.'],
    revision: [2, str(), 'Commit to check out.'],
    directory: [3, str(), 'Directory to clone into.'],
  },
  { required: ['repository'] },
);

export const glusterfsVolumeSource = message(
  `${CORE}.GlusterfsVolumeSource`,
  'A Gluster volume.',
  {
    endpoints: [1, str(), 'Name of the endpoints object that lists the servers.'],
    path: [2, str(), 'Name of the volume.'],
    readOnly: [3, bool(), 'Whether the volume is read-only.'],
  },
  { required: ['endpoints', 'path'] },
);

export const photonPersistentDiskVolumeSource = message(
  `${CORE}.PhotonPersistentDiskVolumeSource`,
  'A Photon Controller disk.',
  {
    pdID: [1, str(), 'ID of the disk.'],
    fsType: [2, str(), 'Filesystem to mount.'],
  },
  { required: ['pdID'] },
);

export const portworxVolumeSource = message(
  `${CORE}.PortworxVolumeSource`,
  'A Portworx volume.',
  {
    volumeID: [1, str(), 'ID of the volume.'],
    fsType: [2, str(), 'Filesystem to mount.'],
    readOnly: [3, bool(), 'Whether the volume is read-only.'],
  },
  { required: ['volumeID'] },
);

export const quobyteVolumeSource = message(
  `${CORE}.QuobyteVolumeSource`,
  'A Quobyte volume.',
  {
    registry: [1, str(), 'Addresses of the registries.'],
    volume: [2, str(), 'Name of the volume.'],
    readOnly: [3, bool(), 'Whether the volume is read-only.'],
    user: [4, str(), 'User to mount as.'],
    group: [5, str(), 'Group to mount as.'],
    tenant: [6, str(), 'Tenant of the volume.'],
  },
  { required: ['registry', 'volume'] },
);

export const rbdVolumeSource = message(
  `${CORE}.RBDVolumeSource`,
  'A RADOS block device.',
  {
    monitors: [1, list(str()), 'Addresses of the monitors.'],
    image: [2, str(), 'Name of the image.'],
    fsType: [3, str(), 'Filesystem to mount.'],
    pool: [4, str({ default: 'rbd' }), 'Name of the pool; rbd by default.'],
    user: [5, str({ default: 'admin' }), 'User; admin by default.'],
    keyring: [6, str({ default: '/etc/ceph/keyring' }), 'Keyring of the user.'],
    secretRef: [7, localObjectReference, 'Secret with the credentials.'],
    readOnly: [8, bool(), 'Whether the volume is read-only.'],
  },
  { required: ['monitors', 'image'] },
);

export const scaleIOVolumeSource = message(
  `${CORE}.ScaleIOVolumeSource`,
  'A ScaleIO volume.',
  {
    gateway: [1, str(), 'Address of the gateway.'],
    system: [2, str(), 'Name of the storage system.'],
    secretRef: [3, localObjectReference, 'Secret with the credentials.'],
    sslEnabled: [4, bool(), 'Whether to use TLS.'],
    protectionDomain: [5, str(), 'Name of the protection domain.'],
    storagePool: [6, str(), 'Name of the storage pool.'],
    storageMode: [7, str({ default: 'ThinProvisioned' }), 'ThickProvisioned or ThinProvisioned.'],
    volumeName: [8, str(), 'Name of the volume.'],
    fsType: [9, str({ default: 'xfs' }), 'Filesystem to mount.'],
    readOnly: [10, bool(), 'Whether the volume is read-only.'],
  },
  { required: ['gateway', 'system', 'secretRef'] },
);

export const storageOSVolumeSource = message(`${CORE}.StorageOSVolumeSource`, 'A StorageOS volume.', {
  volumeName: [1, str(), 'Name of the volume.'],
  volumeNamespace: [2, str(), 'Scope of the volume.'],
  fsType: [3, str(), 'Filesystem to mount.'],
  readOnly: [4, bool(), 'Whether the volume is read-only.'],
  secretRef: [5, localObjectReference, 'Secret with the credentials.'],
});

export const vsphereVirtualDiskVolumeSource = message(
  `${CORE}.VsphereVirtualDiskVolumeSource`,
  'A vSphere disk.',
  {
    volumePath: [1, str(), 'Path of the disk.'],
    fsType: [2, str(), 'Filesystem to mount.'],
    storagePolicyName: [3, str(), 'Name of the storage policy.'],
    storagePolicyID: [4, str(), 'ID of the storage policy.'],
  },
  { required: ['volumePath'] },
);
