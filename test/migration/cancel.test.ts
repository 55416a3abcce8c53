import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { probe } from '../support/guest-manifests.ts';
import { leftOut } from '../support/left-out.ts';
import { MovingGuests, type Sides } from '../support/moving-guests.ts';
import { PostCopyOffer } from '../support/post-copy.ts';
import { IS_PAIRED, someOf } from '../support/sample.ts';
import { say } from '../support/say.ts';

/** A migration that is deleted is called off, whatever it is doing; the guest goes on where it is. */

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let guests: MovingGuests;
let postCopy: PostCopyOffer;
beforeAll(async () => {
  postCopy = new PostCopyOffer();
  guests = await MovingGuests.start({ nodes: 2 });
  await guests.configure({}, ['MigrationDowntimeTuning']);
  await guests.policy('endless', { pace: 'endless' }, { bandwidthPerMigration: '1Mi', maxDowntimeMs: 1 });
  await guests.create('guest', probe({ memory: '48Mi', arguments: 'mib=24 hz=200 rate=20' }), { pace: 'endless' });
});
afterAll(async () => {
  await guests.stop();
  postCopy.withdraw();
});

/** Called off once it is in this phase, or would have been. */
async function expectCalledOff(migration: string): Promise<void> {
  await guests.cancel(migration);
  await guests.isGone(migration);
  const stays = await guests.isWhole('guest');
  expect(stays).toHaveLength(1);
  await eventually(() => expect(guests.host.qemus()).toHaveLength(1), 60_000);
  const { status, metadata } = await guests.host.guest('guest');
  expect(status.rightToRun.successor).toBeUndefined();
  expect(metadata.labels['kubevirt.io/migrationTargetNodeName']).toBeUndefined();
}

describe('a migration is called off', () => {
  beforeEach(() => guests.configure({ parallelMigrationsPerCluster: 5 }));

  it('while it waits for its turn', async () => {
    await guests.configure({ parallelMigrationsPerCluster: 0 });
    const migration = await guests.ask('guest');
    await guests.reaches(migration, 'Pending');
    await expectCalledOff(migration);
  });

  it('while no node fits', async () => {
    const migration = await guests.ask('guest', { addedNodeSelector: { zone: 'moon' } });
    await guests.reaches(migration, 'Pending', 'Scheduling');
    await expectCalledOff(migration);
  });

  it('while its target does not answer', async () => {
    const { node } = await guests.holder('guest');
    const target = node === 'node-1' ? 'node-2' : 'node-1';
    const resume = await guests.host.holdAgent(target);
    const migration = await guests.ask('guest');
    await guests.reaches(migration, 'Scheduling', 'Scheduled');
    await guests.cancel(migration);
    await guests.isGone(migration);
    resume();
    await expectCalledOff(migration);
  });

  it('while its source does not answer', async () => {
    const { node } = await guests.holder('guest');
    const resume = await guests.host.holdAgent(node);
    const migration = await guests.ask('guest');
    // Of a pair it has its slot by then, and the other one waits to hear from it what its disks are like.
    await guests.reaches(migration, IS_PAIRED ? 'Scheduling' : 'TargetReady');
    await guests.cancel(migration);
    resume();
    await expectCalledOff(migration);
  });

  it('while memory is copied', async () => {
    const migration = await guests.ask('guest');
    await guests.reaches(migration, 'Running');
    await expectCalledOff(migration);
    await guests.host.told('guest', /aborted|canceled/i);
  });

  it('by whoever uses the command', async () => {
    const migration = await guests.ask('guest');
    await guests.reaches(migration, 'Running');
    await guests.host.cli('migrate-cancel', 'guest');
    await expectCalledOff(migration);
  });

  it('and the guest can still move', async () => {
    await guests.host.api.request('DELETE', '/apis/migrations.kubevirt.io/v1alpha1/migrationpolicies/endless');
    await guests.move('guest');
    expect(await guests.isWhole('guest')).toHaveLength(2);
  });
});

