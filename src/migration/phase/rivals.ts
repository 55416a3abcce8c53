import { arePair } from '../../api/kubevirt/validate-migration.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';

/**
 * Which of several migrations of one guest goes on. A webhook lets only one be made at a time, as far as it can see; of
 * those that were made at the same instant the one that is further goes first, then the older one, then the one with the
 * lower UID. Everybody who knows them all picks the same; who does not know them all is stopped at the hand-off, which
 * only one can make.
 */
export function goesBefore(a: VirtualMachineInstanceMigration, b: VirtualMachineInstanceMigration): boolean {
  const [stageA, stageB] = [stageOf(a), stageOf(b)];
  if (stageA !== stageB) return stageA > stageB;
  const [madeA, madeB] = [
    Date.parse(a.metadata.creationTimestamp ?? ''),
    Date.parse(b.metadata.creationTimestamp ?? ''),
  ];
  if (madeA !== madeB) return madeA < madeB;
  return (a.metadata.uid ?? '') < (b.metadata.uid ?? '');
}

/** Whether one of the others goes before; those that are over do not count, nor does the other half of the same pair. */
export function hasBetterRival(
  migration: VirtualMachineInstanceMigration,
  others: Iterable<VirtualMachineInstanceMigration>,
): boolean {
  for (const other of others) {
    if (other.metadata.uid === migration.metadata.uid || isFinalMigration(other)) continue;
    if (arePair(migration.spec, other.spec)) continue;
    if (goesBefore(other, migration)) return true;
  }
  return false;
}

/** Not begun, in line or without its other half, or with a pod or more. */
function stageOf({ status }: VirtualMachineInstanceMigration): number {
  const phase = status?.phase ?? '';
  if (phase === '') return 0;
  return phase === 'Pending' || phase === 'Synchronizing' || phase === 'WaitingForSync' ? 1 : 2;
}
