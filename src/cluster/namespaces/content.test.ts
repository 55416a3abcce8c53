import { describe, expect, it } from 'vitest';
import { Client } from '../../kube/client.ts';
import type { DiscoveredResource } from '../../kube/discovery.ts';
import { failure, type Script, ScriptedTransport } from '../../kube/scripted-transport.fixture.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { deleteContent, graceSecondsOf, NOTHING } from './content.ts';

const { signal } = new AbortController();
const ALL = ['delete', 'deletecollection', 'list'];

const maps = (verbs = ALL): DiscoveredResource => ({
  group: '',
  version: 'v1',
  plural: 'configmaps',
  kind: 'ConfigMap',
  namespaced: true,
  verbs,
});
const items = (...finalizers: string[][]) => ({
  body: {
    metadata: { resourceVersion: '7' },
    items: finalizers.map((each, index) => ({ metadata: { name: `m${index}`, finalizers: each } })),
  },
});

/** What is done to a server that answers deletions and lists so. */
async function attempt(script: Partial<Record<'GET' | 'DELETE', ReturnType<Script>>>, verbs = ALL, graceSeconds = 0) {
  const transport = new ScriptedTransport(({ method }) => script[method as 'GET'] ?? { body: {} });
  const remains = await deleteContent(new Client(transport, 'test'), maps(verbs), 'n', graceSeconds, signal);
  const { count, seconds, finalizers } = remains;
  const asked = transport.requests.map(({ method, path }) => `${method} ${path.slice('/api/v1/namespaces/n/'.length)}`);
  return { remains, summary: { count, seconds, finalizers: Object.fromEntries(finalizers) }, asked, transport };
}

describe('the content of one resource', () => {
  it('is deleted in one go, and looked for afterwards', async () => {
    const { asked, remains, transport } = await attempt({ GET: items() });
    expect(asked).toEqual(['DELETE configmaps', 'GET configmaps']);
    expect(remains).toEqual(NOTHING);
    expect(JSON.parse(transport.requests[0]?.body ?? '')).toMatchObject({ propagationPolicy: 'Background' });
    expect(transport.requests[1]?.headers['accept']).toContain('PartialObjectMetadataList');
  });

  it('is deleted one by one where the server offers nothing better', async () => {
    const each = await attempt({ GET: items(['f'], []) }, ['delete', 'list']);
    expect(each.asked).toEqual(['GET configmaps', 'DELETE configmaps/m0', 'DELETE configmaps/m1', 'GET configmaps']);
    expect((await attempt({ DELETE: failure(405, 'MethodNotAllowed'), GET: items() })).asked).toEqual([
      'DELETE configmaps',
      'GET configmaps',
      'GET configmaps',
    ]);
  });

  it('is taken for gone where it cannot be looked for', async () => {
    expect((await attempt({}, ['delete', 'deletecollection'])).remains.count).toBe(0);
    expect((await attempt({ GET: failure(404, 'NotFound') })).remains.count).toBe(0);
  });

  it('may be held by finalizers, which takes time', async () =>
    expect((await attempt({ GET: items(['a', 'b'], ['a']) })).summary).toEqual({
      count: 2,
      seconds: 15,
      finalizers: { a: 2, b: 1 },
    }));

  it('may take the time that it was given', async () =>
    expect((await attempt({ GET: items(['a'], []) }, ALL, 40)).summary).toEqual({
      count: 2,
      seconds: 40,
      finalizers: { a: 1 },
    }));

  it('should not be there without a reason', async () => {
    expect((await attempt({ GET: items([], []) })).remains).toEqual({
      count: 2,
      version: '7',
      seconds: 0,
      finalizers: new Map(),
      failure: 'unexpected items still remain in namespace: n for gvr: /v1, Resource=configmaps',
    });
  });

  it.each(['GET', 'DELETE'] as const)('says why a %s was refused', async (method) => {
    expect((await attempt({ [method]: failure(403, 'Forbidden') }, ALL, 7)).remains).toEqual({
      ...NOTHING,
      seconds: 7,
      failure: '403',
    });
  });
});

describe('the grace of pods', () => {
  const pod = (seconds: number | undefined, phase = 'Running'): Pod => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {},
    ...(seconds === undefined ? {} : { spec: { terminationGracePeriodSeconds: seconds } }),
    status: { phase },
  });

  it.each<[number, readonly Pod[]]>([
    [0, []],
    [0, [pod(undefined)]],
    [40, [pod(30), pod(40), pod(5)]],
    [5, [pod(5), pod(60, 'Succeeded'), pod(60, 'Failed')]],
  ])('is %d seconds', (seconds, pods) => expect(graceSecondsOf(pods)).toBe(seconds));
});
