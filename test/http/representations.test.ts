import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { Anything } from '../support/api.ts';
import { InProcessApi } from '../support/in-process.ts';
import { configMap, makeNamespace } from '../support/objects.ts';

/** The forms in which one object or list can be had. Watches have theirs in their own test. */

let api: InProcessApi;
let namespace = '';
let path = '';

beforeAll(async () => {
  api = await InProcessApi.start();
  namespace = await makeNamespace(api);
  path = `/api/v1/namespaces/${namespace}/configmaps`;
  for (const name of ['a', 'b'])
    (await api.request('POST', path, { body: configMap(name, { data: { key: 'value' } }) })).expect(201);
});
afterAll(() => api.stop());

const get = (target: string, accept: string): ReturnType<InProcessApi['request']> =>
  api.request('GET', target, { headers: { accept } });

describe('Table', () => {
  const TABLE =
    'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';

  it('of a list', async () => {
    const { headers, json } = (await get(path, TABLE)).expect(200);
    expect(headers['content-type']).toBe('application/json');
    expect(json).toMatchObject({ kind: 'Table', apiVersion: 'meta.k8s.io/v1' });
    expect(json.metadata.resourceVersion).toBe(String(api.store.revision));
    expect(
      json.columnDefinitions.map(({ name, type, format, priority }: Anything) => [name, type, format, priority]),
    ).toEqual([
      ['Name', 'string', 'name', 0],
      ['Data', 'string', '', 0],
      ['Age', 'string', '', 0],
    ]);
    expect(json.rows.map(({ cells }: Anything) => cells.slice(0, 2))).toEqual([
      ['a', 1],
      ['b', 1],
    ]);
    expect(json.rows[0].cells[2]).toMatch(/^\d+s$/);
  });

  it('of one object, and of pages', async () => {
    const one = (await get(`${path}/a`, TABLE)).expect(200).json;
    expect(one).toMatchObject({ kind: 'Table', rows: [{ cells: ['a', 1, expect.any(String)] }] });
    const page = (await get(`${path}?limit=1`, TABLE)).expect(200).json;
    expect(page.rows).toHaveLength(1);
    expect(page.metadata).toMatchObject({ remainingItemCount: 1, continue: expect.any(String) });
  });

  it('with as much of each object as asked for', async () => {
    const rows = async (query: string): Promise<Anything> =>
      (await get(`${path}?${query}`, TABLE)).expect(200).json.rows[0];
    const metadata = (await rows('')).object;
    expect(metadata).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { name: 'a' },
    });
    expect(metadata).not.toHaveProperty('data');
    expect((await rows('includeObject=Metadata')).object).toEqual(metadata);
    expect((await rows('includeObject=Object')).object).toMatchObject({
      kind: 'ConfigMap',
      apiVersion: 'v1',
      data: { key: 'value' },
    });
    expect((await rows('includeObject=None')).object ?? null).toBeNull();
    expect((await get(`${path}?includeObject=All`, TABLE)).status).toBe(400);
  });

  it('of an empty list has its columns', async () => {
    const { json } = (await get(`/api/v1/namespaces/${await makeNamespace(api)}/pods`, TABLE)).expect(200);
    expect(json.rows).toEqual([]);
    expect(json.columnDefinitions.map(({ name }: Anything) => name)).toEqual([
      'Name',
      'Ready',
      'Status',
      'Restarts',
      'Age',
      'IP',
      'Node',
      'Nominated Node',
      'Readiness Gates',
    ]);
  });

  it('of what was written', async () => {
    const answer = await api.request('POST', path, { body: configMap('written'), headers: { accept: TABLE } });
    expect(answer.expect(201).json).toMatchObject({
      kind: 'Table',
      rows: [{ cells: ['written', 0, expect.any(String)] }],
    });
    (await api.request('DELETE', `${path}/written`)).expect(200);
  });
});

describe('PartialObjectMetadata', () => {
  it('of one object', async () => {
    const { json } = (await get(`${path}/a`, 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1')).expect(
      200,
    );
    expect(Object.keys(json).sort()).toEqual(['apiVersion', 'kind', 'metadata']);
    expect(json).toMatchObject({
      kind: 'PartialObjectMetadata',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { name: 'a', namespace },
    });
  });

  it('of a list', async () => {
    const accept =
      'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json';
    const { json } = (await get(`${path}?limit=1`, accept)).expect(200);
    expect(json).toMatchObject({
      kind: 'PartialObjectMetadataList',
      apiVersion: 'meta.k8s.io/v1',
      metadata: { remainingItemCount: 1 },
    });
    expect(json.items[0]).toMatchObject({ kind: 'PartialObjectMetadata', metadata: { name: 'a' } });
  });
});

describe('YAML and JSON', () => {
  it('answers in YAML what it answers in JSON', async () => {
    for (const target of [path, `${path}/a`]) {
      const yaml = (await get(target, 'application/yaml')).expect(200);
      expect(yaml.headers['content-type']).toBe('application/yaml');
      expect(parse(yaml.text)).toEqual((await get(target, 'application/json')).json);
    }
    const table = (await get(path, 'application/yaml;as=Table;v=v1;g=meta.k8s.io')).expect(200);
    expect(parse(table.text)).toMatchObject({ kind: 'Table', rows: [{ cells: ['a', 1, expect.any(String)] }, {}] });
  });

  it('answers errors in the form asked for, too', async () => {
    const answer = await get(`${path}/missing`, 'application/yaml');
    expect(answer.status).toBe(404);
    expect(answer.headers['content-type']).toBe('application/yaml');
    expect(parse(answer.text)).toMatchObject({ kind: 'Status', reason: 'NotFound', code: 404 });
    expect((await get(`${path}/missing`, 'application/json')).headers['content-type']).toBe('application/json');
    // A form that has no errors of its own: they come as they are.
    expect((await get(`${path}/missing`, 'application/json;as=Table;v=v1;g=meta.k8s.io')).json.kind).toBe('Status');
  });

  it.each([
    ['', 'application/json'],
    ['*/*', 'application/json'],
    ['application/*', 'application/json'],
    ['application/vnd.kubernetes.protobuf,application/json', 'application/json'],
    ['application/yaml,application/json', 'application/yaml'],
    ['application/yaml;q=0.5,application/json', 'application/json'],
    ['application/json;q=0.1, application/yaml;q=0.9', 'application/yaml'],
    ['text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8', 'application/json'],
  ])('takes Accept: %s', async (accept, expected) => {
    expect((await get(`${path}/a`, accept)).expect(200).headers['content-type']).toBe(expected);
  });

  it.each([
    'application/vnd.kubernetes.protobuf',
    'text/html',
    'application/json;as=Table;v=v2;g=meta.k8s.io',
    'application/json;as=Chart;v=v1;g=meta.k8s.io',
    'application/json;q=0',
  ])('refuses Accept: %s', async (accept) => {
    const answer = await get(`${path}/a`, accept);
    expect(answer.status).toBe(406);
    expect(answer.json).toMatchObject({ kind: 'Status', reason: 'NotAcceptable', code: 406 });
    expect(answer.json.message).toContain('only the following media types are accepted');
  });
});

describe('HEAD', () => {
  it('finds what GET finds', async () => {
    expect((await api.request('HEAD', `${path}/a`)).status).toBe(200);
    expect((await api.request('HEAD', path)).status).toBe(200);
    expect((await api.request('HEAD', `${path}/missing`)).status).toBe(404);
    expect((await api.request('HEAD', '/healthz')).status).toBe(200);
  });
});
