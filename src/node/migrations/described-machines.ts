import { type ComparedMachine, placeName } from '../../hypervisor/compare.ts';
import type { DevicePlace, DiskSpec } from '../../hypervisor/machine.ts';
import type { GuestNotes } from '../guests/guest-notes.ts';
import type { Machines } from '../guests/machines.ts';

/** What a machine of this node is like, for whoever wants to know whether its guest can go to another, or come from one. */
export interface MachineDescription {
  readonly machine: ComparedMachine;
  /** The disks that are this pod's own, and go with the guest. */
  readonly copiedDisks: readonly DevicePlace[];
}

export type DescribeMachine = (podUID: string) => Promise<MachineDescription>;

export interface DescribedMachinesOptions {
  readonly machines: Machines;
  readonly notes: GuestNotes;
  /** Where what belongs to a pod alone is kept. */
  readonly directoryOf: (podUID: string) => string;
  /** How large the guest sees a disk; undefined where nobody can tell. */
  readonly diskBytesOf?: ((disk: DiskSpec) => Promise<number | undefined>) | undefined;
}

/** Describes machines as they were started, also those that a former agent has started. Rejects where that is not known. */
export function describedMachines({
  machines,
  notes,
  directoryOf,
  diskBytesOf,
}: DescribedMachinesOptions): DescribeMachine {
  return async (podUID) => {
    const { spec } = notes.get(podUID) ?? {};
    const machine = machines.get(podUID);
    if (!spec || !machine) throw new Error('nobody knows what the machine of this pod is like');
    const own = (spec.disks ?? []).filter((disk) => isOwn(disk, directoryOf(podUID)));
    const diskBytes = new Map<string, number>();
    for (const disk of own) {
      const bytes = await diskBytesOf?.(disk);
      if (bytes !== undefined) diskBytes.set(placeName(disk.place), bytes);
    }
    return {
      machine: { spec, ramBytes: await machine.migration.ramBytes(), diskBytes },
      copiedDisks: own.map(({ place }) => place),
    };
  };
}

/** Whatever is below the pod's own directory is of no claim, and nobody else's. What cannot be written is made alike. */
function isOwn({ path, isReadOnly }: DiskSpec, directory: string): boolean {
  return isReadOnly !== true && path.startsWith(`${directory}/`);
}
