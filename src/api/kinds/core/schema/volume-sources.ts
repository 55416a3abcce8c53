import { labelSelector } from '../../meta.ts';
import { bool, embedded, enumeration, int32, int64, list, map, message, quantity, str } from '../../../schema.ts';
import { objectFieldSelector, resourceFieldSelector } from './environment.ts';
import { localObjectReference } from './references.ts';
import { CORE } from './package.ts';

/** Schemas of the volumes that a pod can have, other than the ones that only old clusters know. */

const keyToPath = message(
  `${CORE}.KeyToPath`,
  'Where a key appears as a file.',
  {
    key: [1, str(), 'The key.'],
    path: [2, str(), "Relative path of the file; must not contain '..'."],
    mode: [3, int32({ pointer: true }), 'Permission bits of the file.'],
  },
  { required: ['key', 'path'] },
);

export const hostPathVolumeSource = message(
  `${CORE}.HostPathVolumeSource`,
  'A path of the node.',
  {
    path: [1, str(), 'The path.'],
    type: [
      2,
      str({ pointer: true }),
      'What must be there: Directory, DirectoryOrCreate, File, FileOrCreate, Socket, CharDevice, BlockDevice, or anything.',
    ],
  },
  { required: ['path'] },
);

export const emptyDirVolumeSource = message(
  `${CORE}.EmptyDirVolumeSource`,
  'A directory that lives as long as the pod.',
  {
    medium: [1, str(), "Empty for the node's disk, Memory for a tmpfs."],
    sizeLimit: [2, quantity(), 'The most that may be stored.'],
  },
);

export const secretVolumeSource = message(`${CORE}.SecretVolumeSource`, 'A secret whose keys appear as files.', {
  secretName: [1, str(), 'Name of the secret.'],
  items: [2, list(keyToPath), 'The keys to show; all by default.'],
  defaultMode: [3, int32({ pointer: true }), 'Permission bits of the files; 0644 by default.'],
  optional: [4, bool({ pointer: true }), 'Whether the secret or its keys may be missing.'],
});

export const configMapVolumeSource = message(
  `${CORE}.ConfigMapVolumeSource`,
  'A config map whose keys appear as files.',
  {
    ...embedded(1, {
      name: [1, str(), 'Name of the config map.'],
    }),
    items: [2, list(keyToPath), 'The keys to show; all by default.'],
    defaultMode: [3, int32({ pointer: true }), 'Permission bits of the files; 0644 by default.'],
    optional: [4, bool({ pointer: true }), 'Whether the config map or its keys may be missing.'],
  },
);

const downwardAPIVolumeFile = message(
  `${CORE}.DownwardAPIVolumeFile`,
  'A file that shows a field of the pod.',
  {
    path: [1, str(), "Relative path of the file; must not contain '..'."],
    fieldRef: [2, objectFieldSelector, 'The field of the pod.'],
    resourceFieldRef: [3, resourceFieldSelector, 'The resource of a container.'],
    mode: [4, int32({ pointer: true }), 'Permission bits of the file.'],
  },
  { required: ['path'] },
);

export const downwardAPIVolumeSource = message(
  `${CORE}.DownwardAPIVolumeSource`,
  'Fields of the pod that appear as files.',
  {
    items: [1, list(downwardAPIVolumeFile), 'The files.'],
    defaultMode: [2, int32({ pointer: true }), 'Permission bits of the files; 0644 by default.'],
  },
);

export const persistentVolumeClaimVolumeSource = message(
  `${CORE}.PersistentVolumeClaimVolumeSource`,
  'A volume that a claim of the same namespace is bound to.',
  {
    claimName: [1, str(), 'Name of the claim.'],
    readOnly: [2, bool(), 'Whether mounts are read-only.'],
  },
  { required: ['claimName'] },
);

const secretProjection = message(`${CORE}.SecretProjection`, 'A secret among the sources of a projected volume.', {
  ...embedded(1, {
    name: [1, str(), 'Name of the secret.'],
  }),
  items: [2, list(keyToPath), 'The keys to show; all by default.'],
  optional: [4, bool({ pointer: true }), 'Whether the secret or its keys may be missing.'],
});

const configMapProjection = message(
  `${CORE}.ConfigMapProjection`,
  'A config map among the sources of a projected volume.',
  {
    ...embedded(1, {
      name: [1, str(), 'Name of the config map.'],
    }),
    items: [2, list(keyToPath), 'The keys to show; all by default.'],
    optional: [4, bool({ pointer: true }), 'Whether the config map or its keys may be missing.'],
  },
);

const downwardAPIProjection = message(
  `${CORE}.DownwardAPIProjection`,
  'Fields of the pod among the sources of a projected volume.',
  {
    items: [1, list(downwardAPIVolumeFile), 'The files.'],
  },
);

