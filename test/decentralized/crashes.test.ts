import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { claim } from '../support/guest-manifests.ts';
import type { MovingGuests } from '../support/moving-guests.ts';
import { oneLife } from '../support/one-life.ts';
import { pacedClusters, setOut, setOutAgain } from '../support/paced-trips.ts';
import { sample } from '../support/sample.ts';
import { say } from '../support/say.ts';
import { passed, TRIP_MOMENTS, tripIs, type TripMoment, type TripScene } from '../support/trip-moments.ts';
import type { TwoClusters } from '../support/two-clusters.ts';

/**
 * Whoever takes part in a migration from one cluster to another is killed with -9, and the link between them is cut, at every
 * moment of it: a table of moments by blows. The guest is never lost and never runs twice, both halves end alike, and what
 * they say is where the guest is.
 *
 * It is one guest that goes back and forth through all cells, which saves most of what a cell would cost: making it, and two
 * machines with their disks, and removing them again. So each cell begins with what the one before has left behind, and
 * the guest is asked in the end whether all of it was one life.
 */

vi.setConfig({ testTimeout: 400_000, hookTimeout: 300_000 });

/** How many cells of the table are tried where not all are. */
const SAMPLE = 1;
/** By turns: as short as a cable that is plugged in again, and longer than streams are waited for. */
const CUTS_MS = [3000, 17_000];
const NODE = 'node-1';

let clusters: TwoClusters;
beforeAll(async () => (clusters = await pacedClusters()));
afterAll(() => clusters?.stop());

async function restart({ host }: MovingGuests): Promise<void> {
  await host.godwit.kill();
  await host.godwit.start();
}

/** What happens; whoever is killed is started again where nobody else does that. */
const BLOWS: Readonly<Record<string, (scene: TripScene) => Promise<unknown>>> = {
  "the source's synchronization is killed": ({ from }) => from.host.replaceSynchronization(),
  "the target's synchronization is killed": ({ to }) => to.host.replaceSynchronization(),
  "the source's agent is killed": ({ from }) => from.host.replaceAgent(NODE),
  "the target's agent is killed": ({ to }) => to.host.replaceAgent(NODE),
  "the source's control plane is killed": ({ from }) => restart(from),
  "the target's control plane is killed": ({ to }) => restart(to),
  'the link is cut': async () => {
    clusters.wire.cut();
    await passed(CUTS_MS[cuts++ % CUTS_MS.length] ?? 0);
    clusters.wire.mend();
  },
};

const CELLS = (Object.keys(TRIP_MOMENTS) as TripMoment[]).flatMap((moment) =>
  Object.keys(BLOWS).map((blow) => [moment, blow] as const),
);

let cuts = 0;
let made = 0;
/** The guest that goes through all cells, and where it is; there is none before the first, and after one that went wrong. */
let guest: { readonly name: string; readonly where: MovingGuests } | undefined;

/** The guest with its disk is about to go to the other cluster. */
async function begin(): Promise<TripScene> {
  const known = guest;
  guest = undefined;
  if (known) return setOutAgain(clusters, known.name, known.where);
  // What one that went wrong has left is not to be in the way of others; it has failed for that itself.
  if (made > 0) await Promise.allSettled(clusters.both.map((each) => each.remove(`guest-${made - 1}`)));
  const name = `guest-${made++}`;
  for (const { host } of clusters.both) await host.create(claim(name, 'local', '4Mi'));
  const volumes = [{ name: 'data', source: { persistentVolumeClaim: { claimName: name } } }];
  return setOut(clusters, name, { arguments: 'write=20', volumes });
}

describe('a migration between clusters', () => {
  it.each(sample(CELLS, SAMPLE))('ends well when, as %s, %s', async (moment, blow) => {
    const stays = guest ? oneLife(guest.where.bootOf(guest.name), clusters.logs()).length : 1;
    const scene = await begin();
    const { name, from, to, halves } = scene;
    await tripIs(moment, scene, clusters);
    await BLOWS[blow]?.(scene);
    const verdict = await clusters.ends(scene, halves);
    const { status } = await from.migration(halves.source);
    say(`${moment}, ${blow}: ${verdict} ${status.migrationState?.failureReason ?? ''}`);

    const isThere = verdict === 'Succeeded';
    const where = isThere ? to : from;
    expect(await clusters.isWhole(where, name)).toHaveLength(isThere ? stays + 1 : stays);
    if (isThere) await from.host.isSaidToBe(name, 'Stopped');
    else await to.host.reaches(name, 'WaitingForSync');
    await eventually(() => expect(clusters.qemuCount).toBe(1), 90_000);
    await clusters.areLetGo(scene, halves);
    guest = { name, where };
  });

  it('leaves the guest as it was', async () => {
    if (!guest) throw new Error('nothing is known of the guest');
    const { name, where } = guest;
    for (const part of ['memory', 'disk']) expect(await where.host.ask(name, part)).toMatch(/ bad=0\b/);
    clusters.assertNeverDoubled();
  });
});
