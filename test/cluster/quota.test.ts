import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject, KubeObject } from '../../src/api/meta.ts';
import { ApiError } from '../../src/api/status.ts';
import type { Resource } from '../../src/kube/resource.ts';
import type { ResourceQuota } from '../../src/machinery/quota.ts';
import { ClusterUnderTest, resource } from '../support/cluster-under-test.ts';
import { eventually } from '../support/eventually.ts';
import { Room } from '../support/room.ts';

/** What quotas have used as seen through the API: on these inputs, kube-controller-manager counts the same. */

const quotas = resource<ResourceQuota>('resourcequotas', 'ResourceQuota');
const secrets = resource('secrets', 'Secret');
const services = resource('services', 'Service');

let cluster: ClusterUnderTest;
const rooms: Room[] = [];

beforeAll(async () => {
  cluster = await ClusterUnderTest.start();
});
afterAll(async () => {
  for (const room of rooms) await room.clear();
  await cluster.stop();
});

async function makeRoom(): Promise<Room> {
  const room = await Room.make(cluster);
  rooms.push(room);
  return room;
}

async function limit({ namespace }: Room, hard: Record<string, string>, more: object = {}): Promise<void> {
  const metadata = { name: 'quota', namespace };
  const object: ResourceQuota = { apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard, ...more } };
  await cluster.client.create(quotas, object, cluster.signal);
}

/** Waits until this is used, and limited as the spec says. */
async function says({ namespace }: Room, used: JsonObject): Promise<void> {
  await eventually(async () => {
    const { spec, status } = await cluster.client.get(quotas, namespace, 'quota', cluster.signal);
    expect(status?.used).toEqual(used);
    expect(status?.hard).toEqual(spec?.hard);
  });
}

/** Makes something: its code, and the message of a refusal. */
async function make(kind: Resource, { namespace }: Room, name: string, more: object = {}): Promise<string> {
  const object: KubeObject = { apiVersion: '', kind: '', metadata: { name, namespace }, ...more };
  try {
    await cluster.client.create(kind, object, cluster.signal);
    return '201';
  } catch (error) {
    if (error instanceof ApiError) return `${error.code} ${error.message}`;
    throw error;
  }
}

const remove = (kind: Resource, { namespace }: Room, name: string) =>
  cluster.client.delete(kind, namespace, name, cluster.signal);
const asking = (cpu: string) => ({
  containers: [{ name: 'main', image: 'none', resources: { requests: { cpu }, limits: { cpu } } } as object],
});

describe('what a quota has used', () => {
  it('is counted when it comes, and what goes is given back', async () => {
    const room = await makeRoom();
    expect(await make(secrets, room, 'a')).toBe('201');
    await limit(room, { secrets: '2', 'count/secrets': '5', services: '1', 'services.nodeports': '0' });
    await says(room, { secrets: '1', 'count/secrets': '1', services: '0', 'services.nodeports': '0' });
    expect(await make(secrets, room, 'b')).toBe('201');
    expect(await make(secrets, room, 'c')).toMatch(
      /^403 .*exceeded quota: quota, requested: secrets=1, used: secrets=2, limited: secrets=2$/,
    );
    await remove(secrets, room, 'a');
    await says(room, { secrets: '1', 'count/secrets': '1', services: '0', 'services.nodeports': '0' });
    expect(await make(secrets, room, 'c')).toBe('201');
    expect(await make(services, room, 's', { spec: { ports: [{ port: 80 }] } })).toBe('201');
    await says(room, { secrets: '2', 'count/secrets': '2', services: '1', 'services.nodeports': '0' });
    await remove(services, room, 's');
    await says(room, { secrets: '2', 'count/secrets': '2', services: '0', 'services.nodeports': '0' });
  });

  it('follows its limits', async () => {
    const room = await makeRoom();
    await make(secrets, room, 'a');
    await limit(room, { secrets: '5' });
    await says(room, { secrets: '1' });
    const body = { spec: { hard: { secrets: null, 'count/secrets': '7', services: '3' } } };
    await cluster.client.patch(quotas, room.namespace, 'quota', { type: 'merge', body }, cluster.signal);
    await says(room, { 'count/secrets': '1', services: '0' });
  });

  it('is what pods ask for, until they finish or go', async () => {
    const room = await makeRoom();
    const node = await room.node('a');
    await limit(room, { pods: '3', 'requests.cpu': '2', 'limits.cpu': '4', 'count/pods': '9' });
    await says(room, { pods: '0', 'requests.cpu': '0', 'limits.cpu': '0', 'count/pods': '0' });
    await room.podOn(node, 'a', asking('500m'));
    await room.podOn(node, 'b', asking('1'));
    await says(room, { pods: '2', 'requests.cpu': '1500m', 'limits.cpu': '1500m', 'count/pods': '2' });
    await room.changePod('a', { status: { phase: 'Succeeded' } }, 'status');
    await says(room, { pods: '1', 'requests.cpu': '1', 'limits.cpu': '1', 'count/pods': '2' });
    await room.end('b');
    await says(room, { pods: '0', 'requests.cpu': '0', 'limits.cpu': '0', 'count/pods': '1' });
  });

  it('is that of the pods in its scope', async () => {
    const room = await makeRoom();
    const node = await room.node('a');
    await room.podOn(node, 'modest');
    await room.podOn(node, 'demanding', asking('1'));
    await limit(room, { pods: '5' }, { scopes: ['BestEffort'] });
    await says(room, { pods: '1' });
    await room.end('demanding');
    await room.end('modest');
    await says(room, { pods: '0' });
  });

  it('is never more than it allows, however many come at once', async () => {
    const room = await makeRoom();
    await limit(room, { secrets: '5' });
    await says(room, { secrets: '0' });
    for (let round = 0; round < 2; round++) {
      const names = Array.from({ length: 15 }, (_, index) => `s-${round}-${index}`);
      await Promise.all(names.map((name) => make(secrets, room, name)));
      const { items } = await cluster.client.list(secrets, { namespace: room.namespace }, cluster.signal);
      expect(items).toHaveLength(5);
      await Promise.all(items.slice(0, 3).map(({ metadata }) => remove(secrets, room, metadata.name ?? '')));
      await says(room, { secrets: '2' });
    }
  });
});
