import { errorMessage } from '../../api/error-message.ts';
import type { HalfVolume } from '../../api/kubevirt/migration-halves.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { Runner } from '../../api/kubevirt/right-to-run.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Logger } from '../../env/ports.ts';
import { placedDisks, type PlacedDisk, placeName } from '../../hypervisor/compare.ts';
import { deepEqual } from '../../machinery/equal.ts';
import { isSameRunner } from '../../migration/right-to-run/attempt.ts';
import type { GuestNotes } from '../guests/guest-notes.ts';
import type { Machines } from '../guests/machines.ts';
import type { Outcome } from '../guests/scene.ts';

export interface LeavingDisksOptions {
  readonly machines: Pick<Machines, 'get'>;
  readonly notes: Pick<GuestNotes, 'get'>;
  /** How large a guest sees a disk; undefined where nobody can tell. */
  readonly diskBytesOf?: ((disk: PlacedDisk) => Promise<number | undefined>) | undefined;
  readonly log: Logger;
  /** Called when there is something to report. */
  readonly enqueue: (podUID: string) => void;
}

/**
 * Which disks guests have that are to go elsewhere. Only their machines know to the byte how large they are, also those
 * that were made for them; and whoever waits for a guest needs to know before it has its own.
 */
export class LeavingDisks {
  readonly #options: LeavingDisksOptions;
  readonly #known = new Map<string, readonly HalfVolume[]>();
  readonly #asking = new Set<string>();

  constructor(options: LeavingDisksOptions) {
    this.#options = options;
  }

  /** Asks the machine of a guest that is to go elsewhere, once. */
  tend({ podUID, guest, view: { self, standing } }: Outcome): void {
    if (standing.kind !== 'holding' || !isToTell(guest, self)) return;
    if (!this.#known.has(podUID) && !this.#asking.has(podUID)) void this.#ask(podUID);
  }

  /** The guest's migration with its disks in it; undefined where there is nothing to say of them. */
  told(podUID: string, guest: VirtualMachineInstance | undefined, self: Runner): MigrationState | undefined {
    const known = this.#known.get(podUID);
    const { migrationState } = guest?.status ?? {};
    if (!known || !migrationState || !isToTell(guest, self)) return undefined;
    const volumes = [...known];
    if (deepEqual(migrationState.sourceState?.volumes, volumes)) return undefined;
    return { ...migrationState, sourceState: { ...migrationState.sourceState, volumes } };
  }

  forget(podUID: string): void {
    this.#known.delete(podUID);
  }

  async #ask(podUID: string): Promise<void> {
    const { machines, notes, diskBytesOf, log, enqueue } = this.#options;
    this.#asking.add(podUID);
    try {
      const { spec } = notes.get(podUID) ?? {};
      const machine = machines.get(podUID);
      if (!spec || !machine) return;
      const sizes = await machine.disks?.sizes();
      const volumes: HalfVolume[] = [];
      for (const disk of placedDisks(spec)) {
        const sizeBytes = sizes?.get(placeName(disk.place)) ?? (await diskBytesOf?.(disk));
        if (disk.volume === undefined || sizeBytes === undefined) continue;
        volumes.push({ name: disk.volume, sizeBytes, isBlock: disk.isDevice === true });
      }
      this.#known.set(podUID, volumes);
      enqueue(podUID);
    } catch (error) {
      // It is asked again when the pod is looked at again.
      log.info('a machine does not say how large its disks are', { pod: podUID, error: errorMessage(error) });
    } finally {
      this.#asking.delete(podUID);
    }
  }
}

/** Whether the guest was said to be what goes elsewhere, from here, and has not begun to. */
function isToTell(guest: VirtualMachineInstance | undefined, self: Runner): boolean {
  const { sourceState, startTimestamp, completed } = guest?.status?.migrationState ?? {};
  const isOwn =
    sourceState?.virtualMachineInstanceUID === guest?.metadata.uid && isSameRunner(sourceState?.runner, self);
  return guest !== undefined && isOwn && startTimestamp === undefined && completed !== true;
}
