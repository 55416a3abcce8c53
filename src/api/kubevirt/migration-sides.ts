import type { VirtualMachineInstance } from './virtual-machine-instance.ts';

/** Which sides of its migration a guest's object stands for. */
export interface MigrationSides {
  readonly isSource: boolean;
  readonly isTarget: boolean;
}

/**
 * Both, in a migration within one object; one of them where there is another object for the other side. Nodes and pods of
 * two clusters may have the same names, so that only UIDs tell which side is meant.
 */
export function sidesOf({ metadata, status }: VirtualMachineInstance): MigrationSides {
  const { sourceState, targetState } = status?.migrationState ?? {};
  const isOwn = (uid: string | undefined): boolean => uid === undefined || uid === '' || uid === metadata.uid;
  return {
    isSource: isOwn(sourceState?.virtualMachineInstanceUID),
    isTarget: isOwn(targetState?.virtualMachineInstanceUID),
  };
}

/** Whether two objects stand for the guest while it moves, each with a record of the right to run. */
export function isAcross(guest: VirtualMachineInstance): boolean {
  const { isSource, isTarget } = sidesOf(guest);
  return !isSource || !isTarget;
}