describe('a migration that is further on its way is called off', () => {
  const test = someOf(4, 1);
  /** Of pairs there is a table. */
  const PAIRED_ELSEWHERE = 'left out: test/decentralized/deletions.test.ts cancels pairs at each moment';
  const NAMES = ['guest', 'disked'];

  /** Beside the guest, which moves at once by now, there is another one on its node, which never gets anywhere. */
  beforeAll(async () => {
    if (IS_PAIRED) return;
    await guests.policy('slow', { pace: 'slow' }, { bandwidthPerMigration: '1Mi', maxDowntimeMs: 1 });
    const other = (await guests.holder('guest')).node === 'node-1' ? 'node-2' : 'node-1';
    await guests.host.kubectl.ok(`cordon ${other}`);
    const volumes = [{ name: 'own', source: { emptyDisk: { capacity: '64Mi' } } }];
    const work = 'mib=24 hz=200 rate=20 write=1 blocks=4096';
    await guests.create('disked', probe({ memory: '48Mi', arguments: work, volumes }), { pace: 'slow' });
    await guests.host.kubectl.ok(`uncordon ${other}`);
  });
  afterAll(async () => {
    if (!IS_PAIRED) await guests.remove('disked');
  });

  const staysOf = async (): Promise<number[]> => {
    const stays: number[] = [];
    for (const name of NAMES) stays.push((await guests.isWhole(name)).length);
    return stays;
  };

  async function expectAllStayed(before: readonly number[]): Promise<void> {
    expect(await staysOf()).toEqual(before);
    await eventually(() => expect(guests.host.qemus()).toHaveLength(NAMES.length), 60_000);
    for (const name of NAMES) expect((await guests.host.guest(name)).status.rightToRun.successor, name).toBeUndefined();
  }

  /** The sides of this very migration: guests keep what was said of the one before. */
  async function sidesOf(name: string, migration: string): Promise<Sides> {
    const { uid } = (await guests.migration(migration)).metadata;
    await eventually(async () => {
      const { migrationState } = (await guests.host.guest(name)).status;
      expect(migrationState?.migrationUid).toBe(uid);
    }, 60_000);
    return guests.sides(name);
  }

  test('while its target node takes as many as it may', async () => {
    if (IS_PAIRED) return say(PAIRED_ELSEWHERE);
    const before = await staysOf();
    await guests.configure({ parallelInboundMigrationsPerNode: 1 });
    const first = await guests.ask('disked');
    await guests.reaches(first, 'Running');
    const migration = await guests.ask('guest');
    await guests.reaches(migration, 'Scheduled');
    await guests.cancel(migration);
    await guests.isGone(migration);
    // The one that is in its way has nothing to do with that.
    await guests.reaches(first, 'Running');
    await guests.cancel(first);
    await guests.isGone(first);
    await guests.configure({ parallelInboundMigrationsPerNode: null });
    await expectAllStayed(before);
  });

  test('while its target is prepared', async () => {
    if (IS_PAIRED) return say(PAIRED_ELSEWHERE);
    const before = await staysOf();
    // It is short: where it was over before anybody could look, it is tried again.
    for (let isInTime = false; !isInTime; ) {
      const migration = await guests.ask('disked');
      const { target } = await sidesOf('disked', migration);
      await guests.noted(target, ({ kind }) => kind === 'receiving');
      const resume = await guests.host.holdAgent(target.node);
      isInTime = (await guests.migration(migration)).status.phase === 'PreparingTarget';
      await guests.cancel(migration);
      // Nobody needs the one that stands still for that.
      if (isInTime) await guests.isGone(migration);
      resume();
      await guests.isGone(migration);
      await expectAllStayed(before);
    }
  });

  test('while its disk is copied, which stays whole where it is', async () => {
    if (IS_PAIRED) return say(PAIRED_ELSEWHERE);
    const before = await staysOf();
    await guests.holds(await guests.holder('disked'), 'own', 8);
    const migration = await guests.ask('disked');
    const { target } = await sidesOf('disked', migration);
    await guests.holds(target, 'own');
    await guests.cancel(migration);
    await guests.isGone(migration);
    await expectAllStayed(before);
    expect(await guests.host.ask('disked', 'disk')).toMatch(/ bad=0\b/);
  });

  test('too late once its target has taken the guest, and says why it comes to its end', async () => {
    if (IS_PAIRED) return say(PAIRED_ELSEWHERE);
    const [before = 0] = await staysOf();
    const news = await guests.watchMigrations();
    const migration = await guests.ask('guest');
    const { target } = await sidesOf('guest', migration);
    await guests.noted(target, ({ kind }) => kind === 'taken');
    // Nobody else has heard of it.
    const resume = await guests.host.holdAgent(target.node);
    await guests.cancel(migration);
    resume();
    const told = await eventually(() => {
      const events = news.events.filter(({ object }) => object.metadata.name === migration);
      expect(events.at(-1)?.type).toBe('DELETED');
      return events.map(({ object }) => object);
    }, 60_000);
    news.close();
    const last = told.at(-1);
    expect(last.status.phase, JSON.stringify(last.status)).toBe('Succeeded');
    const isTooLate = told.some(
      ({ metadata, status }) => status?.phase === 'Succeeded' && metadata.deletionTimestamp === undefined,
    );
    if (isTooLate) say('it was over before anybody could call it off');
    else {
      const why = { type: 'migrationAbortRequested', reason: 'GoneOver' };
      expect(last.status.conditions).toContainEqual(expect.objectContaining(why));
    }
    expect((await guests.holder('guest')).podUID).toBe(target.podUID);
    expect(await guests.isWhole('guest')).toHaveLength(before + 1);
  });
});

