import type { Devices } from '../../api/kubevirt/domain.ts';
import { whereMachineTypeIsKnown } from '../../api/kubevirt/machine-type.ts';
import { bootMemoryBytes, bytesOf, memoryRoomOf, pluggedUnits } from '../../api/kubevirt/memory-room.ts';
import type { Cpu } from '../../api/kubevirt/processor-and-memory.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import {
  type Accelerator,
  type CpuSpec,
  type MachineSpec,
  MachineSpecError,
  type NetworkSpec,
} from '../../hypervisor/machine.ts';
import type { QemuVersion } from '../../hypervisor/qemu/qmp-message.ts';
import type { PreparedVolumes } from '../volumes/guest-volumes.ts';
import { type BusFamily, DevicePlaces } from './device-places.ts';
import { guestDisks } from './guest-disks.ts';
import { wantedInterfaces } from './guest-interfaces.ts';

/** What of a host decides what a guest's machine is like. */
export interface MachineHost {
  readonly version: QemuVersion;
  readonly accelerator: Accelerator;
}

/** How the interfaces of a guest are connected, by the interface's name. */
export type PreparedNetworks = ReadonlyMap<string, NetworkSpec['backend']>;

/**
 * The machine of a guest: a function of its arguments alone. What the guest asks for and cannot be had is a
 * MachineSpecError that names the field; fields that `kept-fields` warns of are passed over.
 */
export function machineSpec(
  guest: VirtualMachineInstance,
  volumes: PreparedVolumes,
  networks: PreparedNetworks,
  host: MachineHost,
): MachineSpec {
  const { domain } = guest.spec;
  if (domain.firmware?.bootloader?.efi)
    throw new MachineSpecError('spec.domain.firmware.bootloader.efi: guests start with a BIOS here');
  if (!volumes.kernel) checkBootDevices(domain.devices);
  const machineType = machineTypeOf(guest, host.version);
  const family: BusFamily = machineType === 'microvm' ? 'mmio' : 'pci';
  const places = new DevicePlaces(family);
  const { disks, cdroms } = guestDisks(guest, volumes, family, places);
  const serial = domain.firmware?.serial;
  const agentPlace = places.agent();
  return {
    name: `${guest.metadata.namespace ?? ''}/${guest.metadata.name ?? ''}`,
    uuid: uuidOf(guest),
    ...(serial ? { serial } : {}),
    machineType,
    accelerator: host.accelerator,
    cpu: { ...cpuOf(domain.cpu ?? {}, host.accelerator), ...socketsOf(guest, family) },
    ...memoryOf(guest, family),
    disks,
    cdroms,
    networks: networksOf(guest, networks, places),
    ...(agentPlace ? { agentPlace } : {}),
    ...(volumes.kernel ? { kernel: volumes.kernel } : {}),
  };
}

/** An alias is replaced by what it means to the QEMU that starts the guest, unless that is on record already. */
function machineTypeOf({ spec, status }: VirtualMachineInstance, { major, minor }: QemuVersion): string {
  const type = status?.machine?.type || spec.domain.machine?.type || 'q35';
  if (type === 'q35') return `pc-q35-${major}.${minor}`;
  if (type === 'pc') return `pc-i440fx-${major}.${minor}`;
  if (whereMachineTypeIsKnown(type) === 'here') return type;
  throw new MachineSpecError(
    `spec.domain.machine.type: ${type} is not supported; use q35, pc or microvm, or one like pc-q35-${major}.${minor}`,
  );
}

