import { expect, it } from 'vitest';
import { seededRandom } from '../../env/test.ts';
import { ApiError } from '../../api/status.ts';
import type { ResourceQuota } from '../../machinery/quota.ts';
import type { TransportRequest } from '../../kube/transport.ts';
import { FaultyWorld } from '../faulty-world.fixture.ts';
import { namespaces, resourceQuotas, secrets } from '../resources.ts';
import { quotaLoop } from './loop.ts';

/** Objects that come and go under a quota, while everything goes wrong that can for whoever recounts it. */

const ROUNDS = 40;
const LIMIT = 6;

const countOf = (world: FaultyWorld): number => world.keys('secrets', 'room/').length;

/** Less must never be said to be in use than there is. */
function judge({ path, body = '' }: TransportRequest, world: FaultyWorld): string | undefined {
  if (!path.includes('/resourcequotas/')) return undefined;
  const used = Number((JSON.parse(body) as ResourceQuota).status?.used?.['secrets'] ?? 0);
  return used < countOf(world) ? `${used} are said to be in use of ${countOf(world)}` : undefined;
}

it.each([3, 4, 6, 7])('what is used is never said to be less than it is (seed %i)', async (seed) => {
  const world = new FaultyWorld({ seed, loop: quotaLoop, judge });
  await world.start();
  const { client, signal } = world;
  const random = seededRandom(1000 + seed);
  await client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'room' } }, signal);
  const spec = { hard: { secrets: String(LIMIT) } };
  const metadata = { name: 'quota', namespace: 'room' };
  await client.create(resourceQuotas, { apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec }, signal);
  let made = 0;
  const act = async (): Promise<void> => {
    const present = world.keys('secrets', 'room/').map((key) => key.slice('room/'.length));
    const name = present[Math.floor(random.number() * present.length)];
    try {
      if (random.number() < 0.5 && name !== undefined) await client.delete(secrets, 'room', name, signal);
      else {
        const object = { apiVersion: 'v1', kind: 'Secret', metadata: { name: `s${made++}`, namespace: 'room' } };
        await client.create(secrets, object, signal);
      }
    } catch (error) {
      // The quota is spent, or the object has gone meanwhile.
      expect(error instanceof ApiError && [403, 404].includes(error.code)).toBe(true);
    }
    expect(countOf(world)).toBeLessThanOrEqual(LIMIT);
  };
  for (let round = 0; round < ROUNDS; round++) {
    const acting = Array.from({ length: 1 + Math.floor(random.number() * 8) }, act);
    await world.pass(random.number() < 0.6 ? 100 : 4000, 500);
    await Promise.all(acting);
  }
  await world.calm();
  await world.pass(6 * 60_000, 5000);
  const { status } = await client.get(resourceQuotas, 'room', 'quota', signal);
  expect(status?.used).toEqual({ secrets: String(countOf(world)) });
  expect(world.wrongs).toEqual([]);
  expect(world.writes).toBeGreaterThan(0);
  await world.stop();
});
