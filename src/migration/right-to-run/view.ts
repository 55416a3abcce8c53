import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import type { Attempt } from './attempt.ts';
import type { SeenImage } from './image-stamps.ts';
import type { Message } from './plan.ts';
import type { Standing } from './standing.ts';

/**
 * What QEMU says of itself:
 * - `running`: it executes the guest;
 * - `paused`: it could, and does not; on a target: all of the guest has arrived;
 * - `postmigrate`: it said `completed`, and cannot resume the guest by itself;
 * - `inmigrate`: the guest has not arrived yet;
 * - `postcopy`: post-copy is active and the guest stands still here; a source that only announced it, and has not
 *   stopped yet, is `running`;
 * - `dead`: it is certain that this run is over, or never began;
 * - `unknown`: it may live, but does not answer. Nothing can be concluded.
 */
export type MachineFact = 'running' | 'paused' | 'postmigrate' | 'inmigrate' | 'postcopy' | 'dead' | 'unknown';

/** All that an agent knows about one of its launcher pods when it decides. */
export interface View {
  readonly self: Runner;
  /** As last read; undefined where the guest has none yet. Old news is harmless: writes name what they change. */
  readonly record: RightToRun | undefined;
  readonly standing: Standing;
  readonly machine: MachineFact;
  /** Whether the source's QEMU says that its migration failed or was cancelled. */
  readonly hasMigrationFailed: boolean;
  /** What the other side's QEMU was last said to be, by its agent. */
  readonly peerMachine: MachineFact;
  readonly inbox: readonly Message[];
  /** UIDs of nodes that an admin declared out of service. */
  readonly outOfService: ReadonlySet<string>;
  /** Nodes in service that have not said yet what their journals hold, since the API's data was last restored. */
  readonly unheard: readonly string[];
  readonly wish: Wish;
}

/** What is wanted of a launcher pod. */
export interface Wish {
  /** Run the guest here, from its disks. */
  readonly start?: StartWish;
  /** Receive the guest. */
  readonly receive?: Attempt;
  /** Send the guest away. */
  readonly migrate?: Attempt;
  /** The migration is to end, or has ended, without success. */
  readonly isCancelled?: boolean;
  /** Of a source: the side of a target that has a record of its own says that it needs nothing more of this one. */
  readonly isPeerDone?: boolean;
}

/** What a start rests on, besides the record. */
export interface StartWish {
  /** What the VirtualMachine remembers of earlier guests. */
  readonly remembered?: {
    readonly epoch: number;
    readonly grantedAway?: boolean;
    readonly volumes?: RightToRun['volumes'];
  };
  /** The images that the machine is to be started on, as they are right now; none where it has no claims. */
  readonly disks?: { readonly vm: string; readonly namespace: string; readonly images: readonly SeenImage[] };
  /** Whether the guest is to wait for its owner to let it run. */
  readonly isPaused?: boolean;
}
