import type { KubeObject } from '../meta.ts';
import { choice, count, type Infer, kept, listOf, long, mapOf, moment, needed, object, text } from '../typed-schema.ts';
import { conditions } from './condition.ts';
import type { CustomKind } from './custom-kind.ts';
import { machine } from './domain.ts';
import { evacuationCauses } from './evacuation-cause.ts';
import { migrationState, sourceMigrationState, targetMigrationState } from './migration-state.ts';
import { interfaceStatus } from './networks.ts';
import { cpuTopology, memoryStatus } from './processor-and-memory.ts';
import { RIGHT_TO_RUN_STAYS, rightToRun } from './right-to-run.ts';
import { virtualMachineInstanceSpec, type VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';
import { migratedVolume, volumeStatus } from './volumes.ts';

/** A guest that runs, ran, or is about to. */

/** Phases of a guest, as KubeVirt has them; the empty one is that of an object that nobody has looked at. */
export const VIRTUAL_MACHINE_INSTANCE_PHASES = [
  '',
  'Pending',
  'Scheduling',
  'Scheduled',
  'Running',
  'Succeeded',
  'Failed',
  'Unknown',
  'WaitingForSync',
] as const;

const phase = choice('How far the guest is in its life.', VIRTUAL_MACHINE_INSTANCE_PHASES);

const guestOsInfo = object('What the guest agent says of the operating system.', {
  id: text('Which one it is.'),
  name: text('Its name.'),
  prettyName: text('Its name for people.'),
  version: text('Its version.'),
  versionId: text('Its version, as a number.'),
  kernelRelease: text("The kernel's release."),
  kernelVersion: text("The kernel's version."),
  machine: text('The processor architecture.'),
});

const phaseTransition = object('When a phase began.', {
  phase,
  phaseTransitionTimestamp: moment('When it began.'),
});

const checksummed = (description: string) => object(description, { checksum: count('Its checksum.') });

const status = object('How the guest is.', {
  phase,
  reason: text('One word for why the guest is in its phase.'),
  conditions,
  phaseTransitionTimestamps: listOf('When the phases began.', phaseTransition),
  nodeName: text('The node that the guest runs on.'),
  activePods: mapOf("Launcher pods by UID, with each one's node.", text('The node.')),
  interfaces: listOf('Interfaces as the guest has them.', interfaceStatus),
  volumeStatus: listOf('Volumes as the guest has them.', volumeStatus),
  guestOSInfo: guestOsInfo,
  launcherContainerImageVersion: text('The launcher that runs the guest.'),
  evacuationNodeName: text('The node that the guest has to leave; where it is on another one, nothing is asked of it.'),
  evacuationCauses,
  migrationMethod: choice('How the guest would move.', ['BlockMigration', 'LiveMigration', '']),
  migrationTransport: text('How agents carry the copy.'),
  migrationState,
  sourceMigrationState,
  targetMigrationState,
  migratedVolumes: listOf('Volumes that change their claims.', migratedVolume),
  rightToRun,
  machine,
  currentCPUTopology: cpuTopology,
  memory: memoryStatus,
  qosClass: choice("The launcher pod's class of service.", ['BestEffort', 'Burstable', 'Guaranteed']),
  runtimeUser: long('The user that QEMU runs as.'),
  selinuxContext: text('SELinux context of the launcher.'),
  virtualMachineRevisionName: text("The revision of the machine's template that this guest was made from."),
  fsFreezeStatus: text('Whether filesystems stand still: frozen, or nothing.'),
  kernelBootStatus: object('What was booted.', {
    kernelInfo: checksummed('The kernel.'),
    initrdInfo: checksummed('The initial RAM disk.'),
  }),
  topologyHints: object('What the node must have.', { tscFrequency: long("Frequency of the processor's counter.") }),
  VSOCKCID: count('Number of the guest on sockets between guest and node.'),
  deviceStatus: kept('Devices that were claimed.'),
  changedBlockTracking: kept('How the noting of changed blocks goes.'),
});

/** The kind VirtualMachineInstance. */
export const virtualMachineInstance: CustomKind = {
  group: 'kubevirt.io',
  version: 'v1',
  kind: 'VirtualMachineInstance',
  plural: 'virtualmachineinstances',
  scope: 'Namespaced',
  shortNames: ['vmi', 'vmis'],
  categories: ['all'],
  description: 'A guest that runs, ran, or is about to.',
  fields: { spec: needed(virtualMachineInstanceSpec), status },
  // KubeVirt's own CRD has no status subresource. Ours has, so that whoever may edit guests cannot write their status.
  hasStatus: true,
  rules: [RIGHT_TO_RUN_STAYS],
  columns: [
    { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    { name: 'Phase', type: 'string', jsonPath: '.status.phase' },
    { name: 'IP', type: 'string', jsonPath: '.status.interfaces[0].ipAddress' },
    { name: 'NodeName', type: 'string', jsonPath: '.status.nodeName' },
    { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
    {
      name: 'Live-Migratable',
      type: 'string',
      jsonPath: ".status.conditions[?(@.type=='LiveMigratable')].status",
      priority: 1,
    },
    { name: 'Paused', type: 'string', jsonPath: ".status.conditions[?(@.type=='Paused')].status", priority: 1 },
  ],
};

export type VirtualMachineInstancePhase = (typeof VIRTUAL_MACHINE_INSTANCE_PHASES)[number];
export type VirtualMachineInstanceStatus = Infer<typeof status>;

export interface VirtualMachineInstance extends KubeObject {
  spec: VirtualMachineInstanceSpec;
  status?: VirtualMachineInstanceStatus;
}
