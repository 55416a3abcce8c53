import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { changesOf } from '../../migration/causes/served-causes.ts';
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
  const changes = changesOf(guest);
  const isOutdated = isLauncherOutdated(guest, launcherImage);
  if (!isOutdated && changes.length === 0) return undefined;
  return { isOutdated, changes: changes.map(({ type }) => type) };
}
