import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Entry } from '../../src/migration/right-to-run/entry.ts';
import { eventually } from '../support/eventually.ts';
import { claim, probe } from '../support/guest-manifests.ts';
import type { MovingGuests, Side } from '../support/moving-guests.ts';
import { sample } from '../support/sample.ts';
import { say } from '../support/say.ts';
import { type Halves, type Trip, TwoClusters } from '../support/two-clusters.ts';

/**
 * Whoever takes part in a migration from one cluster to another is killed with -9, and the link between them is cut, at every
 * moment of it: a table of moments by blows. The guest is never lost and never runs twice, both halves end alike, and what
 * they say is where the guest is.
 */

vi.setConfig({ testTimeout: 400_000, hookTimeout: 300_000 });

/** How many cells of the table are tried where not all are. */
const SAMPLE = 3;
/** Long enough for streams to be given up. */
const CUT_MS = 12_000;
const NODE = 'node-1';

let clusters: TwoClusters;
beforeAll(async () => {
  clusters = await TwoClusters.start();
  await clusters.exchangeTrust();
  // About two seconds of copying.
  for (const each of clusters.both) await each.policy('paced', { pace: 'slow' }, { bandwidthPerMigration: '12Mi' });
});
afterAll(() => clusters?.stop());

/** A migration under way. */
interface Scene extends Trip {
  readonly halves: Halves;
  readonly home: Side;
}

const passed = (timeMs: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, timeMs));
const atSource =
  (isIt: (entry: Entry) => boolean) =>
  ({ from, home }: Scene): Promise<void> =>
    from.noted(home, isIt);

/** When a blow falls. Those after the copy has begun are told by what an agent has just written down. */
const MOMENTS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  'nobody has heard of it': async () => undefined,
  'its halves have met': ({ to, halves }) =>
    to.reaches(halves.target, 'Pending', 'Scheduling', 'Scheduled', 'PreparingTarget', 'TargetReady', 'Running'),
  'its target is found': (scene) => clusters.targetOf(scene),
  'its target waits for it': ({ from, halves }) => from.reaches(halves.source, 'TargetReady', 'Running'),
  'it is reserved': atSource(({ kind }) => kind === 'reserved'),
  'memory is copied': async ({ from, halves }) => {
    await from.reaches(halves.source, 'Running');
    await passed(500);
  },
  'all of it is over': atSource((entry) => entry.kind === 'machine' && entry.event === 'completed'),
  'it is granted': atSource(({ kind }) => kind === 'granted'),
  'it is taken': async (scene) => scene.to.noted(await clusters.targetOf(scene), ({ kind }) => kind === 'taken'),
  'both know that it is over': async (scene) => clusters.ends(scene, scene.halves),
};

async function restart({ host }: MovingGuests): Promise<void> {
  await host.godwit.kill();
  await host.godwit.start();
}

/** What happens; whoever is killed is started again where nobody else does that. */
const BLOWS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  "the source's synchronization is killed": ({ from }) => from.host.replaceSynchronization(),
  "the target's synchronization is killed": ({ to }) => to.host.replaceSynchronization(),
  "the source's agent is killed": ({ from }) => from.host.replaceAgent(NODE),
  "the target's agent is killed": ({ to }) => to.host.replaceAgent(NODE),
  "the source's control plane is killed": ({ from }) => restart(from),
  "the target's control plane is killed": ({ to }) => restart(to),
  'the link is cut': async () => {
    clusters.wire.cut();
    await passed(CUT_MS);
    clusters.wire.mend();
  },
};

/** All cells of the table. */
function cells(): [moment: string, blow: string][] {
  return Object.keys(MOMENTS).flatMap((moment) => Object.keys(BLOWS).map((blow): [string, string] => [moment, blow]));
}

let made = 0;

/** A guest with a disk, that is about to go to the other cluster: each one in the other direction. */
async function begin(): Promise<Scene> {
  const name = `guest-${made++}`;
  const trip = clusters.trip(name, clusters.both[made % 2] ?? clusters.east);
  const volumes = [{ name: 'data', source: { persistentVolumeClaim: { claimName: name } } }];
  const spec = probe({ memory: '48Mi', arguments: 'mib=24 hz=200 rate=4 write=20', volumes });
  for (const { host } of clusters.both) await host.create(claim(name, 'local', '4Mi'));
  const labels = { pace: 'slow' };
  await trip.from.create(name, spec, labels);
  await clusters.receiver(trip, spec, labels);
  return { ...trip, home: await trip.from.holder(name), halves: await clusters.begin(trip) };
}

describe('a migration between clusters', () => {
  it.each(sample(cells(), SAMPLE))('ends well when, as %s, %s', async (moment, blow) => {
    const scene = await begin();
    const { name, from, to, halves } = scene;
    await MOMENTS[moment]?.(scene);
    await BLOWS[blow]?.(scene);
    const verdict = await clusters.ends(scene, halves);
    const { status } = await from.migration(halves.source);
    say(`${moment}, ${blow}: ${verdict} ${status.migrationState?.failureReason ?? ''}`);

    const isThere = verdict === 'Succeeded';
    expect(await clusters.isWhole(isThere ? to : from, name)).toHaveLength(isThere ? 2 : 1);
    if (isThere) await from.host.isSaidToBe(name, 'Stopped');
    else await to.host.reaches(name, 'WaitingForSync');
    await eventually(() => expect(clusters.qemuCount).toBe(1), 90_000);
    clusters.assertNeverDoubled();
    await clusters.areLetGo(scene, halves);
    for (const each of clusters.both) await each.remove(name);
    await eventually(() => expect(clusters.qemuCount).toBe(0), 90_000);
  });
});