describe('a migration whose guest has gone ahead of its memory', () => {
  it('says why it is not called off any more, and comes to its end', async () => {
    if (!postCopy.isPossible) return leftOut('nobody here may do post-copy');
    const options = {
      bandwidthPerMigration: '4Mi',
      maxDowntimeMs: 30,
      completionTimeoutPerGiB: 14,
      allowPostCopy: true,
    };
    await guests.policy('early', { pace: 'early' }, options);
    await guests.create('ahead', probe({ memory: '48Mi', arguments: 'mib=24 hz=200 rate=12' }), { pace: 'early' });
    const migration = await guests.ask('ahead');
    const { target } = await guests.sides('ahead');
    await guests.noted(target, (entry) => entry.kind === 'taken');
    await guests.cancel(migration);
    const conditions = await eventually(async () => {
      const found = (await guests.halves(migration)).flatMap((half) => half?.status?.conditions ?? []);
      expect(found).toContainEqual(expect.objectContaining({ type: 'migrationAbortRequested', reason: 'PostCopy' }));
      return found;
    });
    say(`called off in post-copy: ${JSON.stringify(conditions)}`);
    await guests.isGone(migration, 'Succeeded');
    expect(await guests.isWhole('ahead')).toHaveLength(2);
    expect((await guests.holder('ahead')).podUID).toBe(target.podUID);
    await guests.remove('ahead');
  });
});

describe('a guest', () => {
  it('is deleted in the middle of its migration', async () => {
    await guests.policy('endless-again', { pace: 'endless' }, { bandwidthPerMigration: '1Mi', maxDowntimeMs: 1 });
    const migration = await guests.ask('guest');
    await guests.reaches(migration, 'Running');
    await guests.remove('guest');
    await guests.isGone(migration);
    await eventually(() => expect(guests.host.qemus()).toHaveLength(0), 60_000);
    expect(guests.host.assertNeverDoubled()).toBeGreaterThan(50);
  });
});
