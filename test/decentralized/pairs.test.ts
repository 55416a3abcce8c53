import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import { AUTHORITY_SECRET } from '../../src/sync/trust/objects.ts';
import { eventually } from '../support/eventually.ts';
import { blockClaim, blockVolume, claim, probe } from '../support/guest-manifests.ts';
import { Impostor } from '../support/impostor.ts';
import { leftOut } from '../support/left-out.ts';
import { loopDevice } from '../support/loop-device.ts';
import type { MovingGuests } from '../support/moving-guests.ts';
import { someOf } from '../support/sample.ts';
import { TcpProxy } from '../support/tcp-proxy.ts';
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
const YEAR_MS = 365 * 86_400_000;
const MEBIBYTE = 2 ** 20;
const LABELS = { pace: 'slow' };
const BLOCKED = 'decentralizedMigrationBlocked';
const AUTHORITY = `/api/v1/namespaces/kubevirt/secrets/${AUTHORITY_SECRET}`;
const MERGE = { 'content-type': 'application/merge-patch+json' };

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
async function isBlocked(where: MovingGuests, migration: string, ...reasons: readonly string[]): Promise<void> {
  await eventually(async () => {
    const half = await where.migration(migration);
    const { status, reason } = conditionOf(half, BLOCKED) ?? {};
    expect([status, reasons], JSON.stringify(half?.status)).toEqual(['True', expect.arrayContaining([reason])]);
  }, PATIENCE_MS);
}

/** The half waits, and has heard of no guest. */
async function waits(trip: Trip, target: string): Promise<void> {
  expect((await trip.to.migration(target)).status.phase).toBe('WaitingForSync');
  expect((await trip.to.host.guest(trip.name)).status.migrationState?.sourceState).toBeUndefined();
}

async function remove(name: string): Promise<void> {
  for (const each of clusters.both) await each.remove(name);
}

