import { arePair, migrationRole } from '../../api/kubevirt/validate-migration.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { ownState, phaseBeganMs } from '../../migration/phase/facts.ts';
import { guestKeyOf } from './keys.ts';

/** The objects of a pair that are in this cluster, from the point of view of one of its halves. */
export interface LocalPair {
  readonly source: VirtualMachineInstanceMigration | undefined;
  readonly target: VirtualMachineInstanceMigration | undefined;
  /** Whether both are of one guest. */
  readonly isSameGuest: boolean;
}

/** Where the halves in this cluster are found. */
export interface Halves {
  /** All that have the key of a migration, itself included. */
  withKeyOf(migration: VirtualMachineInstanceMigration): readonly VirtualMachineInstanceMigration[];
  byUid(uid: string): VirtualMachineInstanceMigration | undefined;
}

/** The halves of the pair that are here; undefined for what is no half. */
export function localPair(
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance | undefined,
  halves: Halves,
): LocalPair | undefined {
  const role = migrationRole(migration.spec);
  if (role === 'local') return undefined;
  const partner = partnerOf(migration, halves);
  const { sourceState, targetState } = ownState({ migration, guest }) ?? {};
  const uid = role === 'source' ? targetState?.migrationUID : sourceState?.migrationUID;
  const other = halves.byUid(uid ?? '') ?? partner;
  const sameUID = sourceState?.virtualMachineInstanceUID;
  const wasSame = sameUID !== undefined && sameUID === targetState?.virtualMachineInstanceUID;
  return {
    source: role === 'source' ? migration : other,
    target: role === 'target' ? migration : other,
    isSameGuest: partner !== undefined || wasSame || (role === 'target' && isAtHome(guest)),
  };
}

/** The other half of the same guest. One of an earlier pair with the same key is not meant. */
function partnerOf(
  migration: VirtualMachineInstanceMigration,
  halves: Halves,
): VirtualMachineInstanceMigration | undefined {
  const key = guestKeyOf(migration);
  const others = halves
    .withKeyOf(migration)
    .filter((each) => arePair(each.spec, migration.spec) && guestKeyOf(each) === key);
  const madeMs = Date.parse(migration.metadata.creationTimestamp ?? '');
  const hasEndedSince = (each: VirtualMachineInstanceMigration): boolean =>
    (phaseBeganMs(each, each.status?.phase ?? '') ?? 0) >= madeMs;
  return others.find((each) => !isFinalMigration(each)) ?? others.find(hasEndedSince);
}

/** Whether somebody executes the guest where it is: one that waits to be received nobody does. */
function isAtHome(guest: VirtualMachineInstance | undefined): boolean {
  const { rightToRun, migrationState } = guest?.status ?? {};
  return rightToRun?.holder !== undefined && migrationState?.targetState === undefined;
}
