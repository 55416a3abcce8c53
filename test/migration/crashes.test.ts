import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Entry } from '../../src/migration/right-to-run/entry.ts';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { claim, probe } from '../support/guest-manifests.ts';
import { leftOut } from '../support/left-out.ts';
import { MovingGuests, type Side, type Sides } from '../support/moving-guests.ts';
import { PostCopyOffer } from '../support/post-copy.ts';
import { sample } from '../support/sample.ts';
import { say } from '../support/say.ts';

/**
 * Whoever takes part in a migration is killed with -9, at every moment of it: a table of moments by victims. The guest is
 * never lost by an agent or by the control plane, never runs twice, and the migration ends with one verdict, which is the
 * truth. A QEMU that is killed takes the guest along if it was the one that had it; then the guest starts afresh. One that
 * waits for the guest takes nothing along.
 */

vi.setConfig({ testTimeout: 240_000, hookTimeout: 180_000 });

/** How many cells of the table are tried where not all are. */
const SAMPLE = 2;
/** A guest that speaks every 20 ms, and has not for so long, stands still. */
const SILENCE_MS = 70;
const NODES = ['node-1', 'node-2'];

/** The guest has gone ahead, and its memory follows. */
const AHEAD = 'its memory follows it';
/** The guest has a disk that does not stay where it is, and part of it has arrived. */
const DISK = 'its disk is copied';
const WAITS = 'it waits';
const QEMU_AT = { target: 'QEMU at the target', source: 'QEMU at the source' };
/** The volume that does not stay. */
const OWN = 'own';