describe('two migrations of one guest', () => {
  it('wait until the clusters trust each other', async () => {
    const trip = await guest('trusted');
    const halves = await clusters.begin(trip);
    // Of a cluster that is not trusted nothing is told, not even that it is there.
    await isBlocked(trip.from, halves.source, 'Unreachable');
    await clusters.trust(trip.from, trip.to);
    await isBlocked(trip.from, halves.source, 'NotTrusted');
    await waits(trip, halves.target);
    await clusters.trust(trip.to, trip.from);
    expect(await clusters.arrives(trip, halves)).toHaveLength(2);
    await remove('trusted');
  });

  const some = someOf(7, 2);
  some('can be made in either order', async () => {
    const trip = await guest('order');
    const source = await clusters.send(trip);
    await isBlocked(trip.from, source, 'WaitingForOtherHalf');
    const target = await clusters.receive(trip);
    expect(await clusters.arrives(trip, { source, target })).toHaveLength(2);
    await remove('order');
  });

  some('know nothing of each other with different keys, and are called off at once', async () => {
    const trip = await guest('key');
    const source = await clusters.send(trip);
    const target = await clusters.receive({ ...trip, key: 'another' });
    await isBlocked(trip.from, source, 'WaitingForOtherHalf');
    await isBlocked(trip.to, target, 'WaitingForOtherHalf');
    await waits(trip, target);
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

  some('are nothing to whoever can prove to be a cluster that is trusted, and has no key', async () => {
    const trip = await guest('stranger');
    const target = await clusters.receive(trip);
    await isBlocked(trip.to, target, 'WaitingForOtherHalf');
    const impostor = await Impostor.of(trip.from.host, trip.to.host, await trip.to.host.synchronizationAddress());
    try {
      impostor.greet();
      impostor.tell('stranger', { uid: 'made-up', name: 'stranger', namespace: 'default', vmiUID: 'made-up' });
      await eventually(() => {
        const kinds = impostor.heard.map(({ kind }) => kind);
        expect(kinds[0]).toBe('welcome');
        expect(kinds.some((kind) => kind === 'ack' || kind === 'refused')).toBe(true);
      }, PATIENCE_MS);
      // What is left of former pairs is told to whoever is that cluster.
      const told = impostor.heard.filter((message) => 'key' in message && ['stranger', trip.key].includes(message.key));
      expect(told.filter(({ kind }) => kind === 'update' || kind === 'gone')).toEqual([]);
      await waits(trip, target);
    } finally {
      impostor.leave();
    }
    const source = await clusters.send(trip);
    expect(await clusters.arrives(trip, { source, target })).toHaveLength(2);
    await remove('stranger');
  });

  some('are nothing to whoever shows a certificate of a cluster that is trusted, and has expired', async () => {
    const trip = await guest('expired');
    const target = await clusters.receive(trip);
    await isBlocked(trip.to, target, 'WaitingForOtherHalf');
    const address = await trip.to.host.synchronizationAddress();
    const come = (ageMs: number): Promise<Impostor> => Impostor.of(trip.from.host, trip.to.host, address, { ageMs });
    // The same one, with a certificate that is as good as new, is listened to.
    const timely = await come(0);
    timely.greet();
    await eventually(() => expect(timely.heard.map(({ kind }) => kind)).toContain('welcome'), PATIENCE_MS);
    timely.leave();
    const late = come(YEAR_MS).then(async (impostor) => {
      impostor.greet();
      impostor.tell(trip.key, { uid: 'made-up', name: 'expired', namespace: 'default', vmiUID: 'made-up' });
      const error = await impostor.ended;
      expect(impostor.heard).toEqual([]);
      throw error;
    });
    await expect(late).rejects.toMatchObject({ name: 'SyncError' });
    await waits(trip, target);
    await trip.to.cancel(target);
    await trip.to.isGone(target);
    await remove('expired');
  });

  some(
    'meet where their cluster is reached by another address than it says, as behind NAT or a load balancer',
    async () => {
      const trip = await guest('behind');
      const [host = '', port = ''] = (await trip.to.host.synchronizationAddress()).split(':');
      const balancer = await TcpProxy.at(clusters.wire.host, { host, port: Number(port) });
      const reopen = clusters.wire.closeSynchronization(clusters.wire.west);
      onTestFinished(() => {
        reopen();
        balancer.close();
      });
      const connectURL = `${clusters.wire.host}:${balancer.port}`;
      const target = await clusters.receive(trip);
      const source = await clusters.send(trip, connectURL);
      // What was said before on a stream that led there directly is nothing to this one.
      await eventually(() => expect(balancer.passedBytes).toBeGreaterThan(0), PATIENCE_MS);
      expect(await clusters.arrives(trip, { source, target })).toHaveLength(2);
      expect((await trip.from.migration(source)).spec.sendTo.connectURL).toBe(connectURL);
      expect((await trip.to.migration(target)).status.syncEndpoint).toBe(`${host}:${port}`);
      await remove('behind');
    },
  );

  some('wait for a cluster that has other authorities than were trusted, until those are', async () => {
    const trip = await guest('anew');
    const { api } = trip.to.host;
    const before = (await api.request('GET', AUTHORITY)).expect(200).json.data;
    const none = Object.fromEntries(Object.keys(before).map((key) => [key, null]));
    (await api.request('PATCH', AUTHORITY, { body: { data: none }, headers: MERGE })).expect(200);
    await trip.to.host.replaceSynchronization();
    await eventually(async () => {
      const { data } = (await api.request('GET', AUTHORITY)).expect(200).json;
      expect(Object.keys(data ?? {})).toEqual(Object.keys(before));
      expect(data).not.toEqual(before);
    }, PATIENCE_MS);
    const halves = await clusters.begin(trip);
    await isBlocked(trip.from, halves.source, 'NotTrusted', 'Unreachable');
    await waits(trip, halves.target);
    await clusters.trust(trip.from, trip.to);
    expect(await clusters.arrives(trip, halves)).toHaveLength(2);
    await remove('anew');
  });

  some('move a disk to a larger one of another class, never to a smaller one', async () => {
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

describe('two migrations of a guest on a block device', () => {
  it('bring it onto another one, which was blank', async () => {
    const names = ['block-here', 'block-there'];
    const devices = names.map((name, index) =>
      loopDevice(join(clusters.both[index]?.host.godwit.directory ?? '', name), (4 + 4 * index) * MEBIBYTE),
    );
    onTestFinished(() => devices.forEach((device) => device?.close()));
    const trip = clusters.trip('block', clusters.east);
    for (const [index, device] of devices.entries()) {
      if (!device) return leftOut('there are no block devices to be had here');
      const { host } = clusters.both[index] as MovingGuests;
      const size = `${4 + 4 * index}Mi`;
      const body = blockVolume('block', device.path, size);
      (await host.api.request('POST', '/api/v1/persistentvolumes', { body })).expect(201);
      await host.create(blockClaim('block', size));
    }
    await trip.from.create('block', specOn('block'));
    await clusters.receiver(trip, specOn('block'));
    expect(await clusters.arrives(trip, await clusters.begin(trip))).toHaveLength(2);
    expect(await trip.to.host.ask('block', 'disk')).toMatch(/ bad=0\b/);
    const { volumes } = (await trip.to.host.guest('block')).status.migrationState.sourceState;
    expect(volumes).toEqual([{ name: 'data', sizeBytes: 4 * MEBIBYTE, isBlock: true }]);
    await remove('block');
  });
});

describe('trust that is revoked', () => {
  it('counts once the guest that is on its way has come, and for all that would come after it', async () => {
    // Half a minute of copying, in which it is revoked.
    for (const each of clusters.both) await each.policy('paced', LABELS, { bandwidthPerMigration: '1Mi' });
    const trip = clusters.trip('revoked', clusters.east);
    const spec = probe({ memory: '64Mi', arguments: 'mib=32 hz=200 rate=0' });
    await trip.from.create('revoked', spec, LABELS);
    await clusters.receiver(trip, spec, { labels: LABELS });
    const home = await trip.from.holder('revoked');
    const halves = await clusters.begin(trip);
    await trip.from.noted(home, ({ kind }) => kind === 'reserved');
    await trip.to.host.cli('trust', 'revoke', 'east');
    expect(await trip.to.host.cli('trust', 'list')).toMatch(/^east .*Revoking/m);
    expect((await trip.from.migration(halves.source)).status.phase).toBe('Running');
    expect(await clusters.arrives(trip, halves)).toHaveLength(2);
    await eventually(async () => expect(await trip.to.host.cli('trust', 'list')).not.toMatch(/^east /m), PATIENCE_MS);

    const later = clusters.trip('revoked', clusters.west);
    await clusters.receiverAgain(later);
    const again = await clusters.begin(later);
    await isBlocked(later.from, again.source, 'Unreachable', 'NotTrusted');
    await later.from.cancel(again.source);
    await later.to.cancel(again.target);
    await clusters.isWhole(later.from, 'revoked');
    await remove('revoked');
  });
});

describe('what ran', () => {
  it('never ran twice', () => clusters.assertNeverDoubled());
});
