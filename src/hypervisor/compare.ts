import {
  type CdromSpec,
  cdromPlace,
  type CpuSpec,
  type DevicePlace,
  type DiskSpec,
  type MachineSpec,
  type NetworkSpec,
} from './machine.ts';

/**
 * Whether a guest can go from one machine to another.
 *
 * A hypervisor finds out about some differences itself, late, with the guest stopped; and it takes others without a word:
 * another processor, more processors, one device more, a smaller disk. The guest is then in a machine that changed under
 * it. So both are compared before anything starts. What may differ: names, paths, claims, how the host stores a disk, where
 * a network goes, and what was only needed to boot.
 */
export interface ComparedMachine {
  readonly spec: MachineSpec;
  /** The exact size of its RAM. */
  readonly ramBytes: number;
  /** How many processors it has now, where more may have been plugged in since it was started. */
  readonly processorCount?: number;
  /** How many pieces of memory were plugged into it, likewise. */
  readonly pluggedMemory?: number;
  /** How large the guest sees each disk, by the name of its place; disks that both sides share may be left out. */
  readonly diskBytes?: ReadonlyMap<string, number>;
}

/** The name of a place, such as `virtio 4`. */
export function placeName({ bus, at }: DevicePlace): string {
  return `${bus} ${at}`;
}

/** A disk or a drive, with what both have. */
export type PlacedDisk = Pick<DiskSpec, 'volume' | 'path' | 'format' | 'isReadOnly' | 'isDevice'> &
  Pick<DiskSpec, 'place'>;

/** The disks of a machine, and its drives. */
export function placedDisks({ disks = [], cdroms = [] }: MachineSpec): readonly PlacedDisk[] {
  return [
    ...disks,
    ...cdroms.map(({ format = 'raw', ...cdrom }) => ({ ...cdrom, format, place: cdromPlace(cdrom), isReadOnly: true })),
  ];
}

/** Each difference as a sentence without its full stop; empty where the guest can go. */
export function differences(source: ComparedMachine, target: ComparedMachine): readonly string[] {
  const [here, there] = [source.spec, target.spec];
  return [
    ...differ("the firmware's UUID", here.uuid.toLowerCase(), there.uuid.toLowerCase()),
    ...differ("the firmware's serial number", here.serial ?? 'none', there.serial ?? 'none'),
    ...differ('the machine type', here.machineType, there.machineType),
    ...differ('the accelerator', here.accelerator, there.accelerator),
    ...cpuDifferences(here.cpu, there.cpu),
    ...differ('the number of processors', processorCount(source), processorCount(target)),
    ...differ('the size of RAM', source.ramBytes, target.ramBytes),
    ...differ('the room for memory', roomText(here), roomText(there)),
    ...differ('the number of pieces of plugged memory', pluggedMemory(source), pluggedMemory(target)),
    ...deviceDifferences('disk', here.disks, there.disks, ({ place }) => placeName(place), diskShape),
    ...deviceDifferences('drive', here.cdroms, there.cdroms, (cdrom) => placeName(cdromPlace(cdrom)), cdromShape),
    ...deviceDifferences('network card', here.networks, there.networks, ({ place }) => placeName(place), networkShape),
    ...deviceDifferences('port of an agent', agents(here), agents(there), placeName),
    ...sizeDifferences(source, target),
  ];
}

function differ(what: string, here: string | number | boolean, there: string | number | boolean): string[] {
  return here === there ? [] : [`${what} is ${here} at the source and ${there} at the target`];
}

function cpuDifferences(here: CpuSpec, there: CpuSpec): string[] {
  return [
    ...differ('the CPU model', here.model, there.model),
    ...differ('the set of CPU features', features(here), features(there)),
    ...differ('the number of sockets', here.socketsMax ?? here.sockets, there.socketsMax ?? there.sockets),
    ...differ('the number of cores per socket', here.cores, there.cores),
    ...differ('the number of threads per core', here.threads, there.threads),
  ];
}

function processorCount({ spec: { cpu }, processorCount: known }: ComparedMachine): number {
  return known ?? cpu.sockets * cpu.cores * cpu.threads;
}

function pluggedMemory({ spec, pluggedMemory: known }: ComparedMachine): number {
  return known ?? spec.memoryRoom?.plugged ?? 0;
}

function roomText({ memoryRoom }: MachineSpec): string {
  return memoryRoom ? `${memoryRoom.slots} times ${memoryRoom.unitBytes} bytes` : 'nothing';
}

/** Later ones win, as on a command line; their order means nothing else. */
function features({ features: list = [] }: CpuSpec): string {
  const states = new Map(list.map(({ name, isEnabled }) => [name, isEnabled]));
  const signed = [...states].map(([name, isEnabled]) => `${isEnabled ? '+' : '-'}${name}`);
  return signed.length === 0 ? 'empty' : signed.toSorted().join(' ');
}

function agents({ agentPlace }: MachineSpec): readonly DevicePlace[] {
  return agentPlace ? [agentPlace] : [];
}

type Shape = Readonly<Record<string, string | number | boolean>>;

function diskShape({ volume = '', isReadOnly = false, serial = '', cache }: DiskSpec): Shape {
  // A guest sees whether there is a cache that it has to flush.
  const seen = {
    'whether it is read-only': isReadOnly,
    'its serial number': serial,
    'its cache': cache !== 'writethrough',
  };
  return { ...seen, ...cdromShape({ volume }) };
}

/** By the names of their volumes disks are found that go with a guest. */
function cdromShape({ volume = '' }: Pick<CdromSpec, 'volume'>): Shape {
  return { 'its volume': volume };
}

function networkShape({ mac }: NetworkSpec): Shape {
  return { 'its MAC address': mac.toLowerCase() };
}

function deviceDifferences<T>(
  kind: string,
  here: readonly T[] = [],
  there: readonly T[] = [],
  nameOf: (device: T) => string,
  shapeOf: (device: T) => Shape = () => ({}),
): string[] {
  const others = new Map(there.map((device) => [nameOf(device), device]));
  const found = here.flatMap((device) => {
    const name = nameOf(device);
    const other = others.get(name);
    others.delete(name);
    if (other === undefined) return [`there is no ${kind} at ${name} at the target`];
    const [shape, otherShape] = [shapeOf(device), shapeOf(other)];
    const volume = shape['its volume'] ? ` (volume ${shape['its volume']})` : '';
    return Object.keys(shape).flatMap((what) =>
      shape[what] === otherShape[what] || !isSaid(what, shape, otherShape)
        ? []
        : [`the ${kind} at ${name}${volume} differs: ${what}`],
    );
  });
  return [...found, ...[...others.keys()].map((name) => `there is no ${kind} at ${name} at the source`)];
}

/** Machines that run since before drives had names say nothing of their volumes. */
function isSaid(what: string, ...shapes: readonly Shape[]): boolean {
  return what !== 'its volume' || shapes.every((shape) => shape[what] !== '');
}

function sizeDifferences(source: ComparedMachine, target: ComparedMachine): string[] {
  const volumes = new Map(placedDisks(source.spec).map(({ place, volume }) => [placeName(place), volume]));
  return [...(source.diskBytes ?? [])].flatMap(([name, bytes]) => {
    const other = target.diskBytes?.get(name);
    const volume = volumes.get(name);
    const which = volume === undefined ? `the disk at ${name}` : `the disk at ${name} (volume ${volume})`;
    return other === undefined ? [] : differ(`the size of ${which}`, bytes, other);
  });
}
