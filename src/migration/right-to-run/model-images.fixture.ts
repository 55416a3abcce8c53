import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import type { Attempt, ImagePlace } from './attempt.ts';
import { judgeImage, type SeenImage, type SeenStamp } from './image-stamps.ts';
import { isEqual } from './model-identity.fixture.ts';
import type { Step } from './plan.ts';

/** The images of a volume in the model: `first`, which the guest is on, and `second`, which it goes to. */

type ImageName = 'first' | 'second';

/**
 * Which of them a guest that starts cold is started on: the one that the record names, as the machine's controller has
 * it, or the first in any case, since somebody wants it back.
 */
export type StartsOn = 'first' | 'the recorded';

export interface ModelImage {
  readonly stamp: SeenStamp;
  /** What only an onlooker knows. */
  readonly contents: 'none' | 'old' | 'newest';
}

/** What of images is in the world. */
export interface ModelImages {
  readonly first: ModelImage;
  readonly second: ModelImage;
  readonly startsOn: StartsOn;
  /** Whether its owner wants that though its image is refused. */
  readonly isAccepted: boolean;
}

type SideName = 'a' | 'b' | 'c';
const SIDES: readonly SideName[] = ['a', 'b', 'c'];

/** What of the world matters to images. */
interface Imaged {
  readonly record: RightToRun | undefined;
  readonly sides: { readonly [name in SideName]: { readonly machine: { readonly state: string } } };
  readonly images: ModelImages | undefined;
  readonly crime: string | undefined;
}

export const MACHINE_UID = 'the machine';
const STRANGER_UID = 'another one';
const NAMES: readonly ImageName[] = ['first', 'second'];
const MIGRATION_UID = 'm';

export const firstVolumes = (imageEpoch: number): RightToRun['volumes'] => [
  { name: 'root', claimUID: 'first', imageEpoch },
];

const placeOf = (name: ImageName): ImagePlace => ({ volume: 'root', claim: { name, uid: name }, path: name });

export function firstImages(startsOn: StartsOn): ModelImages {
  const stamp = { state: 'current', epoch: 1, vm: MACHINE_UID, guest: '' } as const;
  return {
    first: { stamp, contents: 'newest' },
    second: { stamp: 'blank', contents: 'none' },
    startsOn,
    isAccepted: false,
  };
}

/** What an attempt says of images, on either side. */
export function imagesOfAttempt(world: Imaged, side: 'a' | 'b'): Pick<Attempt, 'images' | 'volumes'> {
  if (world.images === undefined) return {};
  return side === 'a'
    ? { images: [placeOf('first')] }
    : { images: [placeOf('second')], volumes: [{ name: 'root', claimUID: 'second', imageEpoch: 2 }] };
}

function imageOf({ images, record }: Imaged, side: SideName): ImageName {
  if (side !== 'c') return side === 'a' ? 'first' : 'second';
  const isSecond = images?.startsOn === 'the recorded' && record?.volumes?.[0]?.claimUID === 'second';
  return isSecond ? 'second' : 'first';
}

/** The image that a side would start on, as its agent sees it. */
export function seenImage(world: Imaged, side: SideName): SeenImage | undefined {
  const { images, record } = world;
  if (images === undefined) return undefined;
  const name = imageOf(world, side);
  const { stamp } = images[name];
  const objection = judgeImage({ ...placeOf(name), stamp }, MACHINE_UID, record?.volumes);
  return { ...placeOf(name), stamp, isBeside: true, accepted: images.isAccepted ? objection?.name : undefined };
}

function withImage<World extends Imaged>(world: World, name: ImageName, change: Partial<ModelImage>): World {
  const { images } = world;
  if (images === undefined) return world;
  const image = { ...images[name], ...change };
  return isEqual(image, images[name]) ? world : { ...world, images: { ...images, [name]: image } };
}

/** Undefined where nothing changes. */
export function stamped<World extends Imaged>(world: World, step: Extract<Step, { kind: 'stamp' }>): World | undefined {
  let next = world;
  for (const { image, ...stamp } of step.stamps)
    next = withImage(next, image.claim.uid as ImageName, { stamp: { ...stamp, vm: MACHINE_UID, guest: '' } });
  return next.images === world.images ? undefined : next;
}

/** The image that a copy was to fill goes, if it still is that. */
export function discarded<World extends Imaged>(world: World): World | undefined {
  const stamp = world.images?.second.stamp;
  const isReceived = typeof stamp === 'object' && stamp.state === 'receiving' && stamp.migrationUID === MIGRATION_UID;
  return isReceived ? withImage(world, 'second', { stamp: 'absent', contents: 'none' }) : undefined;
}

/** A copy begins to fill the second image. */
export const fillingBegun = <World extends Imaged>(world: World): World =>
  withImage(world, 'second', { contents: 'old' });

/** All of the first image is in the second one, and the guest stands still. */
export const filled = <World extends Imaged>(world: World): World => withImage(world, 'second', { contents: 'newest' });

/** Whoever executes the guest writes to its own image, and to no other. */
export function written<World extends Imaged>(world: World): World {
  const { images } = world;
  if (images === undefined) return world;
  let next = world;
  for (const side of SIDES) {
    if (world.sides[side].machine.state !== 'running') continue;
    const own = imageOf(world, side);
    if (images[own].contents !== 'newest' && !images.isAccepted)
      next = { ...next, crime: `${side} executes the guest on an image that is ${images[own].contents}` };
    for (const name of NAMES) {
      const { contents } = images[name];
      next = withImage(next, name, { contents: name === own ? 'newest' : contents === 'none' ? 'none' : 'old' });
    }
  }
  return next;
}

/** What is wrong with the stamps, whatever else is going on. */
export function judgeStamps({ images }: Imaged): string | undefined {
  if (images === undefined || images.isAccepted) return undefined;
  const usable = NAMES.find((name) => {
    const { stamp, contents } = images[name];
    return contents === 'old' && judgeImage({ ...placeOf(name), stamp }, STRANGER_UID) === undefined;
  });
  return usable && `the ${usable} image is an old copy, and anybody could start on it`;
}

/** What is wrong with the image of whoever executes the guest, once all is at rest. */
export function judgeRest(world: Imaged, holder: SideName): string | undefined {
  const { images, record } = world;
  if (images === undefined) return undefined;
  const name = imageOf(world, holder);
  const { stamp } = images[name];
  const objection = judgeImage({ ...placeOf(name), stamp }, MACHINE_UID, record?.volumes);
  return objection && `the guest could not be started again on its image, ${name}: ${objection.message}`;
}

/** Where nothing but an image that is refused is in the way of a start: its owner says that it will do. */
export function accepted<World extends Imaged>(world: World, isRefused: boolean): World | undefined {
  const { images } = world;
  return images && isRefused && !images.isAccepted ? { ...world, images: { ...images, isAccepted: true } } : undefined;
}
