import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';

/**
 * Whose the state of a guest is. Both sides of a pair know it by the UID of the source's migration, as one that stays in
 * its cluster is known by its own; a target, which begins before it has heard of its source, finds its own in `targetState`.
 */

type Migration = Pick<VirtualMachineInstanceMigration, 'metadata'>;
type Guest = Pick<VirtualMachineInstance, 'metadata' | 'status'>;

/** The state of this very migration, which is the half of the source; undefined where it is another's. */
export function stateOfSource({ metadata }: Migration, guest: Guest | undefined): MigrationState | undefined {
  const state = guest?.status?.migrationState;
  return metadata.uid !== undefined && state?.migrationUid === metadata.uid ? state : undefined;
}

/** The state of this very migration, which is the half of the target; undefined where it is another's. */
export function stateOfTarget({ metadata }: Migration, guest: Guest | undefined): MigrationState | undefined {
  const state = guest?.status?.migrationState;
  return metadata.uid !== undefined && state?.targetState?.migrationUID === metadata.uid ? state : undefined;
}

/** UID of the migration that has the guest on this side, or had it last; empty where none did. */
export function ownerUidOf({ metadata, status }: Guest): string {
  const { migrationUid, sourceState, targetState } = status?.migrationState ?? {};
  const isSource = sourceState?.virtualMachineInstanceUID === metadata.uid;
  const isTarget = targetState?.virtualMachineInstanceUID === metadata.uid;
  return (isTarget && !isSource ? targetState?.migrationUID : migrationUid) ?? '';
}
