import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import { type Attempt, epochOfTake, type ImagePlace } from './attempt.ts';
import type { Refusal, Step } from './plan.ts';

/**
 * Which image of a volume has its true contents. A guest whose volume goes to another claim leaves an image behind that
 * boots without complaint, and everything that was written since would be lost. So each image of a claim bears a stamp:
 *
 *   current@n     the contents came here in epoch n of the machine
 *   receiving@n   a migration in epoch n fills it: it has nothing that could be relied on
 *   stale@n       the guest left it behind when it was granted away in epoch n
 *
 * The record says of each volume which claim has its contents, and in which epoch that was last certain: when its guest
 * was started there, or came there. That decides: a stamp of before is overtaken, be it that the writer of the next one
 * died first, or that the writer of this one was late.
 *
 *   a grant        granted is journaled, then the images are stale, then the successor hears of it
 *   a take         taken is journaled, the guest goes on, then the images are current, then the record says so
 *   a refusal      the images are current again, then regained is journaled: nobody can take what was refused
 *
 * A source that dies before its images are stale has told nobody, and stamps them when it is back.
 */

/** What is written beside an image. */
export interface ImageStamp {
  readonly state: 'current' | 'receiving' | 'stale';
  /** An epoch of the machine `vm`. */
  readonly epoch: number;
  /** UID of the virtual machine whose disk it is. */
  readonly vm: string;
  /** Namespace and name of its guest, for people. */
  readonly guest: string;
  /** Of a stale one: where the contents are now, in words. */
  readonly wentTo?: string;
  /** Of one that is being received: UID of the migration that fills it. */
  readonly migrationUID?: string;
}

/** A stamp as it was found: `blank` where there is room for one, and `absent` where there is not even that. */
export type SeenStamp = ImageStamp | 'blank' | 'absent' | 'damaged';

/** An image that a machine is to be started on. */
export interface SeenImage extends ImagePlace {
  readonly stamp: SeenStamp;
  /** Whether its stamp is beside it, for every node that reaches it; else only this node knows. */
  readonly isBeside: boolean;
  readonly isReadOnly?: boolean;
  /** The stamp in spite of which the claim's owner wants the image to be used. */
  readonly accepted?: string | undefined;
}

type Volumes = RightToRun['volumes'];

/** What a stamp is called, by people and by those who accept it: no two images of a claim share a name. */
export function stampName(stamp: SeenStamp, recordedEpoch = 0): string {
  if (stamp === 'absent') return `none@${recordedEpoch}`;
  if (typeof stamp === 'string') return stamp;
  return `${stamp.state}@${stamp.epoch}-${stamp.vm.slice(0, 8)}`;
}

/** What is wrong with an image: a sentence without its full stop, and the name by which it can be accepted. */
export interface Objection {
  readonly message: string;
  readonly name: string;
}

/**
 * Whether the machine `vm` may be started on an image, going by what its records say. An image that no guest has used has
 * no stamp and needs none; nor does it matter which machine has used one that is current.
 */
export function judgeImage(
  { claim, stamp }: Pick<SeenImage, 'claim' | 'stamp'>,
  vm: string,
  ...records: readonly Volumes[]
): Objection | undefined {
  const recordedEpoch = epochOf(claim.uid, records);
  const message = complaint(stamp, vm, recordedEpoch);
  return message === undefined ? undefined : { message, name: stampName(stamp, recordedEpoch) };
}

/** When it was last certain that the claim has the contents, as far as anybody remembers; 0 where it never was. */
function epochOf(claimUID: string, records: readonly Volumes[]): number {
  const epochs = records.flatMap((volumes) => volumes ?? []).filter((volume) => volume.claimUID === claimUID);
  return Math.max(0, ...epochs.map(({ imageEpoch }) => imageEpoch));
}

function complaint(stamp: SeenStamp, vm: string, recordedEpoch: number): string | undefined {
  if (stamp === 'blank') return undefined;
  if (stamp === 'damaged') return 'its stamp cannot be read';
  if (stamp === 'absent') {
    return recordedEpoch === 0 ? undefined : 'it is not the image that the guest had: maybe its storage is not mounted';
  }
  const isOvertaken = stamp.vm === vm && recordedEpoch > stamp.epoch;
  if (stamp.state === 'current' || isOvertaken) return undefined;
  return stamp.state === 'stale'
    ? `it is an old copy, which ${stamp.guest} left for ${stamp.wentTo ?? 'another one'}`
    : `it is a copy of a disk of ${stamp.guest} that was not finished`;
}