let guests: MovingGuests;
let postCopy: PostCopyOffer;
beforeAll(async () => {
  postCopy = new PostCopyOffer();
  guests = await MovingGuests.start({ nodes: NODES.length });
  await guests.configure({}, ['MigrationDowntimeTuning']);
  // About two seconds of copying.
  await guests.policy('paced', { pace: 'slow' }, { bandwidthPerMigration: '12Mi' });
  const ahead = { bandwidthPerMigration: '4Mi', maxDowntimeMs: 1, completionTimeoutPerGiB: 14, allowPostCopy: true };
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
  [WAITS]: ({ migration }) =>
    guests.reaches(migration, 'Synchronizing', 'Pending', 'Scheduling', 'Scheduled', 'PreparingTarget'),
  'its target is found': ({ name }) => guests.sides(name),
  'its target waits for it': ({ migration }) => guests.reaches(migration, 'TargetReady', 'Running'),
  'it is reserved': (scene) => noted(scene, 'source', (entry) => entry.kind === 'reserved'),
  [DISK]: async ({ name }) => guests.holds((await guests.sides(name)).target, OWN),
  'memory is copied': async ({ migration }) => {
    await guests.reaches(migration, 'Running');
    await new Promise((resolve) => setTimeout(resolve, 500));
  },
  'the guest stands still': async ({ name, migration }) => {
    await guests.reaches(migration, 'Running');
    // It may have stood still for less, or while nobody looked: then the blow falls after it.
    while (guests.times.silentForMs(guests.bootOf(name)) < SILENCE_MS && !guests.isOver(migration))
      await new Promise((resolve) => setTimeout(resolve, 1));
  },
  'all of it is over': (scene) =>
    noted(scene, 'source', (entry) => entry.kind === 'machine' && entry.event === 'completed'),
  'it is granted': (scene) => noted(scene, 'source', (entry) => entry.kind === 'granted'),
  'it is taken': (scene) => noted(scene, 'target', (entry) => entry.kind === 'taken'),
  [AHEAD]: (scene) => noted(scene, 'target', (entry) => entry.kind === 'taken'),
};

/** The moments by which the guest may have been granted to its target: a machine may have it, or have it no more. */
const LATE = new Set(['the guest stands still', 'all of it is over', 'it is granted', 'it is taken', AHEAD]);

/** Who is killed, and started again where nobody else does that. False where there was nobody left to kill. */
const VICTIMS: Readonly<Record<string, (scene: Scene) => Promise<unknown>>> = {
  'the control plane': async () => {
    await guests.host.godwit.kill();
    await guests.host.godwit.start();
  },
  "the source's agent": ({ home }) => guests.host.replaceAgent(home.node),
  "the target's agent": ({ home }) => guests.host.replaceAgent(NODES.find((node) => node !== home.node) ?? ''),
  'every agent': () => Promise.all(NODES.map((node) => guests.host.replaceAgent(node))),
  // It is started for the migration, and stays: where it is not there yet, it is waited for.
  [QEMU_AT.target]: async ({ name }) => {
    const { target } = await guests.sides(name);
    expect(await eventually(() => killQemu(target) || expect.unreachable('no QEMU waits for the guest'))).toBe(true);
  },
  [QEMU_AT.source]: async ({ home }) => killQemu(home),
};

async function noted({ name }: Scene, side: keyof Sides, isIt: (entry: Entry) => boolean): Promise<void> {
  const sides = await guests.sides(name);
  await guests.noted(sides[side], isIt);
}

/** Whether there was a QEMU to kill. */
function killQemu({ node, podUID }: Side): boolean {
  try {
    const pid = guests.host.qemuIn(node, podUID);
    if (!(pid > 0)) return false;
    return process.kill(pid, 'SIGKILL');
  } catch (error) {
    // It is not there yet, or there no more: its files go when it is gone.
    if (['ENOENT', 'ESRCH'].includes((error as NodeJS.ErrnoException).code ?? '')) return false;
    throw error;
  }
}

/** All cells of the table in which there is somebody to kill. */
function cells(): [moment: string, victim: string][] {
  return Object.keys(MOMENTS).flatMap((moment) =>
    Object.keys(VICTIMS)
      .filter((victim) => moment !== WAITS || victim !== QEMU_AT.target)
      .map((victim): [string, string] => [moment, victim]),
  );
}

let made = 0;

/** A guest with a disk, that is about to move, before its memory does or together with it. */
async function begin(moment: string): Promise<Scene> {
  const name = `guest-${made++}`;
  const isAhead = moment === AHEAD;
  if (moment !== DISK) await guests.host.create(claim(name, 'shared', '4Mi'));
  const source = moment === DISK ? { emptyDisk: { capacity: '64Mi' } } : { persistentVolumeClaim: { claimName: name } };
  const volumes = [{ name: moment === DISK ? OWN : 'data', source }];
  const work = `mib=24 hz=200 rate=${isAhead ? 12 : 4} write=${moment === DISK ? '1 blocks=4096' : 20}`;
  await guests.create(name, probe({ memory: '48Mi', arguments: work, volumes }), { pace: isAhead ? 'ahead' : 'slow' });
  const home = await guests.holder(name);
  // So much that some of it has gone over while the rest has not.
  if (moment === DISK) await guests.holds(home, OWN, 8);
  return { name, migration: await guests.ask(name), home };
}

/** The guest is the one that was started: it went over, or stayed, as the verdict says. */
async function expectWhole({ name }: Scene, phase: string): Promise<void> {
  const stays = await guests.isWhole(name);
  expect(stays.at(-1)?.place).toBe((await guests.holder(name)).podUID);
  expect(stays).toHaveLength(phase === 'Succeeded' ? 2 : 1);
}

/** Another boot of it lives. */
async function expectAfresh({ name }: Scene): Promise<void> {
  await eventually(async () => expect((await guests.host.lives(name)).boot).not.toBe(guests.bootOf(name)), 90_000);
}

/**
 * What has become of a guest one of whose machines was killed. Before the grant it was the source's: it dies with that one,
 * and with that one alone. Later either may have been the one that had it; whoever lost nothing by it has the guest still.
 */
async function expectAfterQemu(scene: Scene, moment: string, victim: string, status: Anything): Promise<void> {
  const { phase, migrationState } = status;
  if (phase === 'Failed') expect(migrationState?.failureReason ?? '', JSON.stringify(status)).not.toBe('');
  if (!LATE.has(moment)) {
    expect(phase).toBe('Failed');
    return victim === QEMU_AT.target ? expectWhole(scene, phase) : expectAfresh(scene);
  }
  // In post-copy the guest needs both until all of its memory is there.
  if (moment === AHEAD) return eitherOf(scene, phase);
  const isSpared = victim === QEMU_AT.target ? phase === 'Failed' : phase === 'Succeeded';
  return isSpared ? expectWhole(scene, phase) : expectAfresh(scene);
}

async function eitherOf(scene: Scene, phase: string): Promise<void> {
  await guests.followsRight(scene.name);
  const { boot } = await guests.host.lives(scene.name);
  return boot === guests.bootOf(scene.name) ? expectWhole(scene, phase) : expectAfresh(scene);
}

describe('a migration', () => {
  it.each(sample(cells(), SAMPLE))('ends well when, as %s, %s is killed', async (moment, victim) => {
    if (moment === AHEAD && !postCopy.isPossible) return leftOut('nobody here may do post-copy');
    const scene = await begin(moment);
    const { name, migration } = scene;
    await MOMENTS[moment]?.(scene);
    const isKilled = (await VICTIMS[victim]?.(scene)) !== false;
    const { status } = await eventually(() => guests.ends(migration), 90_000);
    const verdict = `${status.phase} ${status.migrationState?.failureReason ?? ''}`;
    say(`${moment}, ${victim}${isKilled ? '' : ' (who was gone already)'}: ${verdict}`);

    if (isKilled && victim.startsWith('QEMU')) await expectAfterQemu(scene, moment, victim, status);
    else {
      await expectWhole(scene, status.phase);
      if (moment === AHEAD) expect(status.migrationState.mode).toBe('PostCopy');
    }
    await eventually(() => expect(guests.host.qemus()).toHaveLength(1), 90_000);
    guests.host.assertNeverDoubled();
    await guests.host.nodesAreReady(NODES.length);
    await guests.remove(name);
  });
});
