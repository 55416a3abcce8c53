import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { ownerUidOf } from '../../migration/halves/pair-state.ts';
import type { LauncherPod } from '../resources.ts';
import { migrationUidsOf } from './keys.ts';

/** What migrations of a guest left behind that are not there any more. */
export interface Leftovers {
  /** Whether the agents have a migration that nobody wants any more. */
  readonly isAbandoned: boolean;
  /** Pods that are of no use: those that ended, and those that no agent was told of. */
  readonly pods: readonly LauncherPod[];
}

/** All of the guest's launcher pods and migrations are given; what is kept of a migration is kept with it. */
export function leftovers(
  guest: VirtualMachineInstance,
  pods: readonly LauncherPod[],
  migrations: readonly VirtualMachineInstanceMigration[],
): Leftovers {
  const { rightToRun, migrationState = {} } = guest.status ?? {};
  const known = new Set(migrations.map(({ metadata }) => metadata.uid));
  const sources = new Set(migrations.map(({ status }) => status?.migrationState?.sourcePod));
  const owner = ownerUidOf(guest);
  const isUnfinished = owner !== '' && migrationState.completed !== true;
  const isStale = (pod: LauncherPod): boolean => {
    const { name, uid, deletionTimestamp } = pod.metadata;
    const [migrationUid] = migrationUidsOf(pod);
    const isUsed = [rightToRun?.holder?.podUID, rightToRun?.successor?.podUID].includes(uid);
    if (isUsed || deletionTimestamp !== undefined || sources.has(name)) return false;
    if (migrationUid !== undefined && known.has(migrationUid)) return false;
    const isTold = migrationState.sourcePod === name || migrationState.targetPod === name;
    if (isOver(pod)) return !(isTold && isUnfinished);
    // What agents were told of they end themselves.
    return migrationUid !== undefined && !isTold;
  };
  return {
    isAbandoned: isUnfinished && !known.has(owner) && migrationState.abortRequested !== true,
    // Pods of a guest that nobody executes are its own controller's business.
    pods: rightToRun?.holder ? pods.filter(isStale) : [],
  };
}

/** Whether a pod has ended. */
export function isOver({ status }: LauncherPod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
