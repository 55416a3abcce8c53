import { bool, int32, list, map, message, str } from '../../../schema.ts';
import { objectReference, secretReference } from './references.ts';
import { CORE } from './package.ts';

/** Schemas of the volumes that a PersistentVolume can stand for. */

export const localVolumeSource = message(
  `${CORE}.LocalVolumeSource`,
  'A disk or directory of one node.',
  {
    path: [1, str(), 'Path of the disk or directory.'],
    fsType: [2, str({ pointer: true }), 'Filesystem to mount.'],
  },
  { required: ['path'] },
);

export const csiPersistentVolumeSource = message(
  `${CORE}.CSIPersistentVolumeSource`,
  'A volume of a CSI driver.',
  {
    driver: [1, str(), 'Name of the driver.'],
    volumeHandle: [2, str(), 'What the driver calls the volume.'],
    readOnly: [3, bool(), 'Whether the volume is read-only.'],
    fsType: [4, str(), 'Filesystem to mount.'],
    volumeAttributes: [5, map(str()), 'What the driver is told about the volume.'],
    controllerPublishSecretRef: [6, secretReference, 'Secret for attaching.'],
    nodeStageSecretRef: [7, secretReference, 'Secret for staging.'],
    nodePublishSecretRef: [8, secretReference, 'Secret for mounting.'],
    controllerExpandSecretRef: [9, secretReference, 'Secret for expanding, by the controller.'],
    nodeExpandSecretRef: [10, secretReference, 'Secret for expanding, on the node.'],
  },
  { required: ['driver', 'volumeHandle'] },
);

export const iscsiPersistentVolumeSource = message(
  `${CORE}.ISCSIPersistentVolumeSource`,
  'An iSCSI disk.',
  {
    targetPortal: [1, str(), 'Address of the target, with its port if that is not 860 or 3260.'],
    iqn: [2, str(), 'Qualified name of the target.'],
    lun: [3, int32(), 'Number of the unit.'],
    iscsiInterface: [4, str({ default: 'default' }), 'Interface to use; default (tcp) if empty.'],
    fsType: [5, str(), 'Filesystem to mount.'],
    readOnly: [6, bool(), 'Whether the volume is read-only.'],
    portals: [7, list(str()), 'More addresses of the target.'],
    chapAuthDiscovery: [8, bool(), 'Whether discovery authenticates with CHAP.'],
    secretRef: [10, secretReference, 'Secret with the credentials.'],
    chapAuthSession: [11, bool(), 'Whether the session authenticates with CHAP.'],
    initiatorName: [12, str({ pointer: true }), 'Name of the initiator.'],
  },
  { required: ['targetPortal', 'iqn', 'lun'] },
);

export const azureFilePersistentVolumeSource = message(
  `${CORE}.AzureFilePersistentVolumeSource`,
  'An Azure file share.',
  {
    secretName: [1, str(), "Secret with the account's name and key."],
    shareName: [2, str(), 'Name of the share.'],
    readOnly: [3, bool(), 'Whether the volume is read-only.'],
    secretNamespace: [4, str({ pointer: true }), 'Namespace of the secret.'],
  },
  { required: ['secretName', 'shareName'] },
);

export const cephFSPersistentVolumeSource = message(
  `${CORE}.CephFSPersistentVolumeSource`,
  'A Ceph filesystem.',
  {
    monitors: [1, list(str()), 'Addresses of the monitors.'],
    path: [2, str(), 'Root to mount; / by default.'],
    user: [3, str(), 'User; admin by default.'],
    secretFile: [4, str(), 'Keyring of the user.'],
    secretRef: [5, secretReference, 'Secret with the credentials.'],
    readOnly: [6, bool(), 'Whether the volume is read-only.'],
  },
  { required: ['monitors'] },
);

export const cinderPersistentVolumeSource = message(
  `${CORE}.CinderPersistentVolumeSource`,
  'An OpenStack disk.',
  {
    volumeID: [1, str(), 'ID of the disk.'],
    fsType: [2, str(), 'Filesystem to mount.'],
    readOnly: [3, bool(), 'Whether the volume is read-only.'],
    secretRef: [4, secretReference, 'Secret with the credentials.'],
  },
  { required: ['volumeID'] },
);

export const flexPersistentVolumeSource = message(
  `${CORE}.FlexPersistentVolumeSource`,
  'A volume of a flex driver.',
  {
    driver: [1, str(), 'Name of the driver.'],
    fsType: [2, str(), 'Filesystem to mount.'],
    secretRef: [3, secretReference, 'Secret with the credentials.'],
    readOnly: [4, bool(), 'Whether the volume is read-only.'],
    options: [5, map(str()), 'What the driver is told.'],
  },
  { required: ['driver'] },
);

export const glusterfsPersistentVolumeSource = message(
  `${CORE}.GlusterfsPersistentVolumeSource`,
  'A Gluster volume.',
  {
    endpoints: [1, str(), 'Name of the endpoints object that lists the servers.'],
    path: [2, str(), 'Name of the volume.'],
    readOnly: [3, bool(), 'Whether the volume is read-only.'],
    endpointsNamespace: [4, str({ pointer: true }), 'Namespace of the endpoints object.'],
  },
  { required: ['endpoints', 'path'] },
);

export const rbdPersistentVolumeSource = message(
  `${CORE}.RBDPersistentVolumeSource`,
  'A RADOS block device.',
  {
    monitors: [1, list(str()), 'Addresses of the monitors.'],
    image: [2, str(), 'Name of the image.'],
    fsType: [3, str(), 'Filesystem to mount.'],
    pool: [4, str({ default: 'rbd' }), 'Name of the pool; rbd by default.'],
    user: [5, str({ default: 'admin' }), 'User; admin by default.'],
    keyring: [6, str({ default: '/etc/ceph/keyring' }), 'Keyring of the user.'],
    secretRef: [7, secretReference, 'Secret with the credentials.'],
    readOnly: [8, bool(), 'Whether the volume is read-only.'],
  },
  { required: ['monitors', 'image'] },
);

export const scaleIOPersistentVolumeSource = message(
  `${CORE}.ScaleIOPersistentVolumeSource`,
  'A ScaleIO volume.',
  {
    gateway: [1, str(), 'Address of the gateway.'],
    system: [2, str(), 'Name of the storage system.'],
    secretRef: [3, secretReference, 'Secret with the credentials.'],
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

export const storageOSPersistentVolumeSource = message(
  `${CORE}.StorageOSPersistentVolumeSource`,
  'A StorageOS volume.',
  {
    volumeName: [1, str(), 'Name of the volume.'],
    volumeNamespace: [2, str(), 'Scope of the volume.'],
    fsType: [3, str(), 'Filesystem to mount.'],
    readOnly: [4, bool(), 'Whether the volume is read-only.'],
    secretRef: [5, objectReference, 'Secret with the credentials.'],
  },
);
