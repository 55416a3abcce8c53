import { memoryBytesOfPod, socketsOfPod, wantedMemoryBytes, wantedSockets } from '../../api/kubevirt/pod-room.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { changesOf } from '../../migration/causes/served-causes.ts';
import { claimChanges, claimsOfPod, claimsOfVolumes } from '../claim-changes.ts';
import type { LauncherPod } from '../resources.ts';
import { COMPUTE } from '../vmi/launcher-pod.ts';
import { isLauncherOutdated } from '../vmi/outdated-launcher.ts';
import { isFinal } from '../vmi/phase.ts';

/** Why a guest should get another launcher. */
export interface UpdateNeed {
  /** Its launcher is not the one that it would be started in now. */
  readonly isOutdated: boolean;
  /** Conditions of changes that take effect with the guest's next move. */
  readonly changes: readonly string[];
}

/** What a guest needs; undefined for one that is as it should be, or that is over or about to be. */
export function updateNeed(guest: VirtualMachineInstance, launcherImage: string): UpdateNeed | undefined {
  if (isFinal(guest) || guest.metadata.deletionTimestamp !== undefined) return undefined;
  const changes = changesOf(guest).map(({ type }) => type);
  return anyOf({ isOutdated: isLauncherOutdated(guest, launcherImage), changes });
}

/** What of that the pod leaves to be done that the guest is in: a status may still be of the one that it was in before. */
export function needLeft(
  guest: VirtualMachineInstance,
  pod: LauncherPod | undefined,
  launcherImage: string,
): UpdateNeed | undefined {
  const need = updateNeed(guest, launcherImage);
  if (!pod) return need;
  const image = pod.spec?.containers?.find(({ name }) => name === COMPUTE)?.image;
  return (
    need &&
    anyOf({
      isOutdated: need.isOutdated && image !== launcherImage,
      changes: need.changes.filter((type) => !IS_MADE_FOR[type]?.(pod, guest)),
    })
  );
}

function anyOf(need: UpdateNeed): UpdateNeed | undefined {
  return need.isOutdated || need.changes.length > 0 ? need : undefined;
}

/** Whether a pod was made for a change. Of others only their condition tells. */
const IS_MADE_FOR: Readonly<Record<string, (pod: LauncherPod, guest: VirtualMachineInstance) => boolean>> = {
  HotVCPUChange: (pod, guest) => socketsOfPod(pod) >= wantedSockets(guest),
  HotMemoryChange: (pod, guest) => memoryBytesOfPod(pod) >= wantedMemoryBytes(guest),
  VolumesChange: (pod, { spec }) => claimChanges(claimsOfPod(pod), claimsOfVolumes(spec.volumes)).length === 0,
};
