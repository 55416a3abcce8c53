import { getEventListeners } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../api/meta.ts';
import { ApiError } from '../api/status.ts';
import { Client, type WatchEvent } from './client.ts';
import { keyOf, type Resource, splitKey } from './resource.ts';
import { failure, type ScriptedAnswer, ScriptedTransport, ScriptedWatch, thing } from './scripted-transport.fixture.ts';
import { TransportError } from './transport.ts';

const { signal } = new AbortController();
const PODS: Resource = { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true };
const LEASES: Resource = {
  group: 'coordination.k8s.io',
  version: 'v1',
  plural: 'leases',
  kind: 'Lease',
  namespaced: true,
};
const NODES: Resource = { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false };

function scene(answer: ScriptedAnswer = { body: {} }) {
  const transport = new ScriptedTransport(() => answer);
  return { transport, client: new Client(transport, 'tester') };
}

const pod = (name: string): KubeObject => ({ ...thing(name, 5), kind: 'Pod', spec: { unknown: [1, { deep: true }] } });

describe('requests', () => {
  const cases: readonly [string, (client: Client) => Promise<unknown>, string, unknown][] = [
    ['get', (client) => client.get(PODS, 'a b', 'c', signal), 'GET /api/v1/namespaces/a%20b/pods/c', undefined],
    ['get of a cluster', (client) => client.get(NODES, '', 'n', signal), 'GET /api/v1/nodes/n', undefined],
    ['list of all namespaces', (client) => client.list(PODS, {}, signal), 'GET /api/v1/pods', undefined],
    [
      'list',
      (client) => client.list(LEASES, { namespace: 'n', labelSelector: 'a=b', limit: 5, continue: 'x/y' }, signal),
      'GET /apis/coordination.k8s.io/v1/namespaces/n/leases?labelSelector=a%3Db&limit=5&continue=x%2Fy',
      undefined,
    ],
    [
      'create',
      (client) => client.create(PODS, pod('a'), signal, { dryRun: true }),
      'POST /api/v1/namespaces/default/pods?fieldManager=tester&dryRun=All',
      pod('a'),
    ],
    [
      'update of a status',
      (client) => client.update(PODS, pod('a'), signal, { subresource: 'status' }),
      'PUT /api/v1/namespaces/default/pods/a/status?fieldManager=tester',
      pod('a'),
    ],
    [
      'merge patch',
      (client) => client.patch(PODS, 'n', 'a', { type: 'merge', body: { x: null } }, signal),
      'PATCH /api/v1/namespaces/n/pods/a?fieldManager=tester application/merge-patch+json',
      { x: null },
    ],
    [
      'strategic patch',
      (client) => client.patch(PODS, 'n', 'a', { type: 'strategic', body: {} }, signal),
      'PATCH /api/v1/namespaces/n/pods/a?fieldManager=tester application/strategic-merge-patch+json',
      {},
    ],
    [
      'JSON patch',
      (client) => client.patch(PODS, 'n', 'a', { type: 'json', body: [] }, signal, { subresource: 'status' }),
      'PATCH /api/v1/namespaces/n/pods/a/status?fieldManager=tester application/json-patch+json',
      [],
    ],
    [
      'apply',
      (client) => client.patch(PODS, 'n', 'a', { type: 'apply', body: {}, force: true }, signal),
      'PATCH /api/v1/namespaces/n/pods/a?fieldManager=tester&force=true application/apply-patch+yaml',
      {},
    ],
    [
      'delete',
      (client) =>
        client.delete(PODS, 'n', 'a', signal, { gracePeriodSeconds: 0, preconditions: { uid: 'u' }, dryRun: true }),
      'DELETE /api/v1/namespaces/n/pods/a',
      { apiVersion: 'v1', kind: 'DeleteOptions', gracePeriodSeconds: 0, preconditions: { uid: 'u' }, dryRun: ['All'] },
    ],
    [
      'delete of a collection',
      (client) =>
        client.deleteCollection(PODS, { namespace: 'n', labelSelector: 'a=b' }, signal, {
          propagationPolicy: 'Background',
        }),
      'DELETE /api/v1/namespaces/n/pods?labelSelector=a%3Db',
      { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background' },
    ],
    [
      'post to a subresource',
      (client) => client.post(PODS, 'n', 'a', 'eviction', pod('a'), signal),
      'POST /api/v1/namespaces/n/pods/a/eviction',
      pod('a'),
    ],
    ['get of a path', (client) => client.getPath('/version', signal), 'GET /version', undefined],
  ];

  it.each(cases)('%s', async (_name, call, expected, body) => {
    const { client, transport } = scene();
    await call(client);
    const [request] = transport.requests;
    const type = request?.headers['content-type'];
    const special = type === undefined || type === 'application/json' ? '' : ` ${type}`;
    expect(`${request?.method} ${request?.path}${special}`).toBe(expected);
    expect(request?.body === undefined ? undefined : JSON.parse(request.body)).toEqual(body);
    expect(request?.headers).toMatchObject({ accept: 'application/json', 'user-agent': 'tester/godwit' });
  });

  it('name an object, never all of them by mistake', async () => {
    const { client, transport } = scene();
    const wrong = [
      () => client.get(PODS, 'n', '', signal),
      () => client.delete(PODS, 'n', '', signal),
      () => client.delete(PODS, '', 'a', signal),
      () => client.patch(PODS, 'n', '', { type: 'merge', body: {} }, signal),
      () => client.update(PODS, { apiVersion: 'v1', kind: 'Pod', metadata: { namespace: 'n' } }, signal),
      () => client.post(PODS, 'n', '', 'eviction', pod('a'), signal),
    ];
    for (const call of wrong) await expect(call()).rejects.toThrow('was asked for without saying which');
    await expect(client.deleteCollection(PODS, { namespace: '' }, signal)).rejects.toThrow('all pods');
    expect(transport.requests).toHaveLength(0);
  });

  it('ask for metadata alone where that is enough', async () => {
    const { client, transport } = scene({ body: { metadata: {}, items: [] } });
    const metadata = client.metadataOnly();
    await metadata.get(PODS, 'n', 'a', signal);
    await metadata.list(PODS, {}, signal);
    await metadata.watch(PODS, {}, signal);
    await metadata.patch(PODS, 'n', 'a', { type: 'merge', body: {} }, signal);
    await metadata.delete(PODS, 'n', 'a', signal);
    const one = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json';
    const list = one.replace('Metadata;', 'MetadataList;');
    expect(transport.requests.map(({ headers }) => headers['accept'])).toEqual([one, list, one, one, one]);
  });

  it('fill in what kind an object is', async () => {
    const { client, transport } = scene();
    await client.create(LEASES, { apiVersion: '', kind: '', metadata: { name: 'l', namespace: 'n' } }, signal);
    expect(JSON.parse(transport.requests[0]?.body ?? '')).toMatchObject({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
    });
  });

  it('may share one signal, however many', async () => {
    const { client } = scene();
    const stop = new AbortController();
    const warnings: unknown[] = [];
    const onWarning = (warning: unknown) => void warnings.push(warning);
    process.on('warning', onWarning);
    await client.getPath('/', stop.signal);
    for (let count = 0; count < 20; count++) stop.signal.addEventListener('abort', () => undefined);
    await new Promise((resolve) => setImmediate(resolve));
    process.off('warning', onWarning);
    expect(getEventListeners(stop.signal, 'abort')).toHaveLength(20);
    expect(warnings).toEqual([]);
  });
});

describe('answers', () => {
  it('keep what nobody here knows', async () => {
    const object = pod('a');
    const { client } = scene({ body: object });
    expect(await client.get(PODS, 'default', 'a', signal)).toEqual(object);
  });

  it('that are lists say what their items are', async () => {
    const { client } = scene({
      body: { metadata: { resourceVersion: '7' }, items: [{ metadata: { name: 'a' } }, pod('b')] },
    });
    const { items, metadata } = await client.list(LEASES, {}, signal);
    expect(items[0]).toEqual({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name: 'a' } });
    expect(items[1]).toEqual(pod('b'));
    expect(metadata.resourceVersion).toBe('7');
    expect((await scene({ body: { metadata: {}, items: null } }).client.list(PODS, {}, signal)).items).toEqual([]);
    await expect(scene({ body: { metadata: {}, items: 5 } }).client.list(PODS, {}, signal)).rejects.toThrow(
      'without items',
    );
  });

  it('that refuse are thrown as they are', async () => {
    const details = { name: 'a', kind: 'pods', causes: [{ reason: 'x' }] };
    const { client } = scene(failure(409, 'Conflict', details));
    const error: unknown = await client.get(PODS, 'n', 'a', signal).catch((reason: unknown) => reason);
    expect(error).toBeInstanceOf(ApiError);
    expect(error).toMatchObject({ code: 409, reason: 'Conflict', message: '409', details });
  });

  it.each<[string, ScriptedAnswer, object]>([
    [
      'a proxy',
      { status: 502, body: '<html>Bad gateway</html>' },
      { code: 502, reason: 'Unknown', message: 'the server answered 502: <html>Bad gateway</html>' },
    ],
    ['nobody', { status: 500, body: '' }, { code: 500, message: 'the server answered 500: ' }],
    ['something that is null', { status: 500, body: 'null' }, { code: 500 }],
    [
      'a Status without a code',
      { status: 403, body: { kind: 'Status', reason: 'Forbidden' } },
      { code: 403, reason: 'Forbidden' },
    ],
    [
      'a server that says in a header when to come back',
      {
        status: 429,
        headers: { 'retry-after': '7' },
        body: { kind: 'Status', reason: 'TooManyRequests', details: { kind: 'pods' } },
      },
      { code: 429, details: { kind: 'pods', retryAfterSeconds: 7 } },
    ],
    [
      'one that says so in both places',
      { ...failure(429, 'TooManyRequests', { retryAfterSeconds: 3 }), headers: { 'retry-after': '7' } },
      { details: { retryAfterSeconds: 3 } },
    ],
    [
      'one that names a date',
      { status: 503, headers: { 'retry-after': 'Fri, 01 Jan 2027 00:00:00 GMT' }, body: '' },
      { code: 503, details: undefined },
    ],
  ])('that refuse, from %s', async (_name, answer, expected) => {
    await expect(scene(answer).client.getPath('/', signal)).rejects.toMatchObject(expected);
  });

  it('say that there is no object only where they name it', async () => {
    const missing = scene(failure(404, 'NotFound', { name: 'a', kind: 'pods' })).client;
    expect(await missing.find(PODS, 'n', 'a', signal)).toBeUndefined();
    expect(await scene({ body: pod('a') }).client.find(PODS, 'n', 'a', signal)).toMatchObject({ kind: 'Pod' });
    const unserved = scene(failure(404, 'NotFound', {})).client;
    await expect(unserved.find(PODS, 'n', 'a', signal)).rejects.toThrow('does not serve pods');
    await expect(scene(failure(403, 'Forbidden')).client.find(PODS, 'n', 'a', signal)).rejects.toThrow(ApiError);
  });

  it('that were cut off are no answers', async () => {
    const { client } = scene({ body: '{"items": [' });
    await expect(client.list(PODS, {}, signal)).rejects.toBeInstanceOf(TransportError);
  });
});

