import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Anything, Api } from '../support/api.ts';
import { InProcessApi } from '../support/in-process.ts';
import { configMap, makeRoom } from '../support/objects.ts';

/** What is served besides resources: health for everybody, the rest for those who are known. */

let api: InProcessApi;
let anonymous: Api;
let nobody: Api;

beforeAll(async () => {
  api = await InProcessApi.start();
  anonymous = api.as(undefined);
  nobody = api.as({ commonName: 'nobody', organizations: [] });
});
afterAll(() => api.stop());

describe('health', () => {
  it.each(['/healthz', '/livez', '/readyz'])('%s tells anybody', async (path) => {
    const answer = (await anonymous.request('GET', path)).expect(200);
    expect(answer.text).toBe('ok');
    expect(answer.headers['content-type']).toContain('text/plain');
    expect((await api.request('HEAD', path)).status).toBe(200);
  });

  it.each(['/healthz', '/livez', '/readyz'])('%s?verbose tells each check', async (path) => {
    const { text } = (await anonymous.request('GET', `${path}?verbose`)).expect(200);
    expect(text).toMatch(/^(\[\+\][a-z/-]+ ok\n)+/);
    expect(text).toContain('[+]ping ok\n');
    expect(text.endsWith(`${path.slice(1)} check passed\n`)).toBe(true);
    expect((await api.request('GET', `${path}/ping`)).expect(200).text).toBe('ok');
    expect((await api.request('GET', `${path}/nothing`)).status).toBe(404);
  });

  it('changes while the server is stopping: alive, but not ready', async () => {
    const own = await InProcessApi.start();
    await own.stop();
    expect((await own.as(undefined).request('GET', '/livez')).status).toBe(200);
    const unready = await own.as(undefined).request('GET', '/readyz');
    expect(unready.status).toBe(500);
    expect(unready.text).toMatch(/\[-\][a-z/-]+ failed/);
  });
});

describe('everything else', () => {
  it.each([
    '/version',
    '/metrics',
    '/api',
    '/apis',
    '/openapi/v2',
    '/openapi/v3',
    '/',
    '/api/v1/namespaces',
    '/api/v1/namespaces/default/secrets/x',
  ])('%s is not for the unknown', async (path) => {
    const answer = await anonymous.request('GET', path);
    expect(answer.status).toBe(403);
    expect(answer.json).toMatchObject({ kind: 'Status', reason: 'Forbidden', code: 403 });
    expect(answer.json.message).toContain('User "system:anonymous" cannot');
  });

  it.each(['/version', '/api', '/apis', '/apis/apps/v1', '/openapi/v2', '/openapi/v3'])(
    '%s is for everybody who is known',
    async (path) => {
      (await nobody.request('GET', path)).expect(200);
    },
  );

  it.each(['/metrics', '/api/v1/namespaces', '/logs'])('%s is for those who may', async (path) => {
    expect((await nobody.request('GET', path)).status).toBe(403);
  });

  it('/version tells which Kubernetes this is', async () => {
    expect((await nobody.request('GET', '/version')).json).toMatchObject({
      major: '1',
      minor: '34',
      gitVersion: expect.stringMatching(/^v1\.34\./),
    });
  });

  it('/ lists the paths', async () => {
    const { paths } = (await api.request('GET', '/')).expect(200).json;
    expect(paths).toEqual(
      expect.arrayContaining([
        '/api',
        '/api/v1',
        '/apis',
        '/apis/apps',
        '/apis/apps/v1',
        '/healthz',
        '/metrics',
        '/version',
      ]),
    );
  });

  it('refuses other methods, and paths that lead nowhere', async () => {
    expect((await api.request('POST', '/version')).status).toBe(405);
    expect((await api.request('DELETE', '/healthz')).status).toBe(405);
    for (const path of ['/nothing', '/api/v2', '/api/v1/nothings', '/apis/nowhere/v1', '/apis/apps/v7/deployments']) {
      const answer = await api.request('GET', path);
      expect([path, answer.status, answer.json.reason]).toEqual([path, 404, 'NotFound']);
    }
  });
});

