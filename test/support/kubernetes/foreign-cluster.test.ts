import { afterEach, beforeEach, expect, it } from 'vitest';
import { InProcessApi } from '../in-process.ts';
import { empty } from './foreign-cluster.ts';

/** What tests do to a cluster that somebody gives them. */

let api: InProcessApi;

beforeEach(async () => {
  api = await InProcessApi.start();
  for (const name of ['node-1', 'worker']) {
    const body = { apiVersion: 'v1', kind: 'Node', metadata: { name } };
    (await api.request('POST', '/api/v1/nodes', { body })).expect(201);
  }
});
afterEach(() => api.stop());

async function nodeNames(): Promise<string[]> {
  const { items } = (await api.request('GET', '/api/v1/nodes')).expect(200).json;
  return items.map(({ metadata }: { metadata: { name: string } }) => metadata.name);
}

async function label(value: string): Promise<void> {
  const body = { metadata: { labels: { 'godwit.dev/emptied-by-tests': value } } };
  const headers = { 'content-type': 'application/merge-patch+json' };
  (await api.request('PATCH', '/api/v1/namespaces/default', { body, headers })).expect(200);
}

it('leaves a cluster as it is whose admin has not consented, and says how to', async () => {
  await expect(empty(api)).rejects.toThrow('kubectl label namespace default godwit.dev/emptied-by-tests=true');
  await label('false');
  await expect(empty(api)).rejects.toThrow('kubectl label namespace default');
  expect(await nodeNames()).toEqual(['node-1', 'worker']);
});

it('takes out what tests put there where the admin has consented, and nothing of the admin', async () => {
  await label('true');
  await empty(api);
  expect(await nodeNames()).toEqual(['worker']);
});
