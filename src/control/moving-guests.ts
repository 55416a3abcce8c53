import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import type { Informer } from '../kube/informer.ts';
import { virtualMachineInstances } from '../kube/kubevirt-resources.ts';
import type { SharedInformers } from '../kube/shared-informers.ts';

/** News of a move come one upon the other, above all of a quick one: they are looked at, and written down, together. */
const MOVING_MS = 100;
/** Each guest that moves at the same time makes the news of all others less urgent, and what they cost dearer. */
const EACH_OTHER_MS = 50;
/** As long as people wait for news of a copy anyway. */
const PATIENCE_MS_MAX = 5000;

/** The guests that are being moved, as far as their controllers are concerned. */
export class MovingGuests {
  readonly #guests: Informer<VirtualMachineInstance>;

  constructor(informers: SharedInformers) {
    this.#guests = informers.of(virtualMachineInstances, { moving: movingIndex });
  }

  /**
   * For how long it can wait that a guest has changed, in milliseconds. How a move goes is for people to know; that it is
   * over, and all that happens to a guest otherwise, others wait for.
   */
  patienceMs(guest: VirtualMachineInstance): number {
    return isMoving(guest) ? patienceAmong(this.#guests.countByIndex('moving', '')) : 0;
  }
}

/** For how long news can wait while so many guests move. */
export function patienceAmong(count: number): number {
  return Math.min(PATIENCE_MS_MAX, MOVING_MS + EACH_OTHER_MS * Math.max(0, count - 1));
}

/** Whether nothing happens to a guest but that it is moved, within the cluster: its agents do the rest themselves. */
export function isMoving({ metadata, status }: VirtualMachineInstance): boolean {
  const { phase, migrationState: { migrationUid, completed, sourceState, targetState } = {} } = status ?? {};
  // What two clusters have to tell each other goes through their controllers.
  const isMoved = Boolean(migrationUid) && completed !== true && !sourceState && !targetState;
  return isMoved && phase === 'Running' && metadata.deletionTimestamp === undefined;
}

function movingIndex(guest: VirtualMachineInstance): readonly string[] {
  return isMoving(guest) ? [''] : [];
}

/** Whether a guest's status is about a migration, by its UID. */
export function tellsOf(guest: VirtualMachineInstance | undefined, migrationUid: string | undefined): boolean {
  const { migrationUid: own, sourceState, targetState } = guest?.status?.migrationState ?? {};
  const told = [own, sourceState?.migrationUID, targetState?.migrationUID];
  return migrationUid !== undefined && told.includes(migrationUid);
}
