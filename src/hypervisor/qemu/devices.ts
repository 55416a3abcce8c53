import { unreachable } from '../../api/unreachable.ts';
import {
  type CdromSpec,
  cdromPlace,
  type DevicePlace,
  type DiskSpec,
  type MachineSpec,
  MachineSpecError,
  type NetworkSpec,
} from '../machine.ts';
import { FILE_NAMES } from './run-files.ts';

/** What the guest sees on its buses. Every device has an address: QEMU would otherwise count, and count differently tomorrow. */

/** The slots that a PCI machine leaves free; the rest belongs to its chipset and, on i440fx, to the controller below. */
const PCI_SLOTS = { q35: [1, 0x1e], i440fx: [4, 0x1f] } as const;
/** Where a machine that has no SATA controller of its own gets one. */
const SATA_SLOT = 3;
const SATA_PORTS = 6;
const MMIO_TRANSPORTS = 8;

/** What QEMU calls the port of the agent inside the guest. */
export const AGENT_PORT = 'agent';

type Family = 'microvm' | 'q35' | 'i440fx';

/** Throws for a machine type whose meaning depends on the QEMU that reads it. */
export function machineFamily(machineType: string): Family {
  if (machineType === 'microvm') return 'microvm';
  const match = /^pc-(q35|i440fx)-\d+\.\d+(?:\.\d+)?$/.exec(machineType);
  if (!match) throw new MachineSpecError(`${machineType} is no versioned machine type`);
  return match[1] === 'q35' ? 'q35' : 'i440fx';
}

/** Doubles commas, which QEMU takes for the end of a value. */
export function escapeOption(value: string): string {
  return value.replaceAll(',', ',,');
}

/** The options that put disks, drives and network cards into the machine, in the order of the description. */
export function deviceArguments(spec: MachineSpec): string[] {
  const family = machineFamily(spec.machineType);
  const { disks = [], cdroms = [], networks = [], agentPlace } = spec;
  const places = [
    ...disks.map(({ place }) => place),
    ...cdroms.map(cdromPlace),
    ...networks.map(({ place }) => place),
    ...(agentPlace ? [agentPlace] : []),
  ];
  checkPlaces(family, places);
  const needsController = family === 'i440fx' && places.some(({ bus }) => bus === 'sata');
  return [
    ...(needsController ? device({ driver: 'ich9-ahci', id: 'sata', bus: 'pci.0', addr: hex(SATA_SLOT) }) : []),
    ...disks.flatMap((disk) => diskArguments(family, disk)),
    ...cdroms.flatMap((cdrom) => cdromArguments(family, cdrom)),
    ...networks.flatMap((network) => networkArguments(family, network)),
    ...(agentPlace ? agentArguments(family, agentPlace) : []),
  ];
}

function checkPlaces(family: Family, places: readonly DevicePlace[]): void {
  const taken = new Set<string>();
  for (const { bus, at } of places) {
    const [first, last] = freePlaces(family, bus);
    if (!Number.isInteger(at) || at < first || at > last)
      throw new MachineSpecError(`${bus} ${at} is not among the places ${first} to ${last} of this machine`);
    const name = `${bus} ${at}`;
    if (taken.has(name)) throw new MachineSpecError(`two devices are at ${name}`);
    taken.add(name);
  }
}

function freePlaces(family: Family, bus: DevicePlace['bus']): readonly [first: number, last: number] {
  if (bus === 'virtio-mmio' && family === 'microvm') return [0, MMIO_TRANSPORTS - 1];
  if (bus === 'sata' && family !== 'microvm') return [0, SATA_PORTS - 1];
  if (bus === 'virtio' && family !== 'microvm') return PCI_SLOTS[family];
  throw new MachineSpecError(`a machine of type ${family} has no ${bus}`);
}

function hex(value: number): string {
  return `0x${value.toString(16)}`;
}

function device(properties: Readonly<Record<string, unknown>>): string[] {
  return ['-device', JSON.stringify(properties)];
}

/** The name of what is in a place: it moves with the machine, whatever else is plugged in or out. */
function nameOf(kind: string, { bus, at }: DevicePlace): string {
  return `${kind}-${bus}-${at}`;
}

/** By what QEMU knows the disk in a place, or the drive. */
export function diskName(place: DevicePlace): string {
  return nameOf('disk', place);
}

function address(family: Family, { bus, at }: DevicePlace): { readonly bus: string; readonly addr?: string } {
  switch (bus) {
    case 'virtio':
      return { bus: family === 'q35' ? 'pcie.0' : 'pci.0', addr: hex(at) };
    case 'virtio-mmio':
      return { bus: `virtio-mmio-bus.${at}` };
    case 'sata':
      return { bus: family === 'q35' ? `ide.${at}` : `sata.${at}` };
    default:
      return unreachable(bus);
  }
}

