import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';

/** How far a half of a pair once came, whatever became of it, and of its guest. */

type Migration = Pick<VirtualMachineInstanceMigration, 'status'>;

const HANDED_OFF: ReadonlySet<MigrationPhase> = new Set(['PreparingTarget', 'TargetReady', 'Running', 'Succeeded']);
const WITH_SLOTS: ReadonlySet<MigrationPhase> = new Set(['Scheduling', 'Scheduled', ...HANDED_OFF]);
const BEFORE_HEARING: ReadonlySet<MigrationPhase> = new Set(['', 'Synchronizing', 'WaitingForSync', 'Failed']);

/** Phases that the migration has been in, whatever became of its guest. */
function pastPhases({ status }: Migration): MigrationPhase[] {
  return (status?.phaseTransitionTimestamps ?? []).flatMap(({ phase }) => (phase === undefined ? [] : [phase]));
}

/** Whether agents may have had it, so that both sides must come to the same end. */
export function wasHandedOff(migration: Migration): boolean {
  return pastPhases(migration).some((phase) => HANDED_OFF.has(phase));
}

/** Whether it has been told to be in need of a pod, or more: it has slots from then on. */
export function hadSlots(migration: Migration): boolean {
  return pastPhases(migration).some((phase) => WITH_SLOTS.has(phase));
}

/** Whether it got so far that the other half had been heard of. */
export function hasHeard(migration: Migration): boolean {
  return pastPhases(migration).some((phase) => !BEFORE_HEARING.has(phase));
}
