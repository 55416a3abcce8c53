import { describe, expect, it } from 'vitest';
import { ApiError } from '../../api/status.ts';
import { Discovery } from './discovery.ts';
import { FakeSource, jsonOf, namespaces, pods, requestFor } from './fake-source.fixture.ts';
import type { DiscoveryVersion } from './groups.ts';
import { parseLegacyResources } from './legacy.ts';
import { compareVersions } from './priority.ts';

const V2 = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList';
const V2_BETA = 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList';

interface Aggregated {
  kind: string;
  apiVersion: string;
  items: { metadata: { name?: string }; versions: DiscoveryVersion[] }[];
}

interface Group {
  name: string;
  versions: { groupVersion: string; version: string }[];
  preferredVersion: { version: string };
}

function start() {
  const source = new FakeSource();
  const discovery = new Discovery(source);
  return {
    source,
    get: (path: string, headers: Record<string, string> = {}) => discovery.handle(requestFor(path, headers), path),
    call: (path: string, method: string) => discovery.handle(requestFor(path, {}, method), path),
  };
}

describe('compareVersions', () => {
  it('puts GA before beta before alpha, and higher numbers first', () => {
    const sorted = ['v10', 'v2', 'v1', 'v11beta2', 'v10beta3', 'v3beta1', 'v12alpha1', 'v11alpha2', 'foo1', 'foo10'];
    expect([...sorted].reverse().sort(compareVersions)).toEqual(sorted);
  });
});

describe('aggregated discovery', () => {
  it.each([
    ['what kubectl 1.30 and later send', `${V2},${V2_BETA},application/json`, 'v2', V2],
    ['what kubectl before 1.30 sends', `${V2_BETA},application/json`, 'v2beta1', V2_BETA],
    [
      'parameters in another order, with spaces',
      `application/json; as=APIGroupDiscoveryList; v=v2; g=apidiscovery.k8s.io`,
      'v2',
      V2,
    ],
    ['a version of the future before one that is known', `${V2.replace('v2', 'v3')},${V2}`, 'v2', V2],
    ['qualities', `${V2};q=0.5,${V2_BETA};q=0.9`, 'v2beta1', V2_BETA],
  ])('answers %s', (_name, accept, version, type) => {
    const response = start().get('/apis', { accept });
    expect(response?.headers).toMatchObject({ 'content-type': type, 'cache-control': 'public' });
    expect(jsonOf<Aggregated>(response)).toMatchObject({
      kind: 'APIGroupDiscoveryList',
      apiVersion: `apidiscovery.k8s.io/${version}`,
    });
  });

  it.each([
    undefined,
    'application/json',
    '*/*',
    `application/json,${V2};q=0.1`,
    'application/vnd.kubernetes.protobuf',
  ])('answers the old form to Accept %s', (accept) => {
    const response = start().get('/apis', accept === undefined ? {} : { accept });
    expect(response?.headers['content-type']).toBe('application/json');
    expect(jsonOf<{ kind: string }>(response).kind).toBe('APIGroupList');
  });

  it('lists groups by priority and versions by preference', () => {
    const { items } = jsonOf<Aggregated>(start().get('/apis', { accept: V2 }));
    expect(items.map((group) => group.metadata.name)).toEqual(['apps', 'coordination.k8s.io', 'example.com']);
    expect(items[2]?.versions.map((each) => each.version)).toEqual(['v1', 'v2beta1', 'v1alpha1']);
  });

  it('tells everything about a resource', () => {
    const { items } = jsonOf<Aggregated>(start().get('/api', { accept: V2 }));
    expect(items).toHaveLength(1);
    expect(items[0]?.versions[0]?.freshness).toBe('Current');
    expect(items[0]?.versions[0]?.resources).toMatchObject([
      { resource: 'namespaces', scope: 'Cluster' },
      {
        resource: 'pods',
        responseKind: { group: '', version: 'v1', kind: 'Pod' },
        scope: 'Namespaced',
        singularResource: 'pod',
        verbs: ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'update', 'watch'],
        shortNames: ['po'],
        categories: ['all'],
        subresources: [
          {
            subresource: 'eviction',
            responseKind: { group: 'policy', version: 'v1', kind: 'Eviction' },
            verbs: ['create'],
          },
          {
            subresource: 'status',
            responseKind: { group: '', version: 'v1', kind: 'Pod' },
            verbs: ['get', 'patch', 'update'],
          },
        ],
      },
    ]);
  });

  it('answers 304 until something changes', () => {
    const { source, get } = start();
    const etag = String(get('/api', { accept: V2 })?.headers['etag']);
    expect(get('/api', { accept: V2, 'if-none-match': etag })).toMatchObject({ status: 304, body: '' });
    expect(get('/api', { accept: V2, 'if-none-match': `"x", W/${etag}` })?.status).toBe(304);
    expect(get('/api', { accept: V2_BETA, 'if-none-match': etag })?.status).toBe(200);
    source.change([pods]);
    expect(get('/api', { accept: V2, 'if-none-match': etag })?.status).toBe(200);
  });

  it('merges what other servers serve, and says when that is old', () => {
    const { source, get } = start();
    const resource = {
      resource: 'vms',
      responseKind: { group: 'sub.example.com', version: 'v1', kind: 'Vm' },
    } as const;
    const rest = { scope: 'Namespaced', singularResource: 'vm', verbs: ['get'] } as const;
    source.change(
      [pods, namespaces],
      [
        {
          group: 'sub.example.com',
          version: 'v1',
          groupPriority: 2000,
          versionPriority: 15,
          freshness: 'Stale',
          resources: [{ ...resource, ...rest }],
        },
      ],
    );
    const { items } = jsonOf<Aggregated>(get('/apis', { accept: V2 }));
    expect(items).toMatchObject([
      {
        metadata: { name: 'sub.example.com' },
        versions: [{ version: 'v1', freshness: 'Stale', resources: [{ resource: 'vms' }] }],
      },
    ]);
    expect(jsonOf<{ groups: Group[] }>(get('/apis')).groups[0]?.name).toBe('sub.example.com');
  });
});

