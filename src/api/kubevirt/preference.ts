import type { KubeObject } from '../meta.ts';
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
import type { CustomKind } from './custom-kind.ts';
import { blockSize } from './disks.ts';

/** What a kind of guest works best with, under a name: it fills in what a machine's template leaves open. */

/** How processors are laid out; the names with prefer are older. */
const TOPOLOGIES = [
  'sockets',
  'cores',
  'threads',
  'spread',
  'any',
  'preferSockets',
  'preferCores',
  'preferThreads',
  'preferSpread',
  'preferAny',
] as const;

const SPREADS = ['SocketsCores', 'CoresThreads', 'SocketsCoresThreads'] as const;

const cpu = object('Processors.', {
  preferredCPUTopology: choice('Whether they are sockets, cores, threads or a mixture.', TOPOLOGIES),
  spreadOptions: object('The mixture.', {
    across: choice('What is mixed.', SPREADS),
    ratio: count('How many of the smaller there are for one of the larger; 2 by default.'),
  }),
  preferredCPUFeatures: listOf(
    'Features.',
    object('A feature of the processor.', { name: needed(text('Its name.')), policy: text('Whether it is needed.') }),
  ),
});

const devices = object('Devices.', {
  preferredDiskBus: text('The bus of hard disks.'),
  preferredCdromBus: text('The bus of disks that can be taken out.'),
  preferredLunBus: text('The bus of devices that the guest speaks SCSI with.'),
  preferredDiskCache: text('How hard disks are cached.'),
  preferredDiskIO: text('How hard disks are read and written.'),
  preferredDiskDedicatedIoThread: flag('Whether hard disks on virtio have threads of their own.'),
  preferredDiskBlockSize: blockSize,
  preferredInterfaceModel: text('The device that interfaces are.'),
  preferredInterfaceMasquerade: kept("That interfaces on the pod's network are behind the pod's address."),
  preferredAutoattachGraphicsDevice: flag('Whether there is a screen.'),
  preferredAutoattachInputDevice: flag('Whether there is a tablet.'),
  preferredAutoattachMemBalloon: flag('Whether memory can be taken back.'),
  preferredAutoattachPodInterface: flag("Whether a guest without networks is on the pod's network."),
  preferredAutoattachSerialConsole: flag('Whether there is a serial console.'),
  preferredBlockMultiQueue: flag('Whether disks have one queue per processor.'),
  preferredNetworkInterfaceMultiQueue: flag('Whether interfaces have one queue per processor.'),
  preferredUseVirtioTransitional: flag('Whether devices also speak the older virtio.'),
  preferredDisableHotplug: flag('Whether nothing can be plugged in while the guest runs.'),
  preferredInputBus: text('The bus of devices for input.'),
  preferredInputType: text('What devices for input are.'),
  preferredSoundModel: text('What sound cards are.'),
  preferredPanicDeviceModel: text('What devices are that say that the guest has crashed.'),
  preferredVideoType: text('What graphics cards are.'),
  preferredRng: kept('A source of randomness.'),
  preferredTPM: object('A trusted platform module.', {
    enabled: flag('Whether there is one.'),
    persistent: flag('Whether what it knows outlives the guest.'),
  }),
  preferredVirtualGPUOptions: kept('Graphics processors.'),
});

const firmware = object('What starts before the guest.', {
  preferredUseBios: flag('Whether it is BIOS.'),
  preferredUseBiosSerial: flag('Whether BIOS writes to the serial console.'),
  preferredEfi: object('EFI.', {
    secureBoot: flag('Whether only signed code is started.'),
    persistent: flag('Whether its variables outlive the guest.'),
  }),
  preferredUseEfi: flag('Whether it is EFI; preferredEfi says more.'),
  preferredUseSecureBoot: flag('Whether only signed code is started; preferredEfi says more.'),
});

const features = object('What else the machine can do.', {
  preferredAcpi: kept('ACPI.'),
  preferredApic: kept('The interrupt controller.'),
  preferredHyperv: kept('What Windows looks for.'),
  preferredKvm: kept('What a guest can know of KVM.'),
  preferredPvspinlock: kept('How locks wait.'),
  preferredSmm: kept('System management mode.'),
});

const spec = object('What the guest works best with.', {
  cpu,
  devices,
  firmware,
  features,
  machine: object('The machine.', { preferredMachineType: text('Its type.') }),
  clock: object('The clock.', {
    preferredClockOffset: kept('What it shows.'),
    preferredTimer: kept('What it runs on.'),
  }),
  volumes: object('Volumes.', { preferredStorageClassName: text('Their storage class.') }),
  annotations: mapOf('Annotations of the guest.', text('A value.')),
  preferredSubdomain: text("The domain in which the guest's name can be looked up."),
  preferredTerminationGracePeriodSeconds: long('How long the guest may take to shut down.'),
  preferredArchitecture: text('The processor architecture.'),
  preferSpreadSocketToCoreRatio: count('The ratio of a spread; cpu.spreadOptions.ratio says the same.'),
  requirements: object('What the guest cannot do without.', {
    architecture: text('The processor architecture.'),
    cpu: object('Processors.', { guest: needed(count('How many at least.')) }),
    memory: object('Memory.', { guest: needed(quantity('How much at least.')) }),
  }),
});

const shared = {
  group: 'instancetype.kubevirt.io',
  version: 'v1beta1',
  description: 'What a kind of guest works best with, under a name.',
  fields: { spec: needed(spec) },
  hasStatus: false,
  columns: [],
} as const;

/** The kind VirtualMachinePreference, of one namespace. */
export const virtualMachinePreference: CustomKind = {
  ...shared,
  kind: 'VirtualMachinePreference',
  plural: 'virtualmachinepreferences',
  scope: 'Namespaced',
  shortNames: ['vmpref', 'vmprefs', 'vmp', 'vmps'],
  categories: ['all'],
};

/** The kind VirtualMachineClusterPreference, of the cluster. */
export const virtualMachineClusterPreference: CustomKind = {
  ...shared,
  kind: 'VirtualMachineClusterPreference',
  plural: 'virtualmachineclusterpreferences',
  scope: 'Cluster',
  shortNames: ['vmcp', 'vmcps'],
  categories: [],
};

export type CpuTopologyPreference = (typeof TOPOLOGIES)[number];
export type PreferenceSpec = Infer<typeof spec>;

/** A preference, of a namespace or of the cluster. */
export interface Preference extends KubeObject {
  spec: PreferenceSpec;
}
