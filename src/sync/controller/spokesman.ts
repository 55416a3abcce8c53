import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { ownStateOf } from './halves.ts';
import { eldestOf, sideOf } from './side.ts';

/**
 * Of all halves that are about one guest, the one that says on it what is in its way; undefined where all are over. Several may
 * be under way, for people ask for what cannot be, and each knows another problem, or none: if each told its own, they would
 * take it back from each other without end. The one that the guest's state belongs to comes first, then the eldest.
 */
export function spokesmanOf(
  guest: VirtualMachineInstance,
  halves: readonly VirtualMachineInstanceMigration[],
): VirtualMachineInstanceMigration | undefined {
  const underWay = halves.filter((each) => !isFinalMigration(each));
  const isOwner = (each: VirtualMachineInstanceMigration): boolean => {
    const side = sideOf(each);
    return side !== undefined && ownStateOf(side.role, each, guest) !== undefined;
  };
  return underWay.find(isOwner) ?? eldestOf(underWay);
}