describe('legacy discovery', () => {
  it('answers APIVersions with the address that the client used', () => {
    expect(jsonOf(start().get('/api', { host: 'localhost:6443' }))).toEqual({
      kind: 'APIVersions',
      versions: ['v1'],
      serverAddressByClientCIDRs: [{ clientCIDR: '0.0.0.0/0', serverAddress: 'localhost:6443' }],
    });
  });

  it('answers APIGroupList and APIGroup', () => {
    const { get } = start();
    const { groups } = jsonOf<{ groups: Group[] }>(get('/apis/'));
    expect(groups.map((group) => group.name)).toEqual(['apps', 'coordination.k8s.io', 'example.com']);
    expect(jsonOf(get('/apis/example.com'))).toEqual({ kind: 'APIGroup', apiVersion: 'v1', ...groups[2] });
    expect(groups[2]?.preferredVersion).toEqual({ groupVersion: 'example.com/v1', version: 'v1' });
  });

  it('answers APIResourceList with the group of a foreign kind', () => {
    const list = jsonOf<{ resources: { name: string }[] }>(start().get('/api/v1'));
    expect(list).toMatchObject({ kind: 'APIResourceList', groupVersion: 'v1' });
    expect(list.resources.map((each) => each.name)).toEqual(['namespaces', 'pods', 'pods/eviction', 'pods/status']);
    expect(list.resources[2]).toEqual({
      name: 'pods/eviction',
      singularName: '',
      namespaced: true,
      group: 'policy',
      version: 'v1',
      kind: 'Eviction',
      verbs: ['create'],
    });
    expect(list.resources[3]).not.toHaveProperty('group');
  });

  it('reads back what it writes, and parents that are not served', () => {
    const { get } = start();
    const body = get('/api/v1')?.body as Uint8Array;
    const written = jsonOf<Aggregated>(get('/api', { accept: V2 })).items[0]?.versions[0]?.resources ?? [];
    expect(parseLegacyResources(Buffer.from(body).toString())).toEqual(
      written.map((resource) => ({ ...resource, subresources: resource.subresources ?? [] })),
    );
    const orphan = {
      kind: 'APIResourceList',
      groupVersion: 'a/v1',
      resources: [{ name: 'x/y', kind: 'Y', verbs: ['get', 1] }],
    };
    expect(parseLegacyResources(JSON.stringify(orphan))).toMatchObject([
      { resource: 'x', responseKind: { kind: '' }, subresources: [{ subresource: 'y', verbs: ['get'] }] },
    ]);
  });

  it.each(['null', '[]', '{}', '{"kind":"APIResourceList"}', '<html>', '{"kind":"Status"}'])(
    'does not believe %s to be a list of resources',
    (text) => {
      expect(() => parseLegacyResources(text)).toThrow();
    },
  );
});

describe('paths', () => {
  it.each(['/apis/nobody', '/apis/example.com/v9', '/api/v2', '/apis/__proto__'])('answers 404 for %s', (path) => {
    expect(() => start().get(path)).toThrow(ApiError);
  });

  it.each(['/', '/healthz', '/api/v1/pods', '/apis/apps/v1/deployments', '/apiss'])('leaves %s to others', (path) => {
    expect(start().get(path)).toBeUndefined();
  });

  it('answers 405 to writes', () => {
    expect(() => start().call('/apis', 'POST')).toThrow(expect.objectContaining({ code: 405 }));
    expect(start().call('/apis', 'HEAD')?.status).toBe(200);
  });
});