describe('discovery', () => {
  const AGGREGATED = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json';

  it.each([
    ['/api', AGGREGATED],
    ['/apis', AGGREGATED],
    ['/apis', 'application/json'],
    ['/apis/apps/v1', 'application/json'],
    ['/openapi/v3/apis/apps/v1', 'application/json'],
    ['/openapi/v2', 'application/json'],
  ])('%s as %s need not be sent again to who has it', async (path, accept) => {
    const first = (await api.request('GET', path, { headers: { accept } })).expect(200);
    const etag = String(first.headers['etag']);
    expect(etag).toMatch(/^"[0-9A-F]{128}"$/);
    const again = await api.request('GET', path, { headers: { accept, 'if-none-match': etag } });
    expect([again.status, again.text, again.headers['etag']]).toEqual([304, '', etag]);
    (await api.request('GET', path, { headers: { accept, 'if-none-match': '"other"' } })).expect(200);
  });

  it('has another tag once something else is served', async () => {
    const read = (): Promise<Anything> => api.request('GET', '/apis', { headers: { accept: AGGREGATED } });
    const before = (await read()).headers['etag'];
    const crd = {
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'widgets.example.org' },
      spec: {
        group: 'example.org',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
      },
    };
    (await api.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body: crd })).expect(201);
    const after = await read();
    expect(after.headers['etag']).not.toBe(before);
    expect(after.text).toContain('widgets');
  });
});

describe('/metrics', () => {
  const sample = async (name: string, labels: Record<string, string>): Promise<number> => {
    const answer = (await api.request('GET', '/metrics')).expect(200);
    expect(answer.headers['content-type']).toContain('text/plain');
    const line = answer.text
      .split('\n')
      .find(
        (each) =>
          each.startsWith(`${name}{`) &&
          Object.entries(labels).every(([key, value]) => each.includes(`${key}="${value}"`)),
      );
    return Number(line?.slice(line.lastIndexOf(' ')) ?? 0);
  };

  it('counts requests by what was asked and answered', async () => {
    const path = await makeRoom(api);
    const counted = { resource: 'configmaps', version: 'v1' };
    const posts = { ...counted, verb: 'POST', code: '201', scope: 'resource' };
    const misses = { ...counted, verb: 'GET', code: '404' };
    const [before, missed] = [
      await sample('apiserver_request_total', posts),
      await sample('apiserver_request_total', misses),
    ];
    for (const name of ['a', 'b', 'c']) (await api.request('POST', path, { body: configMap(name) })).expect(201);
    (await api.request('GET', `${path}/missing`)).expect(404);
    expect(await sample('apiserver_request_total', posts)).toBe(before + 3);
    expect(await sample('apiserver_request_total', misses)).toBe(missed + 1);
    expect(
      await sample('apiserver_request_duration_seconds_count', { ...counted, verb: 'POST' }),
    ).toBeGreaterThanOrEqual(3);
    expect(await sample('apiserver_storage_objects', { resource: 'configmaps' })).toBeGreaterThanOrEqual(3);
  });

  it('knows how many watches there are now', async () => {
    const path = await makeRoom(api);
    const watching = { verb: 'WATCH', resource: 'configmaps', scope: 'namespace' };
    const before = await sample('apiserver_longrunning_requests', watching);
    const streams = await Promise.all([1, 2, 3].map(() => api.watch(`${path}?watch=true`)));
    expect(await sample('apiserver_longrunning_requests', watching)).toBe(before + 3);
    for (const stream of streams) stream.close();
    await new Promise((resolve) => setImmediate(resolve));
    expect(await sample('apiserver_longrunning_requests', watching)).toBe(before);
    expect(await sample('apiserver_request_total', { ...watching, code: '200' })).toBeGreaterThanOrEqual(3);
  });

  it('has no series that clients could make up', async () => {
    for (let index = 0; index < 5; index++) await api.request('GET', `/api/v1/made-up-${index}`);
    expect((await api.request('GET', '/metrics')).text).not.toContain('made-up');
  });
});

describe('a path that means nothing', () => {
  it.each([
    ['POST', '/api/v1/configmaps', 405, 'the server does not allow this method on the requested resource'],
    ['GET', '/api/v1/namespaces/default/namespaces', 404, 'the server could not find the requested resource'],
    ['GET', '/api/v1/namespaces/default/configmaps/a%25b', 400, `Name parameter invalid: "a%b": may not contain '%'`],
  ])('%s %s', async (method, path, status, message) => {
    const body = method === 'POST' ? { metadata: { name: 'nowhere' } } : undefined;
    const answer = (await api.request(method, path, { body })).expect(status);
    expect(answer.json.message).toBe(message);
  });
});
