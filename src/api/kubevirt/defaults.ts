import { formatQuantity, parseQuantity, type Quantity, quantityToNumber } from '../quantity.ts';
import type { QuantityValue } from '../typed-schema.ts';
import type { Disk } from './disks.ts';
import type { Domain } from './domain.ts';
import type { KubeVirtConfiguration } from './kube-virt.ts';
import type { PreferenceSpec } from './preference.ts';
import type { VirtualMachineSpec } from './virtual-machine.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';
import type { Volume } from './volumes.ts';

/**
 * What a machine or a guest is where its author said nothing: what KubeVirt fills in when they are created. Nothing that
 * is given is changed, and what comes back shares what it can with it.
 */

export interface DefaultsContext {
  readonly configuration: KubeVirtConfiguration;
  /** Makes a random UUID. */
  readonly newUuid: () => string;
}

/** Under this name QEMU knows the newest version of the machine, which agents replace by a version of its own. */
const MACHINE_TYPE = 'q35';
const ARCHITECTURE = 'amd64';
const CPU_MODEL = 'host-model';
const DISK_BUS = 'sata';
const POD_NETWORK = 'default';
const TERMINATION_GRACE_PERIOD_SECONDS = 30;
const MEMORY_OVERCOMMIT_PERCENT = 100;

/** A machine with its defaults. How large its guest is stays open: an instance type may say that later. */
export function withVirtualMachineDefaults(
  spec: VirtualMachineSpec,
  context: DefaultsContext,
  preference?: PreferenceSpec,
): VirtualMachineSpec {
  const { template, instancetype, preference: matcher } = spec;
  if (template.spec === undefined) return spec;
  const preferredMachineType = preference?.machine?.preferredMachineType;
  return {
    ...spec,
    ...(instancetype
      ? { instancetype: { ...instancetype, kind: instancetype.kind || 'virtualmachineclusterinstancetype' } }
      : {}),
    ...(matcher ? { preference: { ...matcher, kind: matcher.kind || 'virtualmachineclusterpreference' } } : {}),
    template: { ...template, spec: withMachine(template.spec, context, preferredMachineType) },
  };
}

/** A guest with its defaults, as large as it will be. */
export function withVirtualMachineInstanceDefaults(
  spec: VirtualMachineInstanceSpec,
  context: DefaultsContext,
): VirtualMachineInstanceSpec {
  const { configuration } = context;
  const evictionStrategy = spec.evictionStrategy ?? configuration.evictionStrategy;
  const withIdentity = withMachine(spec, context);
  return withDisks(
    withNetwork(
      {
        ...withIdentity,
        domain: withSize(withIdentity.domain, configuration),
        ...(evictionStrategy === undefined ? {} : { evictionStrategy }),
        ...(spec.volumes ? { volumes: spec.volumes.map(withPullPolicy) } : {}),
        terminationGracePeriodSeconds: spec.terminationGracePeriodSeconds ?? TERMINATION_GRACE_PERIOD_SECONDS,
      },
      configuration,
    ),
  );
}

/** What must stay the same for as long as the machine is the same. */
function withMachine(
  spec: VirtualMachineInstanceSpec,
  { configuration, newUuid }: DefaultsContext,
  preferredMachineType?: string,
): VirtualMachineInstanceSpec {
  const { domain } = spec;
  const type = domain.machine?.type || preferredMachineType || configuration.machineType || MACHINE_TYPE;
  return {
    ...spec,
    architecture: spec.architecture || ARCHITECTURE,
    domain: {
      ...domain,
      machine: { ...domain.machine, type },
      firmware: { ...domain.firmware, uuid: domain.firmware?.uuid || newUuid() },
    },
  };
}

function withSize(domain: Domain, configuration: KubeVirtConfiguration): Domain {
  const resources = withRequests(domain, configuration);
  const guest = domain.memory?.guest ?? resources.requests?.['memory'] ?? domain.memory?.hugepages?.pageSize;
  return {
    ...domain,
    resources,
    memory: { ...domain.memory, ...(guest === undefined ? {} : { guest }) },
    cpu: {
      ...withTopology({ ...domain, resources }),
      model: domain.cpu?.model || configuration.cpuModel || CPU_MODEL,
    },
  };
}