/** What people read of an objection, with what they can do about it. */
export function objectionText({ message, name }: Objection, claim: string, namespace: string): string {
  const command = `kubectl annotate pvc ${claim} -n ${namespace} --overwrite ${USE_IMAGE}=${name}`;
  return `no guest is started on the image of claim ${claim}: ${message} (${name}); to use it all the same: ${command}`;
}

/** On a claim: its image may be used in spite of this stamp. */
export const USE_IMAGE = 'godwit.dev/use-image';

/** What is wrong with the images that a machine is to be started on; undefined for nothing. */
export function judgeImages(
  images: readonly SeenImage[],
  { vm, namespace }: { readonly vm: string; readonly namespace: string },
  ...records: readonly Volumes[]
): Refusal | undefined {
  for (const image of images) {
    const objection = judgeImage(image, vm, ...records);
    if (objection === undefined || objection.name === image.accepted) continue;
    const text = objectionText(objection, image.claim.name, namespace);
    return { code: 'StaleImage', message: `volume ${image.volume}: ${text}` };
  }
  return undefined;
}

/** The volumes of a guest that starts in an epoch, for its record. */
export function volumesOfStart(images: readonly SeenImage[], epoch: number): Volumes {
  const own = images.filter(({ isReadOnly }) => isReadOnly !== true);
  if (own.length === 0) return undefined;
  return own.map((image) => ({
    name: image.volume,
    claimUID: image.claim.uid,
    imageEpoch: image.isBeside ? epoch : 0,
  }));
}

/** The stamps of a guest that starts: its disks are its own, and true. */
export function stampsOfStart(images: readonly SeenImage[], vm: string, epoch: number): Step[] {
  const fresh = images.filter(({ isReadOnly, stamp }) => isReadOnly !== true && !isCurrent(stamp, vm));
  return stamps(
    fresh.map(({ volume, claim, path }) => ({ volume, claim, path })),
    'current',
    epoch,
  );
}

function isCurrent(stamp: SeenStamp, vm: string): boolean {
  return typeof stamp === 'object' && stamp.state === 'current' && stamp.vm === vm;
}

/** The images that a grant leaves behind. */
export const stampsOfGrant = ({ images, epoch }: Attempt): Step[] => stamps(images, 'stale', epoch);

/** The images that are about to be filled, before the epoch in which they may be taken. */
export const stampsOfReceiving = (attempt: Attempt): Step[] =>
  stamps(attempt.images, 'receiving', epochOfTake(attempt) - 1, attempt.targetMigrationUID);

/** The images that were filled, and taken. */
export const stampsOfTake = (attempt: Attempt): Step[] => stamps(attempt.images, 'current', epochOfTake(attempt));

/** The images that a refusal gives back. */
export const stampsOfRefusal = ({ images, epoch }: Attempt): Step[] => stamps(images, 'current', epoch + 1);

function stamps(
  images: readonly ImagePlace[] | undefined,
  state: ImageStamp['state'],
  epoch: number,
  migrationUID?: string,
): Step[] {
  if (images === undefined || images.length === 0) return [];
  const by = migrationUID === undefined ? {} : { migrationUID };
  return [{ kind: 'stamp', stamps: images.map((image) => ({ image, state, epoch, ...by })) }];
}

/** The volumes of a target once it has taken: those that are filled came with it, and all others are where they were. */
export function volumesOfTarget(
  images: readonly (Pick<SeenImage, 'volume' | 'claim' | 'isBeside'> & { readonly isFilled: boolean })[],
  recorded: Volumes,
  attempt: Attempt,
): Volumes {
  return images.flatMap(({ volume, claim, isBeside, isFilled }) => {
    if (isFilled) return [{ name: volume, claimUID: claim.uid, imageEpoch: isBeside ? epochOfTake(attempt) : 0 }];
    return (recorded ?? []).filter(({ claimUID }) => claimUID === claim.uid);
  });
}
