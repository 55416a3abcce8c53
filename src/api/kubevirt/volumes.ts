import {
  choice,
  count,
  flag,
  type Infer,
  kept,
  listOf,
  long,
  mapOf,
  needed,
  object,
  quantity,
  text,
} from '../typed-schema.ts';

/** Where the contents of a guest's disks come from. */

const localReference = (description: string) =>
  object(
    description,
    { name: text('Name of the object, in the same namespace.') },
    { 'x-kubernetes-map-type': 'atomic' },
  );

const pullPolicy = choice('When the image is fetched again: Always, Never or IfNotPresent.', [
  'Always',
  'Never',
  'IfNotPresent',
]);

const cloudInit = (description: string) =>
  object(description, {
    userData: text('User data as it is.'),
    userDataBase64: text('User data in base64.'),
    secretRef: localReference('A Secret with user data under the key userdata.'),
    networkData: text('Network data as it is.'),
    networkDataBase64: text('Network data in base64.'),
    networkDataSecretRef: localReference('A Secret with network data under the key networkdata.'),
  });

const claim = {
  claimName: needed(text('Name of the claim, in the same namespace.')),
  readOnly: flag('Whether the guest may only read it.'),
};

const hotpluggableClaim = (description: string) =>
  object(description, { ...claim, hotpluggable: flag('Whether it may be plugged in and out while the guest runs.') });

/** A volume; exactly one of its sources is set. */
export const volume = object('Contents for a disk.', {
  name: needed(text('Its name; the disk of this name shows it to the guest.')),
  containerDisk: object('An image of the local store; what the guest writes is gone when it stops.', {
    image: needed(text('Name of the image.')),
    path: text('Path of the disk inside the image.'),
    imagePullPolicy: pullPolicy,
    imagePullSecret: text('A Secret with credentials of the registry.'),
  }),
  persistentVolumeClaim: hotpluggableClaim('A claim; what the guest writes stays.'),
  dataVolume: object('The claim that a DataVolume made.', {
    name: needed(text('Name of the DataVolume, and of its claim.')),
    hotpluggable: flag('Whether it may be plugged in and out while the guest runs.'),
  }),
  emptyDisk: object('An empty disk that lives as long as the guest.', { capacity: needed(quantity('Its size.')) }),
  hostDisk: object("A file of the node's own.", {
    path: needed(text('Path of the file.')),
    type: needed(
      choice('Disk: the file must be there. DiskOrCreate: it is made if it is not.', ['Disk', 'DiskOrCreate']),
    ),
    capacity: quantity('Size of a file that is made.'),
    shared: flag('Whether every node sees the same file there.'),
  }),
  configMap: object('A ConfigMap, as a disk with one file per key.', {
    name: text('Name of the ConfigMap.'),
    optional: flag('Whether the guest starts without it.'),
    volumeLabel: text("The filesystem's label."),
  }),
  secret: object('A Secret, as a disk with one file per key.', {
    secretName: text('Name of the Secret.'),
    optional: flag('Whether the guest starts without it.'),
    volumeLabel: text("The filesystem's label."),
  }),
  cloudInitNoCloud: cloudInit('A disk for cloud-init, as its NoCloud source reads it.'),
  cloudInitConfigDrive: cloudInit('A disk for cloud-init, as its ConfigDrive source reads it.'),
  ephemeral: object('A claim that is only read; what the guest writes is gone when it stops.', {
    persistentVolumeClaim: object('The claim below.', claim),
  }),
  containerPath: object("A path of the launcher's own.", {
    path: needed(text('The path.')),
    readOnly: flag('Whether the guest may only read it.'),
  }),
  memoryDump: hotpluggableClaim("A claim for dumps of the guest's memory."),
  serviceAccount: object("A service account's token, as a disk.", {
    serviceAccountName: text('Name of the account.'),
  }),
  downwardAPI: kept("Fields of the guest's own object, as a disk."),
  downwardMetrics: kept('Measurements of the node, as a disk.'),
  sysprep: kept('Answers for the installer of Windows, as a disk.'),
});

export type Volume = Infer<typeof volume>;

const accessMode = choice('A way to mount.', ['ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOnce', 'ReadWriteOncePod']);

const claimInfo = object('What is known of a claim.', {
  claimName: text('Name of the claim.'),
  accessModes: listOf('How the claim may be mounted.', accessMode),
  volumeMode: choice('Filesystem or Block.', ['Block', 'Filesystem']),
  capacity: mapOf('What there is.', quantity('An amount.')),
  requests: mapOf('What was asked for.', quantity('An amount.')),
  preallocated: flag('Whether all of it was written when it was made.'),
  filesystemOverhead: text('The share that the filesystem takes, such as 0.055.'),
});

/** A volume as the running guest has it. */
export const volumeStatus = object('A volume as the guest has it.', {
  name: needed(text('Name of the volume.')),
  target: needed(text('Name of the device, such as vda.')),
  phase: text('How far a volume that is plugged in while the guest runs has come.'),
  reason: text('One word for why it is there.'),
  message: text('Why it is there.'),
  size: long('Bytes.'),
  persistentVolumeClaimInfo: claimInfo,
  containerDiskVolume: object('What is known of an image.', { checksum: count('Its checksum.') }),
  hotplugVolume: object('Which pod holds the volume on the node.', {
    attachPodName: text('Name of the pod.'),
    attachPodUID: text('UID of the pod.'),
  }),
  memoryDumpVolume: kept('How far a dump has come.'),
});

/** A volume whose claim is being exchanged for another while the guest runs. */
export const migratedVolume = object('A volume that moves from one claim to another.', {
  volumeName: needed(text('Name of the volume.')),
  sourcePVCInfo: claimInfo,
  destinationPVCInfo: claimInfo,
});

/** A claim for helpers of the launcher, not for the guest. */
export const utilityVolume = object('A claim that is mounted into the launcher.', {
  name: needed(text('Its name.')),
  claimName: needed(text('Name of the claim.')),
  readOnly: flag('Whether it may only be read.'),
  type: text('What it is for.'),
});
