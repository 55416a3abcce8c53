import { child, duplicate, type FieldError, invalid, notFound, notSupported } from '../field-error.ts';
import type { Disk } from './disks.ts';
import type { Network, NetworkInterface } from './networks.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';

/** What the schema cannot say of disks, interfaces and networks: names that match, and what goes with what. */

const BUSES = ['virtio', 'sata', 'scsi', 'usb'] as const;
const SERIAL_LENGTH_MAX = 256;
const SERIAL = /^[A-Za-z0-9_.+-]+$/;
const INTERFACE_NAME = /^[A-Za-z0-9-_]+$/;
const MAC_ADDRESS = /^([0-9a-fA-F]{2}[:-]){5}[0-9a-fA-F]{2}$/;
const BINDINGS = [
  'masquerade',
  'bridge',
  'passt',
  'passtBinding',
  'sriov',
  'macvtap',
  'slirp',
  'binding',
] as const satisfies readonly (keyof NetworkInterface)[];

/** What is wrong with a guest's disks, interfaces and networks. `path` is that of the spec. */
export function deviceErrors(spec: VirtualMachineInstanceSpec, path: string): FieldError[] {
  const { disks = [], interfaces = [] } = spec.domain.devices;
  const networks = spec.networks ?? [];
  const byName = new Map(networks.map((network) => [network.name, network]));
  const devicesPath = child(path, 'domain.devices');
  const at = (list: string, index: number): string => child(child(devicesPath, list), index);
  return [
    ...volumesAndDisksErrors(spec, path),
    ...disks.flatMap((disk, index) => diskErrors(disk, at('disks', index))),
    ...networks.flatMap((network, index) => networkErrors(network, child(child(path, 'networks'), index))),
    ...interfaces.flatMap((each, index) => interfaceErrors(each, byName.get(each.name), at('interfaces', index))),
    ...matchErrors(interfaces, networks, path),
    ...bootOrderErrors([
      ...disks.map((disk, index): Bootable => [disk.bootOrder, at('disks', index)]),
      ...interfaces.map((each, index): Bootable => [each.bootOrder, at('interfaces', index)]),
    ]),
  ];
}

interface Named {
  readonly name: string;
}

/** Refuses names that occur twice. */
function duplicateNameErrors(items: readonly Named[], path: string): FieldError[] {
  const seen = new Set<string>();
  return items.flatMap(({ name }, index) => {
    const isKnown = seen.has(name);
    seen.add(name);
    return isKnown ? [duplicate(child(child(path, index), 'name'), name)] : [];
  });
}

/** Refuses names that the others do not have. */
function missingNameErrors(items: readonly Named[], others: readonly Named[], path: string): FieldError[] {
  const known = new Set(others.map(({ name }) => name));
  return items.flatMap(({ name }, index) =>
    known.has(name) ? [] : [notFound(child(child(path, index), 'name'), name)],
  );
}

function volumesAndDisksErrors(spec: VirtualMachineInstanceSpec, path: string): FieldError[] {
  const { volumes = [], domain } = spec;
  const { disks = [], filesystems = [] } = domain.devices;
  const devicesPath = child(path, 'domain.devices');
  const known = new Set(volumes.map(({ name }) => name));
  const shown = new Set([...disks, ...filesystems].map(({ name }) => name));
  return [
    ...duplicateNameErrors(volumes, child(path, 'volumes')),
    ...duplicateNameErrors(disks, child(devicesPath, 'disks')),
    // An empty drive needs no volume, and a dump of memory no disk.
    ...disks.flatMap(({ name, cdrom }, index) =>
      known.has(name) || cdrom ? [] : [notFound(`${devicesPath}.disks[${index}].name`, name)],
    ),
    ...missingNameErrors(filesystems, volumes, child(devicesPath, 'filesystems')),
    ...volumes.flatMap(({ name, memoryDump }, index) =>
      shown.has(name) || memoryDump ? [] : [notFound(`${child(path, 'volumes')}[${index}].name`, name)],
    ),
  ];
}

type Target = 'disk' | 'cdrom' | 'lun';

function diskErrors(disk: Disk, path: string): FieldError[] {
  const targets = (['disk', 'cdrom', 'lun'] as const).filter((target) => disk[target] !== undefined);
  const [target] = targets;
  const serialPath = child(path, 'serial');
  return [
    ...(targets.length > 1 ? [invalid(path, targets, 'must be one of disk, cdrom and lun')] : []),
    ...(target === undefined ? [] : busErrors(disk, target, path)),
    ...(disk.serial && !SERIAL.test(disk.serial)
      ? [invalid(serialPath, disk.serial, 'must consist of letters, digits, "_", ".", "+" and "-"')]
      : []),
    ...(disk.serial && disk.serial.length > SERIAL_LENGTH_MAX
      ? [invalid(serialPath, disk.serial, `must not be longer than ${SERIAL_LENGTH_MAX} characters`)]
      : []),
    ...oneOfErrors(disk.cache, ['none', 'writethrough', 'writeback'], child(path, 'cache')),
    ...oneOfErrors(disk.io, ['native', 'threads', 'default'], child(path, 'io')),
    ...oneOfErrors(disk.errorPolicy, ['stop', 'ignore', 'report', 'enospace'], child(path, 'errorPolicy')),
  ];
}

