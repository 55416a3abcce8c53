import type { KubeObject } from '../meta.ts';
import {
  choice,
  flag,
  type Infer,
  integer,
  kept,
  listOf,
  long,
  mapOf,
  moment,
  needed,
  object,
  text,
} from '../typed-schema.ts';
import { conditions } from './condition.ts';
import type { CustomKind } from './custom-kind.ts';
import { rememberedRight } from './right-to-run.ts';
import { RUN_STRATEGIES } from './run-strategy.ts';
import { virtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';
import { migratedVolume } from './volumes.ts';

/** A machine that is kept while its guests come and go. */

/** What `kubectl get vm` shows, as KubeVirt words it. */
export const PRINTABLE_STATUSES = [
  'Stopped',
  'Provisioning',
  'Starting',
  'Running',
  'Paused',
  'Stopping',
  'Terminating',
  'CrashLoopBackOff',
  'Migrating',
  'Unknown',
  'ErrorUnschedulable',
  'ErrImagePull',
  'ImagePullBackOff',
  'ErrorPvcNotFound',
  'DataVolumeError',
  'WaitingForVolumeBinding',
  'WaitingForReceiver',
] as const;

const matcher = (description: string) =>
  object(description, {
    name: text('Its name.'),
    kind: text('Its kind, in singular; the cluster-wide one by default.'),
    revisionName: text('The revision to keep to.'),
    inferFromVolume: text('A volume whose labels say the name.'),
    inferFromVolumeFailurePolicy: choice('What happens where they do not.', ['Reject', 'Ignore']),
  });

const reference = (description: string) =>
  object(description, {
    name: text('Its name.'),
    kind: text('Its kind.'),
    controllerRevisionRef: object('The revision that is kept to.', { name: text('Its name.') }),
    inferFromVolume: text('The volume whose labels said the name.'),
    inferFromVolumeFailurePolicy: text('What happens where they do not.'),
  });

/** Tools write nulls into a template's metadata; only labels and annotations are passed on. */
const templateMetadata = object(
  'Labels and annotations of the guests.',
  {
    labels: mapOf('Labels.', text('A value.')),
    annotations: mapOf('Annotations.', text('A value.')),
  },
  { nullable: true, 'x-kubernetes-preserve-unknown-fields': true },
);

const spec = object('What the machine is, and whether it should run.', {
  running: flag('Whether the guest should run. Deprecated: use runStrategy, of which exactly one of the two is given.'),
  runStrategy: choice(
    'When the guest should run: always; again unless it ended well; when users say so; not at all; until it ends; once it comes from elsewhere.',
    RUN_STRATEGIES,
  ),
  template: needed(
    object('What its guests are made from.', { metadata: templateMetadata, spec: virtualMachineInstanceSpec }),
  ),
  instancetype: matcher('The instance type that says how large the guest is.'),
  preference: matcher('The preference that fills in what the template leaves open.'),
  dataVolumeTemplates: listOf(
    'DataVolumes that are made for the machine. Nothing acts on it here: make the claims yourself.',
    kept('A DataVolume.'),
  ),
  updateVolumesStrategy: choice(
    'What happens when the claims of volumes change: contents are moved while the guest runs, or the next start takes the new claims, which is the default.',
    ['Migration', 'Replacement'],
  ),
});

const stateChangeRequest = object('Something that a user asked for.', {
  action: needed(choice('Start or Stop.', ['Start', 'Stop'])),
  uid: text('UID of the guest that it is about.'),
  data: mapOf('More about it.', text('A value.')),
});

const status = object('How the machine is.', {
  printableStatus: choice('In a word.', PRINTABLE_STATUSES),
  created: flag('Whether there is a guest.'),
  ready: flag('Whether the guest is ready.'),
  conditions,
  runStrategy: choice('The strategy that was last acted on.', RUN_STRATEGIES),
  rightToRun: rememberedRight,
  observedGeneration: long('The generation that this was observed at.'),
  desiredGeneration: long('The generation that the guest should have.'),
  stateChangeRequests: listOf('What users asked for, in order.', stateChangeRequest),
  startFailure: object('How often in a row the guest could not start.', {
    consecutiveFailCount: integer('How often.'),
    lastFailedVMIUID: text('UID of the last one.'),
    retryAfterTimestamp: moment('Not before then is it tried again.'),
  }),
  instancetypeRef: reference('The instance type in use.'),
  preferenceRef: reference('The preference in use.'),
  volumeUpdateState: object('How the exchange of volumes goes.', {
    volumeMigrationState: object('Volumes that move.', {
      migratedVolumes: listOf('The volumes.', migratedVolume),
    }),
  }),
  volumeRequests: listOf('Volumes to plug in and out.', kept('A request.')),
  volumeSnapshotStatuses: listOf('Whether volumes can be snapshotted.', kept('A volume.')),
  memoryDumpRequest: kept('A dump of memory that was asked for.'),
  snapshotInProgress: text('The snapshot that is being taken.'),
  restoreInProgress: text('The snapshot that is being restored.'),
  changedBlockTracking: kept('How the noting of changed blocks goes.'),
});

/** The kind VirtualMachine. */
export const virtualMachine: CustomKind = {
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'VirtualMachine',
  plural: 'virtualmachines',
  scope: 'Namespaced',
  shortNames: ['vm', 'vms'],
  categories: ['all'],
  description: 'A machine that is kept while its guests come and go.',
  fields: { spec: needed(spec), status },
  hasStatus: true,
  columns: [
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Status', type: 'string', description: 'How it is, in a word.', jsonPath: '.status.printableStatus' },
    { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
  ],
};

export type PrintableStatus = (typeof PRINTABLE_STATUSES)[number];
export type VirtualMachineSpec = Infer<typeof spec>;
export type VirtualMachineStatus = Infer<typeof status>;

export interface VirtualMachine extends KubeObject {
  spec: VirtualMachineSpec;
  status?: VirtualMachineStatus;
}
