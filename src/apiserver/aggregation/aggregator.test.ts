import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ApiResponse, UserInfo } from '../http/message.ts';
import {
  Backend,
  createPki,
  requestOf,
  ROOT,
  serveDiscovery,
  type TestPki,
  tick,
  until,
  World,
} from './aggregation.fixture.ts';

const user: UserInfo = {
  username: 'ändi',
  uid: 'u-1',
  groups: ['dev', 'system:authenticated'],
  extra: { 'example.com/scope': ['a', 'b'] },
};

async function textOf(response: ApiResponse): Promise<string> {
  if (typeof response.body === 'string') return response.body;
  let text = '';
  for await (const chunk of response.body as AsyncIterable<Uint8Array>) text += Buffer.from(chunk).toString();
  return text;
}

let pki: TestPki;
let world: World;

beforeAll(async () => {
  pki = await createPki();
});

beforeEach(async () => {
  world = new World(pki);
  await world.start();
});

afterEach(() => world.stop());

describe('routing', () => {
  it('owns what an APIService with a service names, and nothing else', async () => {
    await world.register();
    world.views.apiServices.put({
      ...world.apiService({ service: undefined }),
      metadata: { name: 'v2.sub.example.com' },
    });
    expect(world.aggregator.owns(ROOT)).toBe(true);
    expect(world.aggregator.owns(`${ROOT}/namespaces/a/vms/b/pause`)).toBe(true);
    expect(world.aggregator.owns(`/openapi/v3${ROOT}`)).toBe(true);
    for (const path of ['/apis/sub.example.com', '/apis/sub.example.com/v2', '/apis/v1.sub/x', '/api/v1', '/', '']) {
      expect(world.aggregator.owns(path)).toBe(false);
    }
    world.forget();
    expect(world.aggregator.owns(ROOT)).toBe(false);
    await expect(world.aggregator.proxy(requestOf(ROOT), user)).rejects.toMatchObject({ code: 404 });
    expect(world.aggregator.remotes()).toEqual([]);
  });

  it.each(['..', '%2e%2E', '.', '.%2e'])('refuses %s in a path, which backends read differently', async (segment) => {
    await world.register();
    await expect(world.aggregator.proxy(requestOf(`${ROOT}/a/${segment}/b`), user)).rejects.toMatchObject({
      code: 400,
    });
    expect(world.backend.seen).toEqual([]);
  });
});

