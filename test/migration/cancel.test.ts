import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { probe } from '../support/guest-manifests.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { PostCopyOffer } from '../support/post-copy.ts';
import { IS_PAIRED } from '../support/sample.ts';
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
    // The other one of a pair waits to hear from it what its disks are like.
    await guests.reaches(migration, IS_PAIRED ? 'Pending' : 'TargetReady');
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

describe('a migration whose guest has gone ahead of its memory', () => {
  it('says why it is not called off any more, and comes to its end', async () => {
    if (!postCopy.isPossible) return say('left out: nobody here may do post-copy');
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
    await guests.isGone(migration);
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
