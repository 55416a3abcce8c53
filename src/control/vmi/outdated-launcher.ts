import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { OUTDATED_LAUNCHER_LABEL } from '../../api/kubevirt/well-known.ts';
import { isFinal } from './phase.ts';

/** Whether a guest's launcher is known, and is not the one that it would be started in now. */
export function isLauncherOutdated({ status }: VirtualMachineInstance, launcherImage: string): boolean {
  const { launcherContainerImageVersion: image = '' } = status ?? {};
  return image !== '' && image !== launcherImage;
}

/** The label by which people find guests with an old launcher, as far as it has to change; null where it goes. */
export function outdatedLabelChange(
  guest: VirtualMachineInstance,
  launcherImage: string,
): { readonly [label: string]: string | null } {
  const isLabelled = Object.hasOwn(guest.metadata.labels ?? {}, OUTDATED_LAUNCHER_LABEL);
  const isOutdated = !isFinal(guest) && isLauncherOutdated(guest, launcherImage);
  return isLabelled === isOutdated ? {} : { [OUTDATED_LAUNCHER_LABEL]: isOutdated ? '' : null };
}
