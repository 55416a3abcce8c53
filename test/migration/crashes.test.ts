import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Entry } from '../../src/migration/right-to-run/entry.ts';
import { eventually } from '../support/eventually.ts';
import { claim, probe } from '../support/guest-manifests.ts';
import { MovingGuests, type Side, type Sides } from '../support/moving-guests.ts';
import { PostCopyOffer } from '../support/post-copy.ts';
import { sample } from '../support/sample.ts';
import { say } from '../support/say.ts';

/**
 * Whoever takes part in a migration is killed with -9, at every moment of it: a table of moments by victims. The guest is
 * never lost by an agent or by the control plane, never runs twice, and the migration ends with one verdict, which is the
 * truth. A QEMU that is killed takes the guest along if it was the one that had it; then the guest starts afresh.
 */

vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });

/** How many cells of the table are tried where not all are. */
const SAMPLE = 2;
/** A guest that speaks every 20 ms, and has not for so long, stands still. */
const SILENCE_MS = 70;
const NODES = ['node-1', 'node-2'];

/** The guest has gone ahead, and its memory follows. */
const AHEAD = 'its memory follows it';

let guests: MovingGuests;
let postCopy: PostCopyOffer;
beforeAll(async () => {
  postCopy = new PostCopyOffer();
  guests = await MovingGuests.start({ nodes: NODES.length });
  await guests.configure({}, ['MigrationDowntimeTuning']);
  // About two seconds of copying.
  await guests.policy('paced', { pace: 'slow' }, { bandwidthPerMigration: '12Mi' });
  const ahead = { bandwidthPerMigration: '4Mi', maxDowntimeMs: 30, completionTimeoutPerGiB: 14, allowPostCopy: true };
  await guests.policy('ahead', { pace: 'ahead' }, ahead);
});
afterAll(async () => {
  await guests.stop();
  postCopy.withdraw();
});

/** A migration under way. */
interface Scene {
  readonly name: string;
  readonly migration: string;
  readonly home: Side;
}

/** When a blow falls. Those after the copy has begun are told by what an agent has just written down. */
const MOMENTS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  'it waits': ({ migration }) =>
    guests.reaches(migration, 'Synchronizing', 'Pending', 'Scheduling', 'Scheduled', 'PreparingTarget'),
  'its target is found': ({ name }) => guests.sides(name),
  'its target waits for it': ({ migration }) => guests.reaches(migration, 'TargetReady', 'Running'),
  'it is reserved': (scene) => noted(scene, 'source', (entry) => entry.kind === 'reserved'),
  'memory is copied': async ({ migration }) => {
    await guests.reaches(migration, 'Running');
    await new Promise((resolve) => setTimeout(resolve, 500));
  },
  'the guest stands still': async ({ name, migration }) => {
    await guests.reaches(migration, 'Running');
    while (guests.times.silentForMs(guests.bootOf(name)) < SILENCE_MS)
      await new Promise((resolve) => setTimeout(resolve, 1));
  },
  'all of it is over': (scene) =>
    noted(scene, 'source', (entry) => entry.kind === 'machine' && entry.event === 'completed'),
  'it is granted': (scene) => noted(scene, 'source', (entry) => entry.kind === 'granted'),
  'it is taken': (scene) => noted(scene, 'target', (entry) => entry.kind === 'taken'),
  [AHEAD]: (scene) => noted(scene, 'target', (entry) => entry.kind === 'taken'),
};

/** Who is killed, and started again where nobody else does that. */
const VICTIMS: Readonly<Record<string, (scene: Scene, sides: Sides | undefined) => Promise<unknown>>> = {
  'the control plane': async () => {
    await guests.host.godwit.kill();
    await guests.host.godwit.start();
  },
  "the source's agent": ({ home }) => guests.host.replaceAgent(home.node),
  "the target's agent": ({ home }) => guests.host.replaceAgent(NODES.find((node) => node !== home.node) ?? ''),
  'every agent': () => Promise.all(NODES.map((node) => guests.host.replaceAgent(node))),
  'QEMU at the target': async (_, sides) => sides && killQemu(sides.target),
  'QEMU at the source': async ({ home }) => killQemu(home),
};

async function noted({ name }: Scene, side: keyof Sides, isIt: (entry: Entry) => boolean): Promise<void> {
  const sides = await guests.sides(name);
  await guests.noted(sides[side], isIt);
}

function killQemu({ node, podUID }: Side): void {
  try {
    process.kill(guests.host.qemuIn(node, podUID), 'SIGKILL');
  } catch {
    // It is not there yet, or there no more.
  }
}

/** All cells of the table. */
function cells(): [moment: string, victim: string][] {
  return Object.keys(MOMENTS).flatMap((moment) =>
    Object.keys(VICTIMS).map((victim): [string, string] => [moment, victim]),
  );
}

let made = 0;

/** A guest with a disk, that is about to move, before its memory does or together with it. */
async function begin(isAhead: boolean): Promise<Scene> {
  const name = `guest-${made++}`;
  await guests.host.create(claim(name, 'shared', '4Mi'));
  const volumes = [{ name: 'data', source: { persistentVolumeClaim: { claimName: name } } }];
  const work = `mib=24 hz=200 rate=${isAhead ? 12 : 4} write=20`;
  await guests.create(name, probe({ memory: '48Mi', arguments: work, volumes }), { pace: isAhead ? 'ahead' : 'slow' });
  const home = await guests.holder(name);
  return { name, migration: await guests.ask(name), home };
}

describe('a migration', () => {
  it.each(sample(cells(), SAMPLE))('ends well when, as %s, %s is killed', async (moment, victim) => {
    if (moment === AHEAD && !postCopy.isPossible) return say('left out: nobody here may do post-copy');
    const scene = await begin(moment === AHEAD);
    const { name, migration } = scene;
    await MOMENTS[moment]?.(scene);
    await VICTIMS[victim]?.(scene, await guests.sidesNow(name));
    const { status } = await eventually(() => guests.ends(migration), 90_000);
    say(`${moment}, ${victim}: ${status.phase} ${status.migrationState?.failureReason ?? ''}`);

    if (victim.startsWith('QEMU')) await guests.host.lives(name);
    else {
      const stays = await guests.isWhole(name);
      expect(stays.at(-1)?.place).toBe((await guests.holder(name)).podUID);
      expect(stays).toHaveLength(status.phase === 'Succeeded' ? 2 : 1);
      if (moment === AHEAD) expect(status.migrationState.mode).toBe('PostCopy');
    }
    await eventually(() => expect(guests.host.qemus()).toHaveLength(1), 90_000);
    guests.host.assertNeverDoubled();
    await guests.host.nodesAreReady(NODES.length);
    await guests.remove(name);
  });
});