const serviceAccountTokenProjection = message(
  `${CORE}.ServiceAccountTokenProjection`,
  "A token of the pod's service account.",
  {
    audience: [1, str(), 'Who the token is for; the API server by default.'],
    expirationSeconds: [2, int64({ pointer: true }), 'Seconds that the token is valid, at least 600; 3600 by default.'],
    path: [3, str(), 'Relative path of the file.'],
  },
  { required: ['path'] },
);

const clusterTrustBundleProjection = message(
  `${CORE}.ClusterTrustBundleProjection`,
  'Trust anchors among the sources of a projected volume.',
  {
    name: [1, str({ pointer: true }), 'Name of one bundle.'],
    signerName: [2, str({ pointer: true }), 'Selects the bundles of this signer.'],
    labelSelector: [3, labelSelector, 'Selects bundles by label.'],
    path: [4, str(), 'Relative path of the file.'],
    optional: [5, bool({ pointer: true }), 'Whether the bundles may be missing.'],
  },
  { required: ['path'] },
);

const podCertificateProjection = message(
  `${CORE}.PodCertificateProjection`,
  'A certificate and key issued for the pod.',
  {
    signerName: [1, str(), 'Who signs it.'],
    keyType: [2, str(), 'Kind of key, e.g. ED25519.'],
    maxExpirationSeconds: [3, int32({ pointer: true }), 'The longest that the certificate may be valid.'],
    credentialBundlePath: [4, str(), 'File for key and chain together.'],
    keyPath: [5, str(), 'File for the key.'],
    certificateChainPath: [6, str(), 'File for the chain.'],
  },
  { required: ['signerName', 'keyType'] },
);

const volumeProjection = message(
  `${CORE}.VolumeProjection`,
  'One source of a projected volume; exactly one field is set.',
  {
    secret: [1, secretProjection, 'A secret.'],
    downwardAPI: [2, downwardAPIProjection, 'Fields of the pod.'],
    configMap: [3, configMapProjection, 'A config map.'],
    serviceAccountToken: [4, serviceAccountTokenProjection, "A token of the pod's service account."],
    clusterTrustBundle: [5, clusterTrustBundleProjection, 'Trust anchors.'],
    podCertificate: [6, podCertificateProjection, 'A certificate issued for the pod.'],
  },
);

export const projectedVolumeSource = message(`${CORE}.ProjectedVolumeSource`, 'Several sources in one directory.', {
  sources: [1, list(volumeProjection), 'The sources.'],
  defaultMode: [2, int32({ pointer: true }), 'Permission bits of the files; 0644 by default.'],
});

export const csiVolumeSource = message(
  `${CORE}.CSIVolumeSource`,
  'An inline volume of a CSI driver.',
  {
    driver: [1, str(), 'Name of the driver.'],
    readOnly: [2, bool({ pointer: true }), 'Whether the volume is read-only.'],
    fsType: [3, str({ pointer: true }), 'Filesystem to mount.'],
    volumeAttributes: [4, map(str()), 'What the driver is told about the volume.'],
    nodePublishSecretRef: [5, localObjectReference, 'Secret that the driver gets.'],
  },
  { required: ['driver'] },
);

export const imageVolumeSource = message(`${CORE}.ImageVolumeSource`, 'The content of an OCI image or artifact.', {
  reference: [1, str(), 'The image or artifact.'],
  pullPolicy: [2, enumeration(['Always', 'IfNotPresent', 'Never']), 'Always, Never or IfNotPresent.'],
});

export const nfsVolumeSource = message(
  `${CORE}.NFSVolumeSource`,
  'An NFS export.',
  {
    server: [1, str(), 'Host name or address of the server.'],
    path: [2, str(), 'Exported path.'],
    readOnly: [3, bool(), 'Whether the export is mounted read-only.'],
  },
  { required: ['server', 'path'] },
);

export const iscsiVolumeSource = message(
  `${CORE}.ISCSIVolumeSource`,
  'An iSCSI disk.',
  {
    targetPortal: [1, str(), 'Address of the target, with its port if that is not 860 or 3260.'],
    iqn: [2, str(), 'Qualified name of the target.'],
    lun: [3, int32(), 'Number of the unit.'],
    iscsiInterface: [4, str({ default: 'default' }), 'Interface to use; default (tcp) if empty.'],
    fsType: [5, str(), 'Filesystem to mount.'],
    readOnly: [6, bool(), 'Whether the disk is read-only.'],
    portals: [7, list(str()), 'More addresses of the target.'],
    chapAuthDiscovery: [8, bool(), 'Whether discovery authenticates with CHAP.'],
    secretRef: [10, localObjectReference, 'Secret with the CHAP credentials.'],
    chapAuthSession: [11, bool(), 'Whether the session authenticates with CHAP.'],
    initiatorName: [12, str({ pointer: true }), 'Name of the initiator.'],
  },
  { required: ['targetPortal', 'iqn', 'lun'] },
);
