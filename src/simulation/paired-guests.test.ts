import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { ControlScene } from '../control/control.fixture.ts';
import { MigrationLeftovers } from '../control/migration/migration-leftovers.ts';
import { makeMigrations, PlayedAgents } from '../control/migration/played-agents.fixture.ts';
import { PlayedPair } from '../control/migration/played-pair.fixture.ts';
import {
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../kube/kubevirt-resources.ts';
import { leaseResource } from '../kube/leader-lease.ts';
import { Synchronizations } from '../sync/controller/synchronizations.ts';

/** Pairs between two guests of one cluster, with the migration controller and the synchronization controller at work on both. */

const ADDRESS = 'here:9185';
const scene = new ControlScene(
  makeMigrations,
  (context) => new MigrationLeftovers(context),
  (context) =>
    new Synchronizations({
      ...context,
      clusterId: 'here',
      addresses: () => [ADDRESS],
      connect: () => ({ dial: () => undefined, hangUp: () => undefined, channel: () => undefined }),
      trust: { isRevoked: () => false, release: async () => undefined },
    }),
);
const agents = new PlayedAgents(scene);
const spec = {
  domain: { devices: {}, memory: { guest: '64Mi' } },
  volumes: [{ name: 'root', containerDisk: { image: 'disk:1' } }],
};
let count = 0;

beforeAll(async () => {
  await scene.start();
  await agents.addNodes('node-a', 'node-b');
});
afterAll(() => scene.stop());

async function pairOfGuests(): Promise<PlayedPair> {
  count++;
  const pair = new PlayedPair(
    `key-${count}`,
    { agents, guest: `web-${count}`, move: `send-${count}` },
    { agents, guest: `new-${count}`, move: `receive-${count}` },
    ADDRESS,
  );
  await agents.addGuest(`web-${count}`, 'node-a', { spec });
  await pair.addReceiver({ spec });
  return pair;
}

/** Nothing is left that would keep the next pair waiting. */
async function isTidy(): Promise<void> {
  await scene.until(async () => {
    expect(await agents.slotHolders()).toEqual([]);
    const leases = await scene.client.list(leaseResource, { namespace: 'kubevirt' }, scene.signal);
    expect(leases.items).toEqual([]);
    for (const { metadata } of await scene.list(migrations)) expect(metadata.finalizers).toBeUndefined();
  });
}

describe('a pair in one cluster', () => {
  it('moves a guest into another', async () => {
    const pair = await pairOfGuests();
    await pair.run();
    await pair.take();
    await pair.give();
    await pair.reach('Succeeded', 'Succeeded');
    await isTidy();
  });

  it.each(['source', 'target'] as const)('is cancelled at the %s, at once or during the copy', async (side) => {
    const other = side === 'source' ? 'target' : 'source';
    for (const isEarly of [true, false]) {
      const pair = await pairOfGuests();
      if (isEarly) {
        await pair.send();
        await pair.receive();
        await pair.meet();
      } else await pair.run();
      await scene.delete(migrations, pair[side].move);
      if (!isEarly) {
        for (const each of [pair.source, pair.target])
          await pair.until(async () => expect((await agents.state(each.guest)).abortRequested).toBe(true));
        if (side === 'target') await pair.refuse();
        await pair.giveUp();
      }
      await pair.until(async () => {
        expect(await pair.find(pair[side])).toBeUndefined();
        expect((await pair.find(pair[other]))?.status?.phase).toBe('Failed');
      });
      const { status } = await scene.get(guests, pair.source.guest);
      expect(status).toMatchObject({ phase: 'Running', migrationState: { completed: true, failed: true } });
      await isTidy();
    }
  });
});
