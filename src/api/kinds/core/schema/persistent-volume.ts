import { embedded, enumeration, list, map, message, quantity, str, time } from '../../../schema.ts';
import {
  awsElasticBlockStoreVolumeSource,
  azureDiskVolumeSource,
  fcVolumeSource,
  flockerVolumeSource,
  gcePersistentDiskVolumeSource,
  photonPersistentDiskVolumeSource,
  portworxVolumeSource,
  quobyteVolumeSource,
  vsphereVirtualDiskVolumeSource,
} from './legacy-volume-sources.ts';
import {
  azureFilePersistentVolumeSource,
  cephFSPersistentVolumeSource,
  cinderPersistentVolumeSource,
  csiPersistentVolumeSource,
  flexPersistentVolumeSource,
  glusterfsPersistentVolumeSource,
  iscsiPersistentVolumeSource,
  localVolumeSource,
  rbdPersistentVolumeSource,
  scaleIOPersistentVolumeSource,
  storageOSPersistentVolumeSource,
} from './persistent-volume-sources.ts';
import { nodeSelector, objectReference } from './references.ts';
import { hostPathVolumeSource, nfsVolumeSource } from './volume-sources.ts';
import { CORE } from './package.ts';

/** Schemas of a persistent volume's states. */

const volumeNodeAffinity = message(`${CORE}.VolumeNodeAffinity`, 'The nodes from which a volume can be reached.', {
  required: [1, nodeSelector, 'Selects the nodes.'],
});

export const persistentVolumeSpec = message(`${CORE}.PersistentVolumeSpec`, 'What storage a volume stands for.', {
  ...embedded(2, {
    gcePersistentDisk: [1, gcePersistentDiskVolumeSource],
    awsElasticBlockStore: [2, awsElasticBlockStoreVolumeSource],
    hostPath: [3, hostPathVolumeSource, 'A path of the node; for one-node clusters.'],
    glusterfs: [4, glusterfsPersistentVolumeSource],
    nfs: [5, nfsVolumeSource, 'An NFS export.'],
    rbd: [6, rbdPersistentVolumeSource],
    iscsi: [7, iscsiPersistentVolumeSource, 'An iSCSI disk.'],
    cinder: [8, cinderPersistentVolumeSource],
    cephfs: [9, cephFSPersistentVolumeSource],
    fc: [10, fcVolumeSource],
    flocker: [11, flockerVolumeSource],
    flexVolume: [12, flexPersistentVolumeSource],
    azureFile: [13, azureFilePersistentVolumeSource],
    vsphereVolume: [14, vsphereVirtualDiskVolumeSource],
    quobyte: [15, quobyteVolumeSource],
    azureDisk: [16, azureDiskVolumeSource],
    photonPersistentDisk: [17, photonPersistentDiskVolumeSource],
    portworxVolume: [18, portworxVolumeSource],
    scaleIO: [19, scaleIOPersistentVolumeSource],
    local: [20, localVolumeSource, 'A disk or directory of one node.'],
    storageos: [21, storageOSPersistentVolumeSource],
    csi: [22, csiPersistentVolumeSource, 'A volume of a CSI driver.'],
  }),
  capacity: [1, map(quantity()), 'How much storage there is.'],
  accessModes: [3, list(str()), 'How the volume can be mounted.'],
  // Elsewhere a reference belongs to one owner; this one is filled by whoever binds and whoever provisions.
  claimRef: [4, { ...objectReference, 'x-kubernetes-map-type': 'granular' }, 'The claim that the volume is bound to.'],
  persistentVolumeReclaimPolicy: [
    5,
    enumeration(['Delete', 'Recycle', 'Retain']),
    'What happens when the claim is gone: Retain, Delete or Recycle.',
  ],
  storageClassName: [6, str(), 'The storage class; empty for none.'],
  mountOptions: [7, list(str()), 'Options to mount with.'],
  volumeMode: [
    8,
    enumeration(['Block', 'Filesystem'], { pointer: true }),
    'Filesystem or Block; Filesystem by default.',
  ],
  nodeAffinity: [9, volumeNodeAffinity, 'The nodes from which the volume can be reached.'],
  volumeAttributesClassName: [
    10,
    str({ pointer: true }),
    "The class of attributes that may change in the volume's life.",
  ],
});

export const persistentVolumeStatus = message(`${CORE}.PersistentVolumeStatus`, 'The observed state of a volume.', {
  phase: [1, str(), 'Pending, Available, Bound, Released or Failed.'],
  message: [2, str(), 'Why, in words.'],
  reason: [3, str(), 'One word for why.'],
  lastPhaseTransitionTime: [4, time(), 'When the phase last changed.'],
});