/** An interface may come after the disks, when nothing would be left to boot from; it cannot come first. */
function checkBootDevices({ disks = [], interfaces = [] }: Devices): void {
  const first = Math.min(...disks.map(({ bootOrder = Number.POSITIVE_INFINITY }) => bootOrder));
  const index = interfaces.findIndex(({ bootOrder }) => bootOrder !== undefined && bootOrder < first);
  if (index >= 0)
    throw new MachineSpecError(
      `spec.domain.devices.interfaces[${index}].bootOrder: guests do not start from the network here`,
    );
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

function uuidOf({ metadata, spec }: VirtualMachineInstance): string {
  const uuid = spec.domain.firmware?.uuid || metadata.uid || '';
  if (!UUID.test(uuid)) throw new MachineSpecError(`spec.domain.firmware.uuid: "${uuid}" is no UUID`);
  return uuid.toLowerCase();
}

/** The memory that the guest started with, with room for more and what was plugged in since. */
function memoryOf(guest: VirtualMachineInstance, family: BusFamily): Pick<MachineSpec, 'memoryBytes' | 'memoryRoom'> {
  const room = family === 'pci' ? memoryRoomOf(guest) : undefined;
  if (!room) return { memoryBytes: askedMemory(guest.spec) };
  const current = bytesOf(guest.status?.memory?.guestCurrent);
  const plugged = current === undefined ? 0 : Math.max(0, Math.round(pluggedUnits(guest, room, current)));
  return { memoryBytes: bootMemoryBytes(guest) ?? askedMemory(guest.spec), memoryRoom: { ...room, plugged } };
}

function askedMemory({ domain }: VirtualMachineInstanceSpec): number {
  const { memory, resources } = domain;
  const bytes = bytesOf(
    memory?.guest ?? resources?.requests?.['memory'] ?? resources?.limits?.['memory'] ?? memory?.hugepages?.pageSize,
  );
  if (bytes === undefined || !(bytes > 0))
    throw new MachineSpecError('spec.domain.memory.guest: says no size of memory');
  return bytes;
}

/**
 * What a guest gets that wants the processor of its host, where it is translated: what today's distributions ask for
 * (x86-64-v2), and a source of randomness, without which Linux takes long to start.
 */
const TRANSLATED_MODEL = 'qemu64';
const TRANSLATED_FEATURES = ['ssse3', 'sse4.1', 'sse4.2', 'popcnt', 'rdrand'] as const;

function cpuOf(cpu: Cpu, accelerator: Accelerator): Omit<CpuSpec, 'sockets'> {
  const { model, features } = modelOf(cpu.model || 'host-model', accelerator);
  const asked = (cpu.features ?? []).flatMap(({ name, policy = 'require' }, index) => {
    switch (policy) {
      case '':
      case 'force':
      case 'require':
        return [{ name, isEnabled: true }];
      case 'disable':
      case 'forbid':
        return [{ name, isEnabled: false }];
      case 'optional':
        return [];
      default:
        throw new MachineSpecError(`spec.domain.cpu.features[${index}].policy: ${policy} is no policy`);
    }
  });
  const names = new Set(asked.map(({ name }) => name));
  return {
    model,
    features: [...features.filter((name) => !names.has(name)).map((name) => ({ name, isEnabled: true })), ...asked],
    cores: cpu.cores || 1,
    threads: cpu.threads || 1,
  };
}

/**
 * The sockets that the guest has now: those that it is to have besides are plugged in once it runs. Machines without PCI
 * have no way to tell it.
 */
function socketsOf(
  { spec, status }: VirtualMachineInstance,
  family: BusFamily,
): Pick<CpuSpec, 'sockets' | 'socketsMax'> {
  const { sockets: asked, maxSockets = 0 } = spec.domain.cpu ?? {};
  const current = status?.currentCPUTopology?.sockets;
  if (family !== 'pci' || maxSockets < (asked || 1)) return { sockets: asked || 1 };
  return { sockets: Math.min(current || asked || 1, maxSockets), socketsMax: maxSockets };
}

function modelOf(asked: string, accelerator: Accelerator): { model: string; features: readonly string[] } {
  if (asked !== 'host-model' && asked !== 'host-passthrough') return { model: asked, features: [] };
  return accelerator === 'kvm'
    ? { model: 'host', features: [] }
    : { model: TRANSLATED_MODEL, features: TRANSLATED_FEATURES };
}

function networksOf(
  guest: VirtualMachineInstance,
  networks: PreparedNetworks,
  places: DevicePlaces,
): readonly NetworkSpec[] {
  return wantedInterfaces(guest).map(({ name, mac, field }) => {
    const backend = networks.get(name);
    if (!backend) throw new MachineSpecError(`${field}: the interface ${name} is not connected`);
    return { place: places.network(field), mac, backend };
  });
}
