import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { claim, probe, virtualMachine } from '../support/guest-manifests.ts';
import type { MovingGuests } from '../support/moving-guests.ts';
import { type Trip, TwoClusters } from '../support/two-clusters.ts';
import { conditionOf } from '../support/virtual-machines.ts';

/** Two migrations that are one: who knows whom, what has to fit, and what is left when they do not come to terms. */

vi.setConfig({ testTimeout: 400_000, hookTimeout: 300_000 });

let clusters: TwoClusters;
beforeAll(async () => {
  clusters = await TwoClusters.start();
});
afterAll(() => clusters?.stop());

const PATIENCE_MS = 120_000;
const BLOCKED = 'decentralizedMigrationBlocked';

const diskOn = (claimName: string) => ({ name: 'data', source: { persistentVolumeClaim: { claimName } } });
const specOn = (claimName: string): object =>
  probe({ memory: '48Mi', arguments: 'mib=24 hz=200 rate=4 write=20', volumes: [diskOn(claimName)] });

interface Claims {
  readonly here: object;
  readonly there: object;
}

/** A guest in the east, and a machine in the west that waits for it. */
async function guestWith(name: string, claims: Claims): Promise<Trip> {
  const trip = clusters.trip(name, clusters.east);
  await trip.from.host.create(claims.here);
  await trip.to.host.create(claims.there);
  await trip.from.create(name, specOn(name));
  await clusters.receiver(trip, specOn(name));
  return trip;
}

const guest = (name: string): Promise<Trip> =>
  guestWith(name, { here: claim(name, 'local', '4Mi'), there: claim(name, 'local', '4Mi') });

/** Waits until a half says what is in the way. */
async function isBlocked(where: MovingGuests, migration: string, reason: string): Promise<void> {
  await eventually(async () => {
    const half = await where.migration(migration);
    expect(conditionOf(half, BLOCKED), JSON.stringify(half?.status)).toMatchObject({ status: 'True', reason });
  }, PATIENCE_MS);
}

async function remove(name: string): Promise<void> {
  for (const each of clusters.both) await each.remove(name);
}

describe('two migrations of one guest', () => {
  it('wait until the clusters trust each other', async () => {
    const trip = await guest('trusted');
    const halves = await clusters.begin(trip);
    await isBlocked(trip.from, halves.source, 'NotTrusted');
    await clusters.trust(trip.from, trip.to);
    await isBlocked(trip.from, halves.source, 'NotTrusted');
    await clusters.trust(trip.to, trip.from);
    expect(await clusters.arrives(trip, halves)).toHaveLength(2);
    await remove('trusted');
  });

  it('can be made in either order', async () => {
    const trip = await guest('order');
    const source = await clusters.send(trip);
    await isBlocked(trip.from, source, 'WaitingForOtherHalf');
    const target = await clusters.receive(trip);
    expect(await clusters.arrives(trip, { source, target })).toHaveLength(2);
    await remove('order');
  });

  it('know nothing of each other with different keys, and are called off at once', async () => {
    const trip = await guest('key');
    const source = await clusters.send(trip);
    const target = await clusters.receive({ ...trip, key: 'another' });
    await isBlocked(trip.from, source, 'WaitingForOtherHalf');
    await isBlocked(trip.to, target, 'WaitingForOtherHalf');
    expect((await trip.to.host.guest('key')).status.migrationState?.sourceState).toBeUndefined();
    await Promise.all([trip.from.cancel(source), trip.to.cancel(target)]);
    await Promise.all([trip.from.isGone(source), trip.to.isGone(target)]);
    await clusters.isWhole(trip.from, 'key');
    // The same two, on their way: now with one key.
    const halves = await clusters.begin(trip);
    await trip.from.reaches(halves.source, 'TargetReady', 'Running', 'Succeeded', 'Failed');
    await Promise.all([trip.from.cancel(halves.source), trip.to.cancel(halves.target)]);
    await Promise.all([trip.from.isGone(halves.source), trip.to.isGone(halves.target)]);
    const isThere = (await trip.to.host.guest('key'))?.status.rightToRun !== undefined;
    expect(await clusters.isWhole(isThere ? trip.to : trip.from, 'key')).toHaveLength(isThere ? 2 : 1);
    await remove('key');
  });

  it('move a disk to a larger one of another class, never to a smaller one', async () => {
    const small = { here: claim('disk', 'local', '8Mi'), there: claim('disk', 'shared', '4Mi') };
    const trip = await guestWith('disk', small);
    const halves = await clusters.begin(trip);
    expect(await clusters.ends(trip, halves)).toBe('Failed');
    const { status } = await trip.to.migration(halves.target);
    expect(conditionOf({ status }, 'migrationFailed')).toMatchObject({
      reason: 'ReceiverUnfit',
      message: expect.stringContaining('data'),
    });
    await clusters.isWhole(trip.from, 'disk');

    await trip.to.remove('disk');
    await trip.to.host.create(claim('larger', 'shared', '16Mi'));
    await clusters.receiver(trip, specOn('larger'));
    const again = { ...trip, key: 'disk-again' };
    expect(await clusters.arrives(again, await clusters.begin(again))).toHaveLength(2);
    await remove('disk');
  });
});

describe('a pair within one cluster', () => {
  const KIND = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstanceMigration' };
  const pathIn = (namespace: string, plural: string): string =>
    `/apis/kubevirt.io/v1/namespaces/${namespace}/${plural}`;

  it('moves a guest to another namespace', async () => {
    const { east } = clusters;
    const { api } = east.host;
    const post = async (path: string, body: object): Promise<Anything> =>
      (await api.request('POST', path, { body })).expect(201).json;
    const get = async (path: string): Promise<Anything> => (await api.request('GET', path)).expect(200).json;
    await post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'elsewhere' } });
    await east.host.create(claim('near', 'local', '4Mi'));
    await post('/api/v1/namespaces/elsewhere/persistentvolumeclaims', claim('near', 'local', '4Mi'));
    await east.create('near', specOn('near'));
    const boot = east.bootOf('near');
    await post(
      pathIn('elsewhere', 'virtualmachines'),
      virtualMachine('far', specOn('near'), { runStrategy: 'WaitAsReceiver' }),
    );
    await post(pathIn('elsewhere', 'virtualmachineinstancemigrations'), {
      ...KIND,
      metadata: { name: 'far' },
      spec: { vmiName: 'far', receive: { key: 'far' } },
    });
    const source = await east.ask('near', { sendTo: { key: 'far', connectURL: await clusters.addressOf(east) } });
    await east.succeeds(source);
    await eventually(async () => {
      const { status } = await get(`${pathIn('elsewhere', 'virtualmachineinstances')}/far`);
      expect(status.phase, JSON.stringify(status)).toBe('Running');
      const heard = clusters.logs().get(status.rightToRun.holder.podUID) ?? '';
      expect(heard).toContain(`guest boot=${boot}`);
    }, PATIENCE_MS);
    clusters.assertNeverDoubled();
    expect(east.host.qemus()).toHaveLength(1);
  });
});