function withRequests(domain: Domain, configuration: KubeVirtConfiguration): NonNullable<Domain['resources']> {
  const { limits = {}, requests = {} } = domain.resources ?? {};
  const cpu = requests['cpu'] ?? limits['cpu'];
  const memory = requests['memory'] ?? limits['memory'] ?? memoryRequest(domain, configuration);
  const completed = {
    ...requests,
    ...(cpu === undefined ? {} : { cpu }),
    ...(memory === undefined ? {} : { memory }),
  };
  return { ...domain.resources, ...(Object.keys(completed).length > 0 ? { requests: completed } : {}) };
}

/** What the launcher asks for, for a guest of this memory: less, where the cluster promises more than it has. */
function memoryRequest({ memory }: Domain, configuration: KubeVirtConfiguration): QuantityValue | undefined {
  const guest = memory?.guest ?? memory?.hugepages?.pageSize;
  const amount = parseQuantity(guest);
  const percent = configuration.developerConfiguration?.memoryOvercommit ?? MEMORY_OVERCOMMIT_PERCENT;
  if (amount === undefined || percent === MEMORY_OVERCOMMIT_PERCENT || percent <= 0) return guest;
  return formatQuantity({ ...amount, amount: wholeUnits((amount.amount * 100n) / BigInt(percent)) });
}

const UNIT = 1_000_000_000n;

function wholeUnits(amount: Quantity['amount']): bigint {
  return amount - (amount % UNIT);
}

/** As many sockets as the pod has processors, where nothing is said of the guest's. */
function withTopology({ cpu, resources }: Domain): NonNullable<Domain['cpu']> {
  if (cpu?.sockets || cpu?.cores || cpu?.threads) return cpu;
  const processors = parseQuantity(resources?.limits?.['cpu'] ?? resources?.requests?.['cpu']);
  const sockets = processors ? Math.max(1, Math.ceil(quantityToNumber(processors))) : 1;
  return { ...cpu, sockets, cores: 1, threads: 1 };
}

/** An image without a version, or of the latest one, is looked up each time. */
function withPullPolicy(volume: Volume): Volume {
  const { containerDisk } = volume;
  if (!containerDisk || containerDisk.imagePullPolicy) return volume;
  const isLatest = containerDisk.image.endsWith(':latest') || !/[:@]/.test(containerDisk.image);
  return { ...volume, containerDisk: { ...containerDisk, imagePullPolicy: isLatest ? 'Always' : 'IfNotPresent' } };
}

/** A guest of which nothing is said is on its pod's network, unless that is declined. */
function withNetwork(
  spec: VirtualMachineInstanceSpec,
  configuration: KubeVirtConfiguration,
): VirtualMachineInstanceSpec {
  const { devices } = spec.domain;
  if (devices.autoattachPodInterface === false) return spec;
  if ((spec.networks ?? []).length > 0 || (devices.interfaces ?? []).length > 0) return spec;
  const isMasquerade = configuration.network?.defaultNetworkInterface === 'masquerade';
  const binding = isMasquerade ? { masquerade: {} } : { bridge: {} };
  return {
    ...spec,
    networks: [{ name: POD_NETWORK, pod: {} }],
    domain: { ...spec.domain, devices: { ...devices, interfaces: [{ name: POD_NETWORK, ...binding }] } },
  };
}

/** Volumes that no device shows become hard disks, and disks get a bus. */
function withDisks(spec: VirtualMachineInstanceSpec): VirtualMachineInstanceSpec {
  const { volumes = [], domain } = spec;
  const { disks = [], filesystems = [] } = domain.devices;
  const shown = new Set([...disks, ...filesystems].map(({ name }) => name));
  const added = volumes.filter(({ name }) => !shown.has(name)).map(({ name }): Disk => ({ name }));
  if (disks.length + added.length === 0) return spec;
  return {
    ...spec,
    domain: { ...domain, devices: { ...domain.devices, disks: [...disks, ...added].map(withBus) } },
  };
}

function withBus(disk: Disk): Disk {
  if (disk.cdrom) {
    const { bus, readonly = true, tray } = disk.cdrom;
    return { ...disk, cdrom: { ...disk.cdrom, bus: bus || DISK_BUS, readonly, tray: tray || 'closed' } };
  }
  if (disk.lun) return { ...disk, lun: { ...disk.lun, bus: disk.lun.bus || DISK_BUS } };
  return { ...disk, disk: { ...disk.disk, bus: disk.disk?.bus || DISK_BUS } };
}
