import type { KubeObject } from '../meta.ts';
import {
  count,
  flag,
  type Infer,
  integer,
  kept,
  listOf,
  mapOf,
  needed,
  object,
  quantity,
  text,
} from '../typed-schema.ts';
import type { CustomKind } from './custom-kind.ts';

/** How large a guest is, under a name: for one namespace or for all of them. */

const cpu = object('Processors.', {
  guest: needed(count('How many the guest sees.')),
  maxSockets: count('How many there may be once more are plugged in.'),
  model: text('Their model.'),
  dedicatedCPUPlacement: flag("Whether processors of the node are the guest's alone."),
  isolateEmulatorThread: flag("Whether QEMU's own work gets a processor of its own."),
  numa: kept("How the guest's memory follows that of the node."),
  realtime: kept('Which processors run in real time.'),
});

const memory = object('Memory.', {
  guest: needed(quantity('How much the guest sees.')),
  maxGuest: quantity('How much it may see once more is plugged in.'),
  overcommitPercent: integer('How much less the launcher asks for, in percent.', { minimum: 0, maximum: 100 }),
  hugepages: object('Takes the memory from huge pages.', { pageSize: text('Size of the pages, such as 2Mi.') }),
});

const spec = object('How large the guest is.', {
  cpu: needed(cpu),
  memory: needed(memory),
  annotations: mapOf('Annotations of the guest.', text('A value.')),
  nodeSelector: mapOf('Labels that the node must have.', text('A value.')),
  schedulerName: text('Who chooses the node.'),
  ioThreadsPolicy: text('How disks share threads: shared, auto or supplementalPool.'),
  ioThreads: kept('Threads of disks.'),
  launchSecurity: kept("Encryption of the guest's memory."),
  gpus: listOf('Graphics processors of the node.', kept('A graphics processor.')),
  hostDevices: listOf('Devices of the node.', kept('A device.')),
});

const shared = {
  group: 'instancetype.kubevirt.io',
  version: 'v1beta1',
  description: 'How large guests are, under a name.',
  fields: { spec: needed(spec) },
  hasStatus: false,
  columns: [],
} as const;

/** The kind VirtualMachineInstancetype, of one namespace. */
export const virtualMachineInstancetype: CustomKind = {
  ...shared,
  kind: 'VirtualMachineInstancetype',
  plural: 'virtualmachineinstancetypes',
  scope: 'Namespaced',
  shortNames: ['vminstancetype', 'vminstancetypes', 'vmf', 'vmfs'],
  categories: ['all'],
};

/** The kind VirtualMachineClusterInstancetype, of the cluster. */
export const virtualMachineClusterInstancetype: CustomKind = {
  ...shared,
  kind: 'VirtualMachineClusterInstancetype',
  plural: 'virtualmachineclusterinstancetypes',
  scope: 'Cluster',
  shortNames: ['vmclusterinstancetype', 'vmclusterinstancetypes', 'vmcf', 'vmcfs'],
  categories: [],
};

export type InstancetypeSpec = Infer<typeof spec>;

/** An instance type, of a namespace or of the cluster. */
export interface Instancetype extends KubeObject {
  spec: InstancetypeSpec;
}