describe('watches', () => {
  async function collect(events: AsyncIterable<WatchEvent>): Promise<string[]> {
    const lines: string[] = [];
    for await (const { type, object } of events) lines.push(`${type} ${object.kind}`);
    return lines;
  }

  it('ask for what was asked, and give events until they end', async () => {
    const watch = new ScriptedWatch();
    const { client, transport } = scene({ body: watch });
    const options = { namespace: 'n', resourceVersion: '5', allowWatchBookmarks: true, timeoutSeconds: 60 };
    const events = await client.watch(PODS, options, signal);
    expect(transport.requests[0]?.path).toBe(
      '/api/v1/namespaces/n/pods?resourceVersion=5&allowWatchBookmarks=true&timeoutSeconds=60&watch=true',
    );
    watch.send({ type: 'ADDED', object: pod('a') }, { type: 'ERROR', object: { kind: 'Status', code: 410 } });
    watch.sendText('\n');
    watch.end();
    expect(await collect(events)).toEqual(['ADDED Pod', 'ERROR Status']);
  });

  it('are refused like everything else', async () => {
    const { client } = scene(failure(410, 'Expired'));
    await expect(client.watch(PODS, { resourceVersion: '1' }, signal)).rejects.toMatchObject({ code: 410 });
  });

  it.each([
    'hello',
    'null',
    '5',
    '{"type":"ADDED"}',
    '{"type":"ADDED","object":null}',
    '{"type":"ADDED","object":{}}',
    '{"object":{}}',
  ])('that send %s are broken', async (line) => {
    const watch = new ScriptedWatch();
    const { client } = scene({ body: watch });
    watch.sendText(`${line}\n`);
    await expect(collect(await client.watch(PODS, {}, signal))).rejects.toBeInstanceOf(TransportError);
  });

  it('give their connection back when they are left', async () => {
    const watch = new ScriptedWatch();
    const { client } = scene({ body: watch });
    watch.send({ type: 'ADDED', object: pod('a') });
    for await (const event of await client.watch(PODS, {}, signal)) {
      expect(event.type).toBe('ADDED');
      break;
    }
    expect(watch.isClosed).toBe(true);
  });
});

describe('keys', () => {
  it.each([
    [{ namespace: 'n', name: 'a' }, 'n/a'],
    [{ namespace: '', name: 'a' }, 'a'],
    [{ name: 'a' }, 'a'],
  ] as [{ namespace?: string; name: string }, string][])('of %o are %s, and lead back', (metadata, key) => {
    expect(keyOf({ metadata })).toBe(key);
    expect(splitKey(key)).toEqual({ namespace: metadata.namespace ?? '', name: 'a' });
  });
});
