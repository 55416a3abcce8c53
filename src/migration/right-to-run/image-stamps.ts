import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import type { Attempt } from './attempt.ts';
import type { Refusal } from './plan.ts';

/** What is written beside an image: the epoch whose contents it has, or the one in which it was left behind. */
export interface ImageStamp {
  readonly volume: string;
  readonly claimUID: string;
  readonly text: string;
}

type RecordedVolume = NonNullable<RightToRun['volumes']>[number];

/** The stamps of images that a grant leaves behind: those of volumes that have another claim after the take. */
export function stampsOfGrant(before: RightToRun, attempt: Attempt): readonly ImageStamp[] {
  return (before.volumes ?? [])
    .filter((old) => attempt.volumes?.some((moved) => moved.name === old.name && moved.claimUID !== old.claimUID))
    .map((old) => ({ volume: old.name, claimUID: old.claimUID, text: `stale@${attempt.epoch}` }));
}

/** The stamps of images whose side holds the right: what a refusal gives back is no longer stale. */
export function stampsOfHolder(record: RightToRun): readonly ImageStamp[] {
  return (record.volumes ?? []).map((volume) => ({
    volume: volume.name,
    claimUID: volume.claimUID,
    text: String(volume.imageEpoch),
  }));
}

/**
 * Whether a machine may be started on an image. Only the very contents that the record names will do: an older copy of
 * a disk boots without complaint, and everything written since is lost.
 */
export function judgeImage(
  recorded: RecordedVolume | undefined,
  image: { readonly claimUID: string; readonly stamp: string | undefined },
): Refusal | undefined {
  if (recorded === undefined) {
    // A volume that no guest has used has no stamp, and needs none.
    if (image.stamp === undefined) return undefined;
    return stale(`its image is stamped "${image.stamp}", but the record does not name the volume`);
  }
  if (recorded.claimUID !== image.claimUID) {
    return stale(`volume ${recorded.name} is on another claim now: ${recorded.claimUID}`);
  }
  if (image.stamp === String(recorded.imageEpoch)) return undefined;
  return stale(
    `the image of volume ${recorded.name} is stamped "${image.stamp ?? ''}", the record says ${recorded.imageEpoch}`,
  );
}

const stale = (message: string): Refusal => ({ code: 'StaleImage', message });