function oneOfErrors(value: string | undefined, values: readonly string[], path: string): FieldError[] {
  return !value || values.includes(value) ? [] : [notSupported(path, value, values)];
}

function busErrors(disk: Disk, target: Target, path: string): FieldError[] {
  const bus = disk[target]?.bus;
  const busPath = child(path, `${target}.bus`);
  const unknown = oneOfErrors(bus, BUSES, busPath);
  if (!bus || unknown.length > 0) return unknown;
  return [
    ...(target === 'cdrom' && bus === 'virtio' ? [invalid(busPath, bus, 'is no bus of a CD-ROM')] : []),
    ...(disk.disk?.readonly === true && bus === 'sata'
      ? [invalid(busPath, bus, 'has no hard disks that are read-only')]
      : []),
    ...(disk.dedicatedIOThread === true && bus !== 'virtio'
      ? [invalid(child(path, 'dedicatedIOThread'), true, 'needs the bus virtio')]
      : []),
  ];
}

function networkErrors(network: Network, path: string): FieldError[] {
  const { pod, multus } = network;
  if ((pod === undefined) !== (multus === undefined)) return [];
  return [invalid(path, network.name, 'must be on exactly one of pod and multus')];
}

function interfaceErrors(each: NetworkInterface, network: Network | undefined, path: string): FieldError[] {
  const bindings = BINDINGS.filter((binding) => each[binding] !== undefined);
  return [
    ...(INTERFACE_NAME.test(each.name)
      ? []
      : [invalid(child(path, 'name'), each.name, 'must consist of letters, digits, "-" and "_"')]),
    ...(bindings.length > 1 ? [invalid(path, bindings, 'must be bound in one way only')] : []),
    ...(each.masquerade && network && !network.pod
      ? [invalid(child(path, 'masquerade'), each.name, "is possible on the pod's network only")]
      : []),
    ...(each.slirp
      ? [
          notSupported(
            path,
            'slirp',
            BINDINGS.filter((binding) => binding !== 'slirp'),
          ),
        ]
      : []),
    ...(each.macAddress && !MAC_ADDRESS.test(each.macAddress)
      ? [invalid(child(path, 'macAddress'), each.macAddress, 'must be six bytes such as de:ad:00:00:be:af')]
      : []),
    ...portErrors(each, child(path, 'ports')),
  ];
}

function portErrors({ ports = [] }: NetworkInterface, path: string): FieldError[] {
  const names = ports.map(({ name = '' }, index) => ({ name: name || `[${index}]` }));
  return [
    ...duplicateNameErrors(names, path),
    ...ports.flatMap(({ port, protocol }, index) => [
      ...(Number.isInteger(port) && port > 0 && port < 65_536
        ? []
        : [invalid(child(child(path, index), 'port'), port, 'must be between 1 and 65535')]),
      ...oneOfErrors(protocol, ['TCP', 'UDP'], child(child(path, index), 'protocol')),
    ]),
  ];
}

function matchErrors(
  interfaces: readonly NetworkInterface[],
  networks: readonly Network[],
  path: string,
): FieldError[] {
  const interfacesPath = child(path, 'domain.devices.interfaces');
  const networksPath = child(path, 'networks');
  const onPods = networks.filter(({ pod }) => pod !== undefined);
  return [
    ...duplicateNameErrors(interfaces, interfacesPath),
    ...duplicateNameErrors(networks, networksPath),
    ...missingNameErrors(interfaces, networks, interfacesPath),
    ...missingNameErrors(networks, interfaces, networksPath),
    ...(onPods.length > 1
      ? [
          invalid(
            networksPath,
            onPods.map(({ name }) => name),
            "only one may be the pod's",
          ),
        ]
      : []),
  ];
}

type Bootable = readonly [order: number | undefined, path: string];

function bootOrderErrors(devices: readonly Bootable[]): FieldError[] {
  const seen = new Set<number>();
  return devices.flatMap(([order, path]) => {
    if (order === undefined) return [];
    const field = child(path, 'bootOrder');
    if (order < 1) return [invalid(field, order, 'must be greater than 0')];
    const isTaken = seen.has(order);
    seen.add(order);
    return isTaken ? [duplicate(field, order)] : [];
  });
}