function blockArguments(
  name: string,
  image: Pick<DiskSpec, 'path' | 'format' | 'cache' | 'isReadOnly' | 'isDevice' | 'sizeBytes'>,
): string[] {
  const { path, format, cache, isReadOnly = false, isDevice = false, sizeBytes } = image;
  const shared = { cache: { direct: cache === 'none', 'no-flush': false }, 'read-only': isReadOnly };
  const driver = isDevice ? 'host_device' : 'file';
  const part = sizeBytes === undefined || format !== 'raw' ? {} : { size: sizeBytes };
  const file = { driver, 'node-name': `${name}-file`, filename: path, ...shared, discard: 'unmap' };
  const disk = { driver: format, 'node-name': name, file: `${name}-file`, ...part, ...shared, discard: 'unmap' };
  return ['-blockdev', JSON.stringify(file), '-blockdev', JSON.stringify(disk)];
}

function diskArguments(family: Family, disk: DiskSpec): string[] {
  const { place, cache, serial, bootOrder } = disk;
  const name = diskName(place);
  const driver = { virtio: 'virtio-blk-pci', 'virtio-mmio': 'virtio-blk-device', sata: 'ide-hd' }[place.bus];
  if (place.bus === 'sata' && disk.isReadOnly)
    throw new MachineSpecError(`the disk at sata ${place.at} cannot be read-only`);
  return [
    ...blockArguments(name, disk),
    ...device({
      driver,
      id: `${name}-device`,
      drive: name,
      ...address(family, place),
      'write-cache': cache === 'writethrough' ? 'off' : 'on',
      ...(serial === undefined ? {} : { serial }),
      ...(bootOrder === undefined ? {} : { bootindex: bootOrder }),
    }),
  ];
}

function cdromArguments(family: Family, { format = 'raw', bootOrder, ...cdrom }: CdromSpec): string[] {
  const place = cdromPlace(cdrom);
  const name = diskName(place);
  return [
    ...blockArguments(name, { ...cdrom, format, cache: 'writeback', isReadOnly: true }),
    ...device({
      driver: 'ide-cd',
      id: `${nameOf('cdrom', place)}-device`,
      drive: name,
      ...address(family, place),
      ...(bootOrder === undefined ? {} : { bootindex: bootOrder }),
    }),
  ];
}

function networkArguments(family: Family, { place, mac, backend }: NetworkSpec): string[] {
  const name = nameOf('network', place);
  const isPci = place.bus === 'virtio';
  return [
    '-netdev',
    backend.kind === 'user'
      ? ['user', `id=${name}`, ...backend.forwards.map(forwardOption)].join(',')
      : `tap,id=${name},ifname=${escapeOption(backend.interfaceName)},script=no,downscript=no`,
    ...device({
      driver: isPci ? 'virtio-net-pci' : 'virtio-net-device',
      id: `${name}-device`,
      netdev: name,
      mac,
      ...address(family, place),
      // Boot code of the card is of another size in another QEMU, and then the machine could not move.
      ...(isPci ? { romfile: '' } : {}),
    }),
  ];
}

/** By the name of its port an agent finds it, as every distribution has it. */
function agentArguments(family: Family, place: DevicePlace): string[] {
  const name = nameOf('channels', place);
  return [
    '-chardev',
    `socket,id=${AGENT_PORT},path=${FILE_NAMES.agent},server=on,wait=off`,
    ...device({
      driver: place.bus === 'virtio' ? 'virtio-serial-pci' : 'virtio-serial-device',
      id: name,
      ...address(family, place),
    }),
    ...device({
      driver: 'virtserialport',
      id: AGENT_PORT,
      bus: `${name}.0`,
      nr: 1,
      chardev: AGENT_PORT,
      name: 'org.qemu.guest_agent.0',
    }),
  ];
}

function forwardOption(forward: {
  readonly protocol: string;
  readonly hostAddress: string;
  readonly hostPort: number;
  readonly guestPort: number;
}): string {
  const { protocol, hostAddress, hostPort, guestPort } = forward;
  for (const port of [hostPort, guestPort])
    if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new MachineSpecError(`${port} is no port`);
  if (!/^[0-9.]*$/.test(hostAddress)) throw new MachineSpecError(`${hostAddress} is no IPv4 address`);
  return `hostfwd=${protocol}:${hostAddress}:${hostPort}-:${guestPort}`;
}
