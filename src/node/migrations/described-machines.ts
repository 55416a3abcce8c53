import { isAcross } from '../../api/kubevirt/migration-sides.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { type ComparedMachine, placedDisks, type PlacedDisk, placeName } from '../../hypervisor/compare.ts';
import type { DevicePlace, DiskSpec, MachineSpec } from '../../hypervisor/machine.ts';
import type { GuestNotes } from '../guests/guest-notes.ts';
import type { Machines } from '../guests/machines.ts';

/** What a machine of this node is like, for whoever wants to know whether its guest can go to another, or come from one. */
export interface MachineDescription {
  readonly machine: ComparedMachine;
  /**
   * The disks that go with the guest: this pod's own, and those that are on another claim at the other end; all of them, and
   * what is in drives, where there is another object for it at the other end.
   */
  readonly copiedDisks: readonly DevicePlace[];
  /** What tells the file behind each disk that can be written from all others, by the name of its place. */
  readonly diskFiles: ReadonlyMap<string, DiskFile>;
}

/** A file, on the host that it is on. */
export interface DiskFile {
  readonly host: string;
  readonly file: string;
}

/** Describes the machine of a pod, for the migration that its guest is in. */
export type DescribeMachine = (
  podUID: string,
  guest: VirtualMachineInstance | undefined,
) => Promise<MachineDescription>;

export interface DescribedMachinesOptions {
  readonly machines: Machines;
  readonly notes: GuestNotes;
  /** Where what belongs to a pod alone is kept. */
  readonly directoryOf: (podUID: string) => string;
  /** How large the guest sees a disk; undefined where nobody can tell. */
  readonly diskBytesOf?: ((disk: PlacedDisk) => Promise<number | undefined>) | undefined;
  /** Which file a disk is; undefined where nobody can tell. */
  readonly diskFileOf?: ((disk: DiskSpec) => Promise<DiskFile | undefined>) | undefined;
}

/** Describes machines as they were started, also those that a former agent has started. Rejects where that is not known. */
export function describedMachines({
  machines,
  notes,
  directoryOf,
  diskBytesOf,
  diskFileOf,
}: DescribedMachinesOptions): DescribeMachine {
  return async (podUID, guest) => {
    const { spec } = notes.get(podUID) ?? {};
    const machine = machines.get(podUID);
    if (!spec || !machine) throw new Error('nobody knows what the machine of this pod is like');
    const state = guest?.status?.migrationState;
    const copied =
      guest && isAcross(guest)
        ? placedDisks(spec)
        : (spec.disks ?? []).filter((disk) => isOwn(disk, directoryOf(podUID)) || isMigrated(disk, state));
    const diskBytes = new Map<string, number>();
    const sizes = copied.length > 0 ? await machine.disks?.sizes() : undefined;
    for (const disk of copied) {
      const bytes = sizes?.get(placeName(disk.place)) ?? (await diskBytesOf?.(disk));
      if (bytes !== undefined) diskBytes.set(placeName(disk.place), bytes);
    }
    const diskFiles = new Map<string, DiskFile>();
    for (const disk of (spec.disks ?? []).filter(({ isReadOnly }) => isReadOnly !== true)) {
      const file = await diskFileOf?.(disk);
      if (file) diskFiles.set(placeName(disk.place), file);
    }
    const processorCount = await machine.processors?.count();
    const pluggedMemory = spec.memoryRoom ? await machine.memory?.plugged() : undefined;
    const now = {
      ramBytes: await machine.migration.ramBytes(),
      ...(processorCount ? { processorCount } : {}),
      ...(pluggedMemory === undefined ? {} : { pluggedMemory }),
    };
    return {
      diskFiles,
      machine: { spec, ...now, diskBytes },
      copiedDisks: copied.map(({ place }) => place),
    };
  };
}

/** Whatever is below the pod's own directory is of no claim, and nobody else's. What cannot be written is made alike. */
function isOwn({ path, isReadOnly }: DiskSpec, directory: string): boolean {
  return isReadOnly !== true && path.startsWith(`${directory}/`);
}

/** Whether a disk is on one of two claims that its volume is on, one here and the other there. */
export function isMigrated({ volume, claim, isReadOnly }: DiskSpec, state: MigrationState | undefined): boolean {
  if (claim === undefined || isReadOnly === true) return false;
  return (state?.migratedVolumes ?? []).some(
    ({ volumeName, sourceClaim, targetClaim }) =>
      volumeName === volume && (claim.name === sourceClaim || claim.name === targetClaim),
  );
}

/** Files as they are sent. */
export function sentFiles(files: MachineDescription['diskFiles']): Readonly<Record<string, string>> {
  return Object.fromEntries([...files].map(([place, { host, file }]) => [place, `${host} ${file}`]));
}

/**
 * What is wrong with the disks of two machines, each as a sentence without its full stop. A disk that is copied must not
 * be copied onto itself, and one that is shared has to be the same: that nobody can tell of two hosts, but of one.
 */
export function fileDifferences(
  { diskFiles, copiedDisks }: MachineDescription,
  there: Readonly<Record<string, string>>,
): readonly string[] {
  const copied = new Set(copiedDisks.map(placeName));
  const others = new Map(Object.entries(there));
  return [...diskFiles].flatMap(([place, { host, file }]) => {
    const other = others.get(place);
    if (!other?.startsWith(`${host} `)) return [];
    const isSame = other === `${host} ${file}`;
    if (copied.has(place)) return isSame ? [`the disk at ${place} would be copied onto itself`] : [];
    return isSame ? [] : [`the disk at ${place} is not the same file on both nodes, and is not copied`];
  });
}

/**
 * What is wrong with the claims of the disks of two machines. Each side is told which volumes go from one claim to another;
 * here they are compared as they really are: a disk that would be taken for another one is lost.
 */
export function claimDifferences(
  { machine, copiedDisks }: Pick<MachineDescription, 'machine' | 'copiedDisks'>,
  there: MachineSpec,
): readonly string[] {
  const copied = new Set(copiedDisks.map(placeName));
  const others = new Map((there.disks ?? []).map((disk) => [placeName(disk.place), disk]));
  return (machine.spec.disks ?? []).flatMap(({ place, claim }) => {
    const [name, other] = [placeName(place), others.get(placeName(place))?.claim];
    if (claim === undefined || other === undefined) return [];
    const isSame = claim.uid === other.uid;
    if (isSame && copied.has(name)) return [`the disk at ${name} would be copied onto itself`];
    return isSame || copied.has(name)
      ? []
      : [`the disk at ${name} is on the claims ${claim.name} and ${other.name}, and is not copied`];
  });
}
