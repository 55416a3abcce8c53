import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { claimChanges, claimsOfPod, claimsOfVolumes } from '../claim-changes.ts';
import type { LauncherPod } from '../resources.ts';
import { infoOf } from './volume-status.ts';

/**
 * Volumes that a guest which runs is to have on other claims than the pod that it is in. Their contents go with the guest's
 * next move; once it is in a pod with the other claims there is nothing left to say.
 */

type MigratedVolumes = NonNullable<VirtualMachineInstanceStatus['migratedVolumes']>;

/** What the status says of them. Without the pod nobody knows, and what was said stays. */
export function migratedVolumesOf(
  { spec, status }: VirtualMachineInstance,
  pod: LauncherPod | undefined,
  claimOf: (claimName: string) => PersistentVolumeClaim | undefined,
): MigratedVolumes | undefined {
  if (status?.phase !== 'Running' || !pod) return status?.migratedVolumes;
  const info = (claimName: string) => {
    const claim = claimOf(claimName);
    return claim ? infoOf(claim) : { claimName };
  };
  const changes = claimChanges(claimsOfPod(pod), claimsOfVolumes(spec.volumes));
  if (changes.length === 0) return undefined;
  return changes.map(({ volumeName, source, destination }) => ({
    volumeName,
    sourcePVCInfo: info(source),
    destinationPVCInfo: info(destination),
  }));
}

/** The condition by which whoever updates guests hears of it. */
export function volumesChange(volumes: MigratedVolumes | undefined): KubeVirtCondition | undefined {
  if (!volumes || volumes.length === 0) return undefined;
  const names = volumes.map(({ volumeName }) => volumeName).join(', ');
  const message = `to be copied to other claims: ${names}`;
  return { type: 'VolumesChange', status: 'True', reason: 'MigrationNeeded', message };
}
