import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';

/** News of a move come one upon the other, above all of a quick one: they are looked at, and written down, together. */
const MOVING_MS = 100;

/**
 * For how long it can wait that a guest has changed, in milliseconds. How a move goes is for people to know; that it is
 * over, and all that happens to a guest otherwise, others wait for.
 */
export function patienceMs({ metadata, status }: VirtualMachineInstance): number {
  const { phase, migrationState: { migrationUid, completed } = {} } = status ?? {};
  const isMoved = Boolean(migrationUid) && completed !== true;
  return isMoved && phase === 'Running' && metadata.deletionTimestamp === undefined ? MOVING_MS : 0;
}

/** Whether a guest's status is about a migration, by its UID. */
export function tellsOf(guest: VirtualMachineInstance | undefined, migrationUid: string | undefined): boolean {
  const { migrationUid: own, sourceState, targetState } = guest?.status?.migrationState ?? {};
  const told = [own, sourceState?.migrationUID, targetState?.migrationUID];
  return migrationUid !== undefined && told.includes(migrationUid);
}
