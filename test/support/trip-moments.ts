import type { Entry } from '../../src/migration/right-to-run/entry.ts';
import type { Side } from './moving-guests.ts';
import type { Halves, Trip, TwoClusters } from './two-clusters.ts';

/** A migration from one cluster to the other that is under way. */
export interface TripScene extends Trip {
  readonly halves: Halves;
  /** Where the guest was before. */
  readonly home: Side;
}

type Moment = (scene: TripScene, clusters: TwoClusters) => Promise<unknown>;

const atSource =
  (isIt: (entry: Entry) => boolean): Moment =>
  ({ from, home }) =>
    from.noted(home, isIt);

export const passed = (timeMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, timeMs));

/** The moments of a trip. Those after the copy has begun are told by what an agent has just written down. */
export const TRIP_MOMENTS = {
  'nobody has heard of it': async () => undefined,
  'its halves have met': ({ to, halves }) =>
    to.reaches(halves.target, 'Pending', 'Scheduling', 'Scheduled', 'PreparingTarget', 'TargetReady', 'Running'),
  'its target is found': (scene, clusters) => clusters.targetOf(scene),
  'its target waits for it': ({ from, halves }) => from.reaches(halves.source, 'TargetReady', 'Running'),
  'it is reserved': atSource(({ kind }) => kind === 'reserved'),
  'memory is copied': async ({ from, halves }) => {
    await from.reaches(halves.source, 'Running');
    await passed(500);
  },
  'all of it is over': atSource((entry) => entry.kind === 'machine' && entry.event === 'completed'),
  'it is granted': atSource(({ kind }) => kind === 'granted'),
  'it is taken': async (scene, clusters) =>
    scene.to.noted(await clusters.targetOf(scene), ({ kind }) => kind === 'taken'),
  'both know that it is over': (scene, clusters) => clusters.ends(scene, scene.halves),
} as const satisfies Readonly<Record<string, Moment>>;

export type TripMoment = keyof typeof TRIP_MOMENTS;

/** Waits for a moment of a trip. */
export function tripIs(moment: TripMoment, scene: TripScene, clusters: TwoClusters): Promise<unknown> {
  const wait: Moment = TRIP_MOMENTS[moment];
  return wait(scene, clusters);
}
