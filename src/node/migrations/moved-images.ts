import { isAcross, sidesOf } from '../../api/kubevirt/migration-sides.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { placeName } from '../../hypervisor/compare.ts';
import type { DiskSpec, MachineSpec } from '../../hypervisor/machine.ts';
import type { Attempt, ImagePlace } from '../../migration/right-to-run/attempt.ts';
import { type SeenImage, volumesOfTarget } from '../../migration/right-to-run/image-stamps.ts';
import type { ImageStamps } from '../volumes/image-stamp-files.ts';
import { isMigrated } from './described-machines.ts';
import { type AskedPod, partIn } from './migration-wish.ts';

/** The images of claims that a machine has: what its stamps are about. */

type ClaimedDisk = DiskSpec & Required<Pick<DiskSpec, 'claim'>>;

function claimedDisks({ disks = [] }: MachineSpec): readonly ClaimedDisk[] {
  return disks.filter((disk): disk is ClaimedDisk => disk.claim !== undefined);
}

function placeOf({ volume = '', claim, path }: ClaimedDisk): ImagePlace {
  return { volume, claim, path };
}

/** The images that a machine is to be started on, as they are now. */
export async function seenImages(
  spec: MachineSpec,
  stamps: Pick<ImageStamps, 'look'>,
  accepted: ReadonlyMap<string, string> | undefined,
): Promise<readonly SeenImage[]> {
  return Promise.all(
    claimedDisks(spec).map(async (disk) => ({
      ...placeOf(disk),
      ...(await stamps.look(disk)),
      ...(disk.isReadOnly ? { isReadOnly: true } : {}),
      accepted: accepted?.get(disk.claim.uid),
    })),
  );
}

/**
 * The images that stay behind when a guest goes from one machine to another: those of disks on other claims there, and all
 * where the guest has another object there, whatever they are on.
 */
export function leftImages(
  here: MachineSpec,
  there: MachineSpec,
  { target, across }: Attempt,
): Pick<Attempt, 'images'> {
  const others = new Map(claimedDisks(there).map((disk) => [placeName(disk.place), disk.claim]));
  const images = claimedDisks(here).flatMap((disk): ImagePlace[] => {
    const other = others.get(placeName(disk.place));
    const isElsewhere = across !== undefined || (other !== undefined && other.uid !== disk.claim.uid);
    if (!isElsewhere || disk.isReadOnly === true) return [];
    const node = `node ${target.node}${across ? ', in another cluster or namespace' : ''}`;
    const wentTo = other === undefined ? node : `claim ${other.name} on ${node}`;
    return [{ ...placeOf(disk), wentTo }];
  });
  return images.length > 0 ? { images } : {};
}

/** The volumes that a migration fills, where a pod is its target: all of a guest that comes from elsewhere. */
export function filledVolumes(pod: AskedPod): ReadonlySet<string> {
  if (isComing(pod.guest)) return new Set((pod.guest?.spec.volumes ?? []).map(({ name }) => name));
  const part = partIn(pod) ?? awaitedPart(pod);
  if (part?.side !== 'target') return new Set();
  return new Set((part.state.migratedVolumes ?? []).map(({ volumeName }) => volumeName));
}

/** A pod that does not hold its guest can only be a target, also before it is said of which migration. */
function awaitedPart({ self, guest }: AskedPod): ReturnType<typeof partIn> {
  const { rightToRun, migratedVolumes = [] } = guest?.status ?? {};
  if (!rightToRun?.holder || rightToRun.holder.podUID === self.podUID) return undefined;
  const volumes = migratedVolumes.map(({ volumeName, sourcePVCInfo, destinationPVCInfo }) => ({
    volumeName,
    sourceClaim: sourcePVCInfo?.claimName ?? '',
    targetClaim: destinationPVCInfo?.claimName ?? '',
  }));
  return { side: 'target', state: { migratedVolumes: volumes } };
}

/** Whether all of a guest is to come from elsewhere, to whichever pod it has: nothing of it was ever here. */
function isComing(guest: VirtualMachineInstance | undefined): boolean {
  return guest !== undefined && isAcross(guest) && sidesOf(guest).isTarget && guest.status?.rightToRun === undefined;
}

/** How large the disks are that come from elsewhere, as far as their side has said. */
export function comingSizes(guest: VirtualMachineInstance): ReadonlyMap<string, number> {
  const volumes = isComing(guest) ? (guest.status?.migrationState?.sourceState?.volumes ?? []) : [];
  return new Map(volumes.map(({ name, sizeBytes }) => [name, sizeBytes]));
}

/** The images that a guest fills when it comes, and where all its volumes are once it has. */
export async function filledImages(
  spec: MachineSpec,
  stamps: Pick<ImageStamps, 'look'>,
  state: MigrationState | undefined,
  recorded: RightToRun['volumes'],
  attempt: Attempt,
): Promise<Pick<Attempt, 'images' | 'volumes'>> {
  const disks = claimedDisks(spec).filter(({ isReadOnly }) => isReadOnly !== true);
  // What is on record is the guest's disk now: nothing is ever copied onto that.
  const isFilled = (disk: ClaimedDisk): boolean =>
    (attempt.across !== undefined || isMigrated(disk, state)) &&
    !(recorded ?? []).some(({ claimUID }) => claimUID === disk.claim.uid);
  const images = disks.filter(isFilled).map(placeOf);
  if (images.length === 0) return {};
  const seen = await Promise.all(
    disks.map(async (disk) => ({ ...placeOf(disk), ...(await stamps.look(disk)), isFilled: isFilled(disk) })),
  );
  return { images, volumes: volumesOfTarget(seen, recorded, attempt) };
}