describe('proxying', () => {
  it('presents the front-proxy certificate and says who asks, whatever the client claims', async () => {
    await world.register();
    world.backend.handle = (_request, response) => {
      response.statusCode = 201;
      response.setHeader('warning', ['299 - "a"', '299 - "b"']);
      response.setHeader('connection', 'x-hop');
      response.setHeader('x-hop', '1');
      response.end('done');
    };
    const response = await world.aggregator.proxy(
      requestOf(`${ROOT}/namespaces/a/vms/b/pause?dryRun=All&x=a%20b`, {
        method: 'PUT',
        body: '{"a":1}',
        headers: {
          'content-type': 'application/json',
          authorization: 'Bearer secret',
          'x-remote-user': 'admin',
          'x-remote-group': 'system:masters',
          'x-remote-extra-scopes': 'all',
          'impersonate-user': 'admin',
          'x-forwarded-for': '203.0.113.9',
          connection: 'keep-alive, x-mine',
          'x-mine': '1',
          ':authority': 'server:6443',
          host: 'server:6443',
        },
      }),
      user,
    );
    expect(response.status).toBe(201);
    expect(response.headers['warning']).toEqual(['299 - "a"', '299 - "b"']);
    expect(response.headers).not.toHaveProperty('x-hop');
    expect(await textOf(response)).toBe('done');
    expect(world.backend.proxies.every((name) => name === 'front-proxy-client')).toBe(true);
    const [{ line, headers }] = world.backend.seen as [(typeof world.backend.seen)[number]];
    expect(line).toBe(`PUT ${ROOT}/namespaces/a/vms/b/pause?dryRun=All&x=a+b`);
    expect(headers).toMatchObject({
      host: 'api.apps.svc',
      'content-type': 'application/json',
      'content-length': '7',
      'x-remote-uid': 'u-1',
      'x-remote-group': 'dev, system:authenticated',
      'x-remote-extra-example.com%2fscope': 'a, b',
      'x-forwarded-for': '192.0.2.7',
    });
    expect(Buffer.from(String(headers['x-remote-user']), 'latin1').toString('utf8')).toBe('ändi');
    for (const name of ['authorization', 'x-remote-extra-scopes', 'impersonate-user', 'x-mine', ':authority']) {
      expect(headers).not.toHaveProperty(name);
    }
  });

  it('refuses users whose names would break a header', async () => {
    await world.register();
    const evil = { username: 'a\r\nx-remote-group: system:masters', groups: [] };
    await expect(world.aggregator.proxy(requestOf(ROOT), evil)).rejects.toMatchObject({ code: 400 });
  });

  it('streams answers as they come, and ends them when the client goes', async () => {
    await world.register();
    let isClosed = false;
    world.backend.handle = (_request, response) => {
      response.writeHead(200, { 'content-type': 'application/json' });
      response.write('{"type":"ADDED"}\n');
      response.on('close', () => {
        isClosed = true;
      });
    };
    const gone = new AbortController();
    const response = await world.aggregator.proxy(requestOf(`${ROOT}/vms?watch=1`, { signal: gone.signal }), user);
    const iterator = (response.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    expect(Buffer.from((await iterator.next()).value as Uint8Array).toString()).toBe('{"type":"ADDED"}\n');
    gone.abort();
    await expect(iterator.next()).rejects.toThrow();
    await until(() => isClosed);
  });

  it.each([
    ['GET', 304],
    ['DELETE', 204],
    ['HEAD', 200],
  ])('answers %s %i without a body', async (method, status) => {
    await world.register();
    world.backend.handle = (_request, response) => void response.writeHead(status, { etag: '"x"' }).end();
    const response = await world.aggregator.proxy(requestOf(ROOT, { method }), user);
    expect(response).toMatchObject({ status, headers: { etag: '"x"' }, body: '' });
  });

  it('answers 503 when the backend is down, and serves again when it is back', async () => {
    await world.register();
    const { port } = world.backend;
    await world.backend.stop();
    const down = world.aggregator.proxy(requestOf(ROOT), user);
    await expect(down).rejects.toMatchObject({
      code: 503,
      reason: 'ServiceUnavailable',
      message: 'the server is currently unable to handle the request',
    });
    await until(() => world.available().status === 'False');
    expect(world.available()).toMatchObject({ reason: 'FailedDiscoveryCheck' });
    expect(world.available().message).toContain(`failing or missing response from https://127.0.0.1:${port}${ROOT}`);
    expect(world.aggregator.remotes()).toMatchObject([{ freshness: 'Stale', resources: [{ resource: 'vms' }] }]);
    await world.restartBackend();
    // In small steps: a probe that is on its way must not see its own time run out.
    for (let round = 0; round < 30 && world.available().status !== 'True'; round++) {
      world.env.clock.advance(1_000);
      await tick(20);
    }
    expect(world.available().status).toBe('True');
    expect(world.aggregator.remotes()).toMatchObject([{ freshness: 'Current' }]);
    expect((await world.aggregator.proxy(requestOf(ROOT), user)).status).toBe(200);
  });

  it('gives up on a backend that does not answer', async () => {
    await world.register();
    world.backend.handle = () => undefined;
    const slow = world.aggregator.proxy(requestOf(`${ROOT}/vms`), user);
    await until(() => world.backend.seen.length > 0);
    world.env.clock.advance(60_000);
    await expect(slow).rejects.toMatchObject({ code: 504, reason: 'Timeout' });
    // Its probe hangs too, and is given up; from then on nobody waits.
    await until(() => world.backend.seen.some((each) => each.line === `GET ${ROOT}`));
    world.env.clock.advance(5_000);
    await until(() => world.available().status === 'False');
    await expect(world.aggregator.proxy(requestOf(ROOT), user)).rejects.toMatchObject({ code: 503 });
  });

  it('tries another address when one refuses', async () => {
    await world.register();
    const closed = new Backend(pki, serveDiscovery);
    await closed.start();
    await closed.stop();
    world.views.endpoints.put(world.endpoints([closed.port, world.backend.port]));
    for (let round = 0; round < 8; round++) {
      const response = await world.aggregator.proxy(requestOf(ROOT), user);
      expect(response.status).toBe(200);
      await textOf(response);
    }
  });

  it('asks again on a new connection when a kept one was closed', async () => {
    await world.register();
    await textOf(await world.aggregator.proxy(requestOf(ROOT), user));
    await world.restartBackend();
    expect((await world.aggregator.proxy(requestOf(ROOT), user)).status).toBe(200);
  });
});

describe('availability', () => {
  it('passes when discovery answers, and tells what is served', async () => {
    await world.register();
    expect(world.available()).toMatchObject({ status: 'True', reason: 'Passed', message: 'all checks passed' });
    expect(world.aggregator.remotes()).toEqual([
      {
        group: 'sub.example.com',
        version: 'v1',
        groupPriority: 2000,
        versionPriority: 10,
        freshness: 'Current',
        openApiHash: 'AB12',
        resources: [
          {
            resource: 'vms',
            responseKind: { group: '', version: '', kind: '' },
            scope: 'Namespaced',
            singularResource: '',
            verbs: [],
            subresources: [
              {
                subresource: 'pause',
                responseKind: { group: 'sub.example.com', version: 'v1', kind: 'Vm' },
                verbs: ['update'],
              },
            ],
          },
        ],
      },
    ]);
  });

  it('prefers aggregated discovery where a backend has it', async () => {
    world.backend.handle = (request, response) => {
      if (request.url !== '/apis') return serveDiscovery(request, response);
      response.setHeader('content-type', 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList');
      const resources = [
        {
          resource: 'vms',
          responseKind: { kind: 'Vm' },
          scope: 'Namespaced',
          singularResource: 'vm',
          verbs: ['get'],
          shortNames: ['v'],
        },
      ];
      const items = [{ metadata: { name: 'sub.example.com' }, versions: [{ version: 'v1', resources }] }];
      response.end(JSON.stringify({ kind: 'APIGroupDiscoveryList', items }));
    };
    let changes = 0;
    world.aggregator.onRemotesChange(() => changes++);
    await world.register();
    expect(world.aggregator.remotes()[0]?.resources).toEqual([
      {
        resource: 'vms',
        responseKind: { group: 'sub.example.com', version: 'v1', kind: 'Vm' },
        scope: 'Namespaced',
        singularResource: 'vm',
        verbs: ['get'],
        shortNames: ['v'],
      },
    ]);
    world.env.clock.advance(30_000);
    await until(() => world.backend.seen.length >= 3);
    await tick(20);
    expect(changes).toBe(1);
  });

  it.each<[string, () => void, string, string]>([
    [
      'no service',
      () => world.views.services.drop('apps', 'api'),
      'ServiceNotFound',
      'service/api in "apps" is not present',
    ],
    [
      'another port',
      () => world.views.services.put(world.service({ ports: [{ port: 80 }] })),
      'ServicePortError',
      'service/api in "apps" is not listening on port 443',
    ],
    [
      'no endpoints',
      () => world.views.endpoints.drop('apps', 'api'),
      'EndpointsNotFound',
      'cannot find endpoints for service/api in "apps"',
    ],
    [
      'no addresses',
      () => world.views.endpoints.put(world.endpoints([])),
      'MissingEndpoints',
      'endpoints for service/api in "apps" have no addresses with port name "https"',
    ],
  ])('says so when there is %s, as soon as that changes', async (_name, change, reason, message) => {
    await world.register();
    change();
    await until(() => world.available().status === 'False');
    expect(world.available()).toMatchObject({ reason, message });
    await expect(world.aggregator.proxy(requestOf(ROOT), user)).rejects.toMatchObject({ code: 503 });
  });

  it.each([
    [
      'a bad status',
      (response: { statusCode: number; end: (text: string) => void }) => {
        response.statusCode = 500;
        response.end('no');
      },
      `bad status from ${ROOT}: 500`,
    ],
    ['nonsense', (response: { end: (text: string) => void }) => response.end('<html>'), 'Unexpected token'],
  ])('fails on %s from discovery', async (_name, answer, message) => {
    world.backend.handle = (_request, response) => answer(response);
    await world.register();
    expect(world.available()).toMatchObject({ status: 'False', reason: 'FailedDiscoveryCheck' });
    expect(world.available().message).toContain(message);
  });

  it('trusts nobody but the caBundle, unless told to', async () => {
    const other = Buffer.from(pki.frontProxyAuthority.certificatePem).toString('base64');
    world.views.apiServices.put(world.apiService({ caBundle: other }));
    await until(() => world.available().status === 'False');
    expect(world.available().reason).toBe('FailedDiscoveryCheck');
    await expect(world.aggregator.proxy(requestOf(ROOT), user)).rejects.toMatchObject({ code: 503 });
    world.views.apiServices.put(world.apiService({ caBundle: undefined, insecureSkipTLSVerify: true }));
    await until(() => world.available().status === 'True');
  });

  it('follows an external name', async () => {
    world.views.services.put(world.service({ type: 'ExternalName', externalName: 'localhost' }));
    world.views.apiServices.put(
      world.apiService({ service: { namespace: 'apps', name: 'api', port: world.backend.port } }),
    );
    await until(() => world.available().status === 'True');
  });

  it('calls local ones available without looking', async () => {
    world.views.apiServices.put(world.apiService({ service: undefined }));
    await until(() => world.available().status === 'True');
    expect(world.available()).toMatchObject({ reason: 'Local', message: 'Local APIServices are always available' });
    expect(world.backend.seen).toEqual([]);
  });
});
