import { expect, it } from 'vitest';
import { ApiError } from '../../api/status.ts';
import { seededRandom } from '../../env/test.ts';
import type { TransportRequest } from '../../kube/transport.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { FaultyWorld } from '../faulty-world.fixture.ts';
import { namespaces, persistentVolumeClaims, persistentVolumes } from '../resources.ts';
import { volumeBinderLoop } from './loop.ts';
import { makeClaim, makeVolume } from './volumes.fixture.ts';

/** Claims and volumes that come and go, while everything goes wrong that can for whoever binds them. */

const ROUNDS = 40;
const NAMES = 6;

const claimNow = (world: FaultyWorld, key: string) =>
  world.stored('persistentvolumeclaims', key) as PersistentVolumeClaim | undefined;
const volumeNow = (world: FaultyWorld, name: string) =>
  world.stored('persistentvolumes', name) as PersistentVolume | undefined;

/** The claim that a volume names, if it is still there. */
function claimantOf({ spec }: PersistentVolume, world: FaultyWorld): PersistentVolumeClaim | undefined {
  const { namespace, name, uid } = spec?.claimRef ?? {};
  const claim = claimNow(world, `${namespace}/${name}`);
  return claim?.metadata.uid === uid ? claim : undefined;
}

/** A volume must not be taken from its claim, nor be let go while it has one; no claim is lost that has its volume. */
function judge({ path, body = '{}' }: TransportRequest, world: FaultyWorld): string | undefined {
  const given = JSON.parse(body) as PersistentVolume & PersistentVolumeClaim;
  if (path.includes('/persistentvolumeclaims/')) {
    const volume = volumeNow(world, given.spec?.volumeName ?? '');
    const isLost = given.status?.phase === 'Lost' && path.includes('/status');
    return isLost && volume?.spec?.claimRef?.uid === given.metadata.uid
      ? `${given.metadata.name} is given up though its volume is there`
      : undefined;
  }
  if (!path.includes('/persistentvolumes/')) return undefined;
  const known = volumeNow(world, given.metadata.name ?? '');
  const claim = known && claimantOf(known, world);
  if (claim?.spec?.volumeName !== given.metadata.name) return undefined;
  if (path.includes('/status'))
    return given.status?.phase === 'Released' ? `${given.metadata.name} is let go though it has a claim` : undefined;
  return given.spec?.claimRef?.uid === claim?.metadata.uid ? undefined : `${given.metadata.name} is taken away`;
}

it.each([1, 2, 3, 5])('claims keep their volumes, and find them in the end (seed %i)', async (seed) => {
  const world = new FaultyWorld({ seed, loop: volumeBinderLoop, judge });
  await world.start();
  const { client, signal } = world;
  const random = seededRandom(1000 + seed);
  const number = (): number => Math.floor(random.number() * NAMES);
  await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }, signal);
  const act = async (): Promise<void> => {
    const name = `${number()}`;
    try {
      const choice = random.number();
      if (choice < 0.35) await client.create(persistentVolumeClaims, makeClaim(`c${name}`), signal);
      else if (choice < 0.5) {
        await client.create(persistentVolumeClaims, makeClaim(`c${name}`, { volumeName: `v${number()}` }), signal);
      } else if (choice < 0.75) await client.create(persistentVolumes, makeVolume(`v${name}`), signal);
      else if (choice < 0.9) await client.delete(persistentVolumeClaims, 'shop', `c${name}`, signal);
      else await client.delete(persistentVolumes, '', `v${name}`, signal);
    } catch (error) {
      // It is there already, or has gone meanwhile.
      expect(error instanceof ApiError && [404, 409].includes(error.code)).toBe(true);
    }
  };
  for (let round = 0; round < ROUNDS; round++) {
    const acting = Array.from({ length: 1 + Math.floor(random.number() * 4) }, act);
    await world.pass(random.number() < 0.6 ? 100 : 4000, 500);
    await Promise.all(acting);
  }
  await world.calm();
  for (let extra = 0; extra < NAMES; extra++) await client.create(persistentVolumes, makeVolume(`w${extra}`), signal);
  await world.pass(6 * 60_000, 5000);
  for (const key of world.keys('persistentvolumeclaims', 'shop/')) {
    const claim = claimNow(world, key);
    const volume = volumeNow(world, claim?.spec?.volumeName ?? '');
    const isOwn = volume?.spec?.claimRef?.uid === claim?.metadata.uid;
    const state = [claim?.status?.phase, isOwn ? volume?.status?.phase : 'not its own'];
    const isNamed = !claim?.metadata.annotations?.['pv.kubernetes.io/bind-completed'];
    // One that asks for a volume by name waits for that one; one that had it may have lost it.
    if (isNamed || claim?.status?.phase === 'Lost') expect(isOwn && volume !== undefined).toBe(false);
    else expect([key, ...state]).toEqual([key, 'Bound', 'Bound']);
    if (isNamed) expect(claim?.spec?.volumeName).toMatch(/^v/);
  }
  for (const name of world.keys('persistentvolumes', '')) {
    const volume = volumeNow(world, name);
    const claim = volume && claimantOf(volume, world);
    const expected = claim ? 'Bound' : volume?.spec?.claimRef?.uid ? 'Released' : 'Available';
    expect([name, volume?.status?.phase]).toEqual([name, expected]);
  }
  expect(world.wrongs).toEqual([]);
  expect(world.writes).toBeGreaterThan(20);
  await world.stop();
});
