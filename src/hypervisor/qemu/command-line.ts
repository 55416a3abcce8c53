import { type MachineSpec, MachineSpecError } from '../machine.ts';
import { deviceArguments, escapeOption, machineFamily } from './devices.ts';
import { memoryPiece } from './qemu-memory.ts';
import type { QemuVersion } from './qmp-message.ts';
import { checkRamBytes, ramBytesFor } from './ram-size.ts';
import { FILE_NAMES } from './run-files.ts';

/** On what and as what a machine is started. */
export interface Placement {
  readonly version: QemuVersion;
  /** Tells this run of the machine from every other one, for whoever finds it later. */
  readonly instance: string;
}

export interface CommandLine {
  readonly arguments: readonly string[];
  /** The size of RAM that it comes to: a target must have the very same. */
  readonly ramBytes: number;
}

/** What QEMU may not do: above all, start other programs. */
export const SANDBOX = 'on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny';

/** The name of the character device that does nothing but carry the instance. */
export function instanceLabel(instance: string): string {
  if (!/^[A-Za-z0-9-]{1,64}$/.test(instance))
    throw new MachineSpecError(`${instance} cannot be the name of an instance`);
  return `instance-${instance}`;
}

/** The argument by which a QEMU is told from all others. */
export function instanceArgument(instance: string): string {
  return `null,id=${instanceLabel(instance)}`;
}

/**
 * The command line of QEMU for a machine, to be started in the directory of its run: a function of its arguments alone. It always starts paused, takes nothing from
 * the host's configuration, and stays when the guest shuts down, so that a shutdown that nobody watched is not
 * mistaken for a crash. Throws a MachineSpecError for what cannot be.
 */
export function commandLine(spec: MachineSpec, placement: Placement): CommandLine {
  const { version, instance } = placement;
  const { incoming, accelerator } = spec;
  const ramBytes = incoming?.ramBytes ?? ramBytesFor(spec.memoryBytes, version, accelerator);
  checkRamBytes(ramBytes, version, accelerator);
  return {
    ramBytes,
    arguments: [
      '-name',
      `guest=${escapeOption(spec.name)},debug-threads=on`,
      '-uuid',
      spec.uuid,
      ...(spec.serial === undefined ? [] : ['-smbios', `type=1,serial=${escapeOption(spec.serial)}`]),
      '-S',
      '-nodefaults',
      '-no-user-config',
      '-display',
      'none',
      '-action',
      'shutdown=pause',
      '-sandbox',
      SANDBOX,
      ...machineArguments(spec, ramBytes),
      ...controlArguments(instance),
      ...kernelArguments(spec),
      ...deviceArguments(spec),
      ...(incoming ? ['-incoming', 'defer'] : []),
    ],
  };
}

function machineArguments(spec: MachineSpec, ramBytes: number): string[] {
  const family = machineFamily(spec.machineType);
  // The name that QEMU gives to RAM by itself. The state of a guest knows its memory by it.
  const ram = family === 'microvm' ? 'microvm.ram' : 'pc.ram';
  const extra = family === 'microvm' ? ',acpi=on' : '';
  return [
    '-machine',
    `${spec.machineType}${extra},memory-backend=${ram}`,
    '-accel',
    spec.accelerator,
    '-cpu',
    cpuOption(spec),
    '-smp',
    topologyOption(spec),
    '-m',
    memoryOption(spec, ramBytes),
    '-object',
    JSON.stringify({ 'qom-type': 'memory-backend-ram', id: ram, size: ramBytes }),
    ...pluggedMemory(spec),
  ];
}

function memoryOption({ memoryRoom, machineType }: MachineSpec, ramBytes: number): string {
  const size = `size=${ramBytes / 1024}k`;
  if (!memoryRoom) return size;
  const { unitBytes, slots, plugged } = memoryRoom;
  if (machineFamily(machineType) === 'microvm')
    throw new MachineSpecError('memory cannot be plugged into a machine without PCI');
  if (!Number.isInteger(plugged) || plugged < 0 || plugged > slots)
    throw new MachineSpecError(`${plugged} pieces of memory are not between none and ${slots}`);
  return `${size},slots=${slots},maxmem=${(ramBytes + slots * unitBytes) / 1024}k`;
}

/** What was plugged in on one host is there from the start on the next. */
function pluggedMemory({ memoryRoom }: MachineSpec): string[] {
  const { unitBytes: size = 0, plugged = 0 } = memoryRoom ?? {};
  return Array.from({ length: plugged }, (_, index) => memoryPiece(index)).flatMap(({ backend: id, device }) => [
    '-object',
    JSON.stringify({ 'qom-type': 'memory-backend-ram', id, size }),
    '-device',
    JSON.stringify({ driver: 'pc-dimm', id: device, memdev: id }),
  ]);
}

function cpuOption({ cpu, accelerator }: MachineSpec): string {
  const { model, features = [] } = cpu;
  if (model === 'host' && accelerator !== 'kvm') throw new MachineSpecError('the CPU model host needs KVM');
  for (const name of [model, ...features.map((each) => each.name)])
    if (!/^[A-Za-z0-9._-]+$/.test(name)) throw new MachineSpecError(`${name} is no name of a CPU or a feature`);
  return [model, ...features.map(({ name, isEnabled }) => `${name}=${isEnabled ? 'on' : 'off'}`)].join(',');
}

function topologyOption({ cpu }: MachineSpec): string {
  const { sockets, cores, threads, socketsMax = sockets } = cpu;
  for (const count of [sockets, cores, threads, socketsMax])
    if (!Number.isInteger(count) || count < 1) throw new MachineSpecError(`${count} is no number of processors`);
  if (socketsMax < sockets) throw new MachineSpecError(`${sockets} sockets are more than ${socketsMax}`);
  const perSocket = cores * threads;
  const [count, countMax] = [sockets * perSocket, socketsMax * perSocket];
  // Those that are plugged in on one host are there from the start on the next: the guest sees no difference.
  return `cpus=${count},maxcpus=${countMax},sockets=${socketsMax},cores=${cores},threads=${threads}`;
}

function controlArguments(instance: string): string[] {
  const socket = (id: string, path: string): string => `socket,id=${id},path=${path},server=on,wait=off`;
  return [
    '-msg',
    'timestamp=on',
    '-chardev',
    instanceArgument(instance),
    '-chardev',
    socket('monitor', FILE_NAMES.monitor),
    '-mon',
    'chardev=monitor,mode=control',
    '-chardev',
    socket('monitor-urgent', FILE_NAMES.urgentMonitor),
    '-mon',
    'chardev=monitor-urgent,mode=control',
    '-chardev',
    `${socket('serial', FILE_NAMES.serial)},logfile=${FILE_NAMES.serialLog},logappend=on`,
    '-serial',
    'chardev:serial',
  ];
}

function kernelArguments({ kernel }: MachineSpec): string[] {
  if (!kernel) return [];
  const { path, initrdPath, commandLine: append } = kernel;
  return [
    '-kernel',
    path,
    ...(initrdPath === undefined ? [] : ['-initrd', initrdPath]),
    ...(append === undefined ? [] : ['-append', append]),
  ];
}
