import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { InProcessApi } from '../../test/support/in-process.ts';
import type { KubeObject } from '../api/meta.ts';
import { ObjectApplier } from './apply-objects.ts';
import { Client } from './client.ts';
import { InProcessTransport } from './in-process-transport.ts';
import type { Resource } from './resource.ts';

type ConfigMap = KubeObject & { data?: Record<string, string> };
const configMaps: Resource<ConfigMap> = {
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
};
const { signal } = new AbortController();
const map = (data: Record<string, string>): ConfigMap => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'a', namespace: 'default' },
  data,
});

let api: InProcessApi;
let client: Client;
let applier: ObjectApplier;
const writes: string[] = [];

beforeAll(async () => {
  api = await InProcessApi.start();
  const admin = { user: 'admin', groups: ['system:masters'] };
  const transport = new InProcessTransport((request) => api.core.handle(request), admin);
  client = new Client(
    {
      send: (request) => {
        if (request.method !== 'GET') writes.push(request.method);
        return transport.send(request);
      },
      close: () => undefined,
    },
    'test',
  );
  await client
    .create(
      { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false },
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } },
      signal,
    )
    .catch(() => undefined);
  applier = await ObjectApplier.of(client, signal);
});
afterAll(() => api.stop());

const dataOf = async (): Promise<Record<string, string> | undefined> =>
  (await client.get(configMaps, 'default', 'a', signal)).data;

describe('applying objects', () => {
  it('writes what is new, and nothing that is as it should be', async () => {
    await applier.apply([map({ x: '1', y: '2' })], signal);
    expect(await dataOf()).toEqual({ x: '1', y: '2' });
    writes.length = 0;
    await applier.apply([map({ x: '1', y: '2' })], signal);
    expect(writes).toEqual([]);
  });

  it('takes away what is no more spoken of', async () => {
    await applier.apply([map({ x: '1' })], signal);
    expect(await dataOf()).toEqual({ x: '1' });
  });

  it('brings back what others changed, and leaves what they added', async () => {
    const patch = { type: 'merge', body: { data: { x: 'theirs', z: 'theirs' } } } as const;
    await client.patch(configMaps, 'default', 'a', patch, signal);
    await applier.apply([map({ x: '1' })], signal);
    expect(await dataOf()).toEqual({ x: '1', z: 'theirs' });
  });

  it('creates what is missing, and changes nothing that is there', async () => {
    await applier.createMissing([map({ x: 'other' })], signal);
    expect(await dataOf()).toMatchObject({ x: '1' });
    await client.delete(configMaps, 'default', 'a', signal);
    await applier.createMissing([map({ x: 'other' })], signal);
    expect(await dataOf()).toEqual({ x: 'other' });
  });
});
