import type { VirtualMachine, VirtualMachineStatus } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { type ClaimChange, claimChanges, type Claims, claimsOfPod, claimsOfVolumes } from '../claim-changes.ts';
import type { LauncherPod } from '../resources.ts';

/**
 * Volumes of a machine whose contents are still on other claims than its template names. They are remembered in the
 * machine's status, before its guest hears of them: a guest that ended before all was copied must not be started again on
 * claims that have nothing of it.
 */

type VolumeUpdateState = VirtualMachineStatus['volumeUpdateState'];

/** The volumes, given the guest that there is, if any, and the pod that executes it, if that is known. */
export function uncopiedVolumes(
  { spec, status }: VirtualMachine,
  guest: VirtualMachineInstance | undefined,
  pod: LauncherPod | undefined,
): readonly ClaimChange[] {
  // Whoever lets volumes be replaced takes them as they are.
  if (spec.updateVolumesStrategy !== 'Migration') return [];
  const wanted = claimsOfVolumes(spec.template.spec?.volumes);
  if (guest && pod) return claimChanges(claimsOfPod(pod), wanted);
  const known = guest ? claimsOfVolumes(guest.spec.volumes) : [];
  return claimChanges(new Map([...known, ...remembered(status?.volumeUpdateState), ...arrived(guest)]), wanted);
}

/**
 * Volumes that have come to other claims, with a guest of which nobody knows any more in which pod it is, or was. They are whole before it
 * runs there, also where its memory never came.
 */
function arrived(guest: VirtualMachineInstance | undefined): Claims {
  const {
    completed,
    failed,
    mode,
    targetNodeDomainDetected,
    migratedVolumes = [],
  } = guest?.status?.migrationState ?? {};
  const isAhead = mode === 'PostCopy' && targetNodeDomainDetected === true;
  if ((completed !== true && !isAhead) || failed === true) return new Map();
  return new Map(migratedVolumes.map(({ volumeName, targetClaim }) => [volumeName, targetClaim]));
}

/** Where the contents of volumes are, as it was last known. */
function remembered(state: VolumeUpdateState): Claims {
  return new Map(
    (state?.volumeMigrationState?.migratedVolumes ?? []).flatMap(({ volumeName, sourcePVCInfo }) =>
      sourcePVCInfo?.claimName === undefined ? [] : [[volumeName, sourcePVCInfo.claimName] as const],
    ),
  );
}

/** What the machine's status says of them. */
export function volumeUpdateState(changes: readonly ClaimChange[]): VolumeUpdateState {
  if (changes.length === 0) return undefined;
  const migratedVolumes = changes.map(({ volumeName, source, destination }) => ({
    volumeName,
    sourcePVCInfo: { claimName: source },
    destinationPVCInfo: { claimName: destination },
  }));
  return { volumeMigrationState: { migratedVolumes } };
}

/** Why a machine cannot be started: in words that say what to do. */
export function uncopiedMessage(changes: readonly ClaimChange[]): string {
  const each = changes.map(({ volumeName, source, destination }) => `${volumeName} (${source} to ${destination})`);
  const remedy = 'name the claims that have their contents, or set updateVolumesStrategy to Replacement';
  return `the guest ended before it was known that its volumes were copied: ${each.join(', ')}; ${remedy}`;
}
