import { describe, expect, it } from 'vitest';
import { Client } from './client.ts';
import { discover, failureText, preferredResources } from './discovery.ts';
import { failure, type ScriptedAnswer, ScriptedTransport } from './scripted-transport.fixture.ts';

const { signal } = new AbortController();

function serving(paths: Readonly<Record<string, object | ScriptedAnswer>>) {
  const transport = new ScriptedTransport(({ path }) => {
    const answer = paths[path];
    if (answer === undefined) return failure(404, 'NotFound');
    return 'status' in answer && 'body' in answer ? answer : { body: answer };
  });
  return { transport, client: new Client(transport, 'test') };
}

const aggregated = (...items: object[]) => ({
  kind: 'APIGroupDiscoveryList',
  apiVersion: 'apidiscovery.k8s.io/v2',
  items,
});
const described = (resource: string, kind: string, scope: string, more: object = {}) => ({
  resource,
  responseKind: { group: '', version: '', kind },
  scope,
  verbs: ['get', 'list'],
  ...more,
});

const core = aggregated({
  metadata: {},
  versions: [
    {
      version: 'v1',
      freshness: 'Current',
      resources: [
        described('nodes', 'Node', 'Cluster'),
        described('pods', 'Pod', 'Namespaced', { subresources: [{ subresource: 'log', verbs: ['get'] }] }),
        described('nothing', '', 'Namespaced'),
        { resource: 'bare', scope: 'Namespaced' },
      ],
    },
  ],
});

describe('discovery in one document', () => {
  it('asks for it, and reads resources of all groups and versions', async () => {
    const gadgets = aggregated({
      metadata: { name: 'example.com' },
      versions: [
        { version: 'v2', resources: [described('gadgets', 'Gadget', 'Cluster', { verbs: undefined })] },
        {
          version: 'v1',
          resources: [described('gadgets', 'Gadget', 'Cluster'), described('old', 'Old', 'Namespaced')],
        },
      ],
    });
    const { client, transport } = serving({ '/api': core, '/apis': gadgets });
    const found = await discover(client, signal);
    expect(transport.requests.map(({ headers }) => headers['accept'])).toEqual([
      expect.stringMatching(
        /^application\/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,.*,application\/json$/,
      ),
      expect.anything(),
    ]);
    expect(found.failures.size).toBe(0);
    expect(found.resources).toEqual([
      { group: '', version: 'v1', plural: 'nodes', kind: 'Node', namespaced: false, verbs: ['get', 'list'] },
      { group: '', version: 'v1', plural: 'pods', kind: 'Pod', namespaced: true, verbs: ['get', 'list'] },
      { group: 'example.com', version: 'v2', plural: 'gadgets', kind: 'Gadget', namespaced: false, verbs: [] },
      {
        group: 'example.com',
        version: 'v1',
        plural: 'gadgets',
        kind: 'Gadget',
        namespaced: false,
        verbs: ['get', 'list'],
      },
      { group: 'example.com', version: 'v1', plural: 'old', kind: 'Old', namespaced: true, verbs: ['get', 'list'] },
    ]);
    expect(preferredResources(found).map(({ plural, version }) => `${plural} ${version}`)).toEqual([
      'nodes v1',
      'pods v1',
      'gadgets v2',
      'old v1',
    ]);
  });

  it('prefers a version that is known to one that is only remembered, and says so', async () => {
    const stale = aggregated({
      metadata: { name: 'remote.io' },
      versions: [
        { version: 'v2', freshness: 'Stale', resources: [described('things', 'Thing', 'Namespaced')] },
        { version: 'v1', resources: [described('things', 'Thing', 'Namespaced')] },
      ],
    });
    const found = await discover(serving({ '/api': aggregated(), '/apis': stale }).client, signal);
    expect(preferredResources(found)).toMatchObject([{ plural: 'things', version: 'v1' }]);
    expect([...found.failures.keys()]).toEqual(['remote.io/v2']);
    expect(failureText(found.failures)).toBe(
      'unable to retrieve the complete list of server APIs: remote.io/v2: stale GroupVersion discovery: remote.io/v2',
    );
  });

  it('rejects when the server does not answer', async () => {
    await expect(discover(serving({ '/api': core }).client, signal)).rejects.toMatchObject({ code: 404 });
  });
});

describe('discovery in many documents', () => {
  const pods = { name: 'pods', kind: 'Pod', namespaced: true, verbs: ['get'] };
  const groups = {
    kind: 'APIGroupList',
    groups: [
      { name: 'b.io', versions: [{ version: 'v1' }, { version: 'v2' }], preferredVersion: { version: 'v2' } },
      { name: 'a.io', versions: [{ version: 'v1' }], preferredVersion: { version: 'v1' } },
    ],
  };
  const beds = { resources: [{ name: 'beds', kind: 'Bed', namespaced: false, verbs: ['list'] }] };

  it('reads each, the preferred version first', async () => {
    const { client } = serving({
      '/api': { kind: 'APIVersions', versions: ['v1'] },
      '/api/v1': { resources: [pods, { ...pods, name: 'pods/status' }] },
      '/apis': groups,
      '/apis/b.io/v1': beds,
      '/apis/b.io/v2': beds,
      '/apis/a.io/v1': failure(503, 'ServiceUnavailable'),
    });
    const found = await discover(client, signal);
    expect(found.resources.map(({ group, version, plural }) => `${group}/${version}/${plural}`)).toEqual([
      '/v1/pods',
      'b.io/v2/beds',
      'b.io/v1/beds',
    ]);
    expect(found.resources[0]).toEqual({
      group: '',
      version: 'v1',
      plural: 'pods',
      kind: 'Pod',
      namespaced: true,
      verbs: ['get'],
    });
    expect([...found.failures.keys()]).toEqual(['a.io/v1']);
  });
});
