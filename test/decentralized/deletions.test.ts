import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { pacedClusters, setOut } from '../support/paced-trips.ts';
import { sample } from '../support/sample.ts';
import { say } from '../support/say.ts';
import { tripIs, type TripMoment, type TripScene } from '../support/trip-moments.ts';
import type { TwoClusters } from '../support/two-clusters.ts';

/**
 * The machine, the guest alone, or the half of the migration, of either side of one between two clusters is deleted at every
 * moment of it, both halves at once, or the namespace that the guest goes to: a table. Both halves end alike, and the guest is where they say, unless it is the one that was deleted: then it is gone, or started
 * afresh by its machine. A guest that only waits is made anew where it is deleted, and the migration may go on with that one.
 */

vi.setConfig({ testTimeout: 400_000, hookTimeout: 300_000 });

/** How many cells of the table are tried where not all are. */
const SAMPLE = 1;
const PATIENCE_MS = 120_000;

let clusters: TwoClusters;
beforeAll(async () => (clusters = await pacedClusters()));
afterAll(() => clusters?.stop());

/** From the one on at which both halves know each other: before, the one that is left waits for its ten minutes. */
const MOMENTS = [
  'its halves have met',
  'its target is found',
  'its target waits for it',
  'memory is copied',
  'it is granted',
] as const satisfies readonly TripMoment[];
const SIDES = ['source', 'target'] as const;
const BOTH = 'source, and of its target at once,';
const KINDS = ['VirtualMachine', 'VirtualMachineInstance', 'VirtualMachineInstanceMigration'] as const;

const cells = MOMENTS.flatMap((moment) => [
  ...SIDES.flatMap((side) => KINDS.map((kind) => [moment, kind, side] as const)),
  [moment, 'VirtualMachineInstanceMigration', BOTH] as const,
  [moment, 'Namespace', 'target'] as const,
]);
let made = 0;

/** A guest was deleted, and not its machine, which starts it afresh: it is another life. */
async function isAfresh({ name, from }: TripScene, where: TripScene['from']): Promise<void> {
  await eventually(async () => expect((await where.host.lives(name)).boot).not.toBe(from.bootOf(name)), PATIENCE_MS);
}

/** A half that is deleted goes once the other one knows how it ended, and has ended alike. Answers how. */
async function endsWithout(side: (typeof SIDES)[number], { from, to, halves }: TripScene): Promise<string> {
  const [where, other] = side === 'source' ? [from, to] : [to, from];
  const { status } = await other.ends(halves[side === 'source' ? 'target' : 'source']);
  await where.isGone(halves[side]);
  return status.phase;
}

/** Halves that are deleted both go. How they ended is seen by where the guest is. */
async function endsWithoutBoth({ name, from, to, halves }: TripScene): Promise<string> {
  await Promise.all([from.isGone(halves.source), to.isGone(halves.target)]);
  return (await to.host.guest(name))?.status.rightToRun === undefined ? 'Failed' : 'Succeeded';
}

/** How it ended, once all that has to go is gone. */
function verdictOf(
  kind: (typeof cells)[number][1],
  side: (typeof cells)[number][2],
  scene: TripScene,
): Promise<string> {
  if (side === BOTH) return endsWithoutBoth(scene);
  const isWithout = kind === 'VirtualMachineInstanceMigration' || kind === 'Namespace';
  return isWithout ? endsWithout(side, scene) : clusters.ends(scene, scene.halves);
}

async function isNamespaceGone({ host }: TripScene['from'], namespace: string): Promise<void> {
  await eventually(async () => {
    const { status, json } = await host.api.request('GET', `/api/v1/namespaces/${namespace}`);
    expect(status, JSON.stringify(json)).toBe(404);
  }, PATIENCE_MS);
}

describe('a migration between clusters', () => {
  it.each(sample(cells, SAMPLE))('ends alike when, as %s, the %s of its %s is deleted', async (moment, kind, side) => {
    const guest = `guest-${made++}`;
    const namespace = kind === 'Namespace' ? { namespace: guest } : {};
    const scene = await setOut(clusters, guest, { graceSeconds: 1, ...namespace });
    const { name, from, to, halves } = scene;
    await tripIs(moment, scene, clusters);
    const where = side === 'target' ? to : from;
    const deleted = (await where.host.guest(name)).metadata.uid;
    if (side === BOTH) await Promise.all([from.cancel(halves.source), to.cancel(halves.target)]);
    else if (kind === 'VirtualMachineInstanceMigration') await where.cancel(halves[side]);
    else if (kind === 'Namespace') (await to.host.api.request('DELETE', `/api/v1/namespaces/${guest}`)).expect(200);
    else await where.host.delete(kind, name);
    const verdict = await verdictOf(kind, side, scene);
    const isThere = verdict === 'Succeeded';
    say(`${moment}, ${kind} of the ${side}: ${verdict}`);

    const holder = isThere ? to : from;
    // The half of a machine that was deleted may be gone, too.
    const { targetState } = (await from.migration(halves.source))?.status.migrationState ?? {};
    const isOfDeleted = !isThere || targetState?.virtualMachineInstanceUID === deleted;
    const isHit = kind !== 'VirtualMachineInstanceMigration' && holder === where && isOfDeleted;
    const isMachine = kind === 'VirtualMachine' || kind === 'Namespace';
    if (!isHit) expect(await clusters.isWhole(holder, name)).toHaveLength(isThere ? 2 : 1);
    else if (isMachine) await holder.host.isGone(name);
    else await isAfresh(scene, holder);
    // The other side has nothing of it: it is kept, waits again, or is gone.
    if (isThere && !(side === 'source' && isMachine)) await from.host.isSaidToBe(name, 'Stopped');
    else if (!isThere && !(side === 'target' && isMachine)) await to.host.reaches(name, 'WaitingForSync');
    await eventually(() => expect(clusters.qemuCount).toBe(isHit && isMachine ? 0 : 1), PATIENCE_MS);
    await clusters.areLetGo(scene, halves);
    // Nothing of it is held for ever: a namespace goes last of all.
    if (kind === 'Namespace') await isNamespaceGone(to, guest);
    for (const each of clusters.both) await each.remove(name);
  });

  it('never ran its guest twice', () => clusters.assertNeverDoubled());
});
