import { describe, expect, it } from 'vitest';
import { configMapDefinition as definition } from '../../api/kinds/core/config-map.ts';
import type { JsonObject } from '../../api/meta.ts';
import { type Patch, readPatch } from './patch.ts';

async function applied(metadata: JsonObject): Promise<Patch> {
  const body = JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { a: '1' } });
  const request = {
    method: 'PATCH',
    path: '/api/v1/namespaces/default/configmaps/one',
    query: new URLSearchParams(),
    headers: { 'content-type': 'application/apply-patch+yaml' },
    body: async () => Buffer.from(body),
    remoteAddress: '',
    signal: new AbortController().signal,
  };
  return readPatch(request, {
    target: { definition, namespace: 'default', name: 'one' },
    fieldManager: 'me',
    force: false,
    nowMs: 0,
    level: 'Warn',
    warnings: [],
  });
}

describe('applying', () => {
  it('creates what is not there', async () =>
    expect((await applied({ name: 'one' })).create?.()).toMatchObject({ metadata: { name: 'one' }, data: { a: '1' } }));

  it('needs the name of what it creates, but not of what is there', async () => {
    const patch = await applied({});
    const live = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one', uid: 'a' } };
    expect(patch.apply(live)).toMatchObject({ data: { a: '1' } });
    expect(() => patch.create?.()).toThrow('the name of the object (one based on URL) was undeterminable');
  });

  it('creates nothing for who means an object that he has seen', async () => {
    const patch = await applied({ name: 'one', uid: 'a' });
    expect(() => patch.create?.()).toThrow('uid mismatch: the provided object specified uid a, and no existing object');
  });
});
