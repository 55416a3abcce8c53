import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Anything } from '../support/api.ts';
import { InProcessApi } from '../support/in-process.ts';
import { makeNamespace } from '../support/objects.ts';

/** Subresources that let through one part of an object: that part, all of its rules, and nothing beside it. */

const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };
const STRATEGIC_PATCH = { 'content-type': 'application/strategic-merge-patch+json' };

let api: InProcessApi;
let pods = '';

beforeAll(async () => {
  api = await InProcessApi.start();
  const room = await makeNamespace(api);
  const accounts = `/api/v1/namespaces/${room}/serviceaccounts`;
  (await api.request('POST', accounts, { body: { metadata: { name: 'default' } } })).expect(201);
  pods = `/api/v1/namespaces/${room}/pods`;
});
afterAll(() => api.stop());

async function makePod(name: string): Promise<string> {
  const body = { metadata: { name }, spec: { containers: [{ name: 'main', image: 'example.org/main:1' }] } };
  (await api.request('POST', pods, { body })).expect(201);
  return `${pods}/${name}`;
}

const read = async (path: string): Promise<Anything> => (await api.request('GET', path)).expect(200).json;
const patch = (path: string, body: object): ReturnType<InProcessApi['request']> =>
  api.request('PATCH', path, { body, headers: STRATEGIC_PATCH });
const debuggers = (...names: string[]): object => ({
  spec: { ephemeralContainers: names.map((name) => ({ name, image: 'example.org/debug:1' })) },
});

describe('ephemeralcontainers', () => {
  it('adds containers to a pod, as kubectl debug does', async () => {
    const path = await makePod('debugged');
    expect((await patch(`${path}/ephemeralcontainers`, debuggers('first'))).expect(200).json.kind).toBe('Pod');
    (await patch(`${path}/ephemeralcontainers`, debuggers('second'))).expect(200);
    const { spec } = await read(path);
    expect(spec.ephemeralContainers).toMatchObject([
      {
        name: 'second',
        image: 'example.org/debug:1',
        terminationMessagePolicy: 'File',
        imagePullPolicy: 'IfNotPresent',
      },
      { name: 'first' },
    ]);
    expect(spec.containers).toMatchObject([{ name: 'main' }]);
  });

  it('neither changes nor takes away what was added', async () => {
    const path = await makePod('kept');
    const { spec, ...pod } = (await patch(`${path}/ephemeralcontainers`, debuggers('first'))).expect(200).json;
    for (const ephemeralContainers of [[], [{ ...spec.ephemeralContainers[0], image: 'example.org/other:1' }]]) {
      const body = { ...pod, spec: { ...spec, ephemeralContainers } };
      const refused = await api.request('PUT', `${path}/ephemeralcontainers`, { body });
      expect(refused.expect(422).json.message).toMatch(/spec\.ephemeralContainers.* existing ephemeral containers/s);
    }
    expect((await read(path)).spec).toEqual(spec);
  });

  it('lets nothing else through', async () => {
    const path = await makePod('narrow');
    const before = await read(path);
    const body = {
      ...before,
      metadata: { ...before.metadata, labels: { forged: 'yes' } },
      spec: { ...before.spec, nodeName: 'elsewhere', ephemeralContainers: [{ name: 'first', image: 'b' }] },
      status: { phase: 'Failed' },
    };
    (await api.request('PUT', `${path}/ephemeralcontainers`, { body })).expect(200);
    const after = await read(path);
    expect(after.spec.ephemeralContainers).toHaveLength(1);
    expect(after.spec.nodeName).toBeUndefined();
    expect(after.metadata.labels).toBeUndefined();
    expect(after.status.phase).toBe('Pending');
  });

  it('is the only way in', async () => {
    const path = await makePod('closed');
    expect((await patch(path, debuggers('first'))).expect(422).json.message).toContain('spec');
    const body = { metadata: { name: 'born' }, spec: { containers: [{ name: 'a', image: 'b' }], ...spec('first') } };
    expect((await api.request('POST', pods, { body })).expect(422).json.message).toContain('spec.ephemeralContainers');
  });
  const spec = (name: string): object => (debuggers(name) as { spec: object }).spec;
});

describe('status', () => {
  it('is written through its own door alone, which leaves the rest as it is but for labels and annotations', async () => {
    const path = await makePod('watched');
    (await patch(path, { status: { phase: 'Failed' } })).expect(200);
    expect((await read(path)).status.phase).toBe('Pending');
    const owner = { apiVersion: 'v1', kind: 'Pod', name: 'forged', uid: 'forged' };
    const change = {
      metadata: { labels: { told: 'yes' }, ownerReferences: [owner] },
      spec: { nodeName: 'n' },
      status: { phase: 'Running' },
    };
    (await patch(`${path}/status`, change)).expect(200);
    const { metadata, spec, status } = await read(path);
    expect(metadata.labels).toEqual({ told: 'yes' });
    expect([metadata.ownerReferences, spec.nodeName, status.phase]).toEqual([undefined, undefined, 'Running']);
  });
});

describe('finalize', () => {
  it('lets go of a namespace, and of nothing that is still wanted', async () => {
    const namespaces = '/api/v1/namespaces';
    (await api.request('POST', namespaces, { body: { metadata: { name: 'leaving' } } })).expect(201);
    (await api.request('DELETE', `${namespaces}/leaving`)).expect(200);
    const { spec, ...namespace } = await read(`${namespaces}/leaving`);
    expect(spec.finalizers).toEqual(['kubernetes']);
    // Through the front door its finalizers stay.
    await api.request('PUT', `${namespaces}/leaving`, { body: { ...namespace, spec: { finalizers: [] } } });
    expect((await read(`${namespaces}/leaving`)).spec.finalizers).toEqual(['kubernetes']);
    const { metadata } = await read(`${namespaces}/leaving`);
    const body = { ...namespace, metadata, spec: { finalizers: [] } };
    (await api.request('PUT', `${namespaces}/leaving/finalize`, { body })).expect(200);
    (await api.request('GET', `${namespaces}/leaving`)).expect(404);
  });
});

describe('scale', () => {
  const labels = { app: 'scaled' };
  let path = '';
  beforeAll(async () => {
    const deployments = pods.replace('/api/v1', '/apis/apps/v1').replace(/pods$/, 'deployments');
    const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'b' }] } };
    const body = { metadata: { name: 'scaled' }, spec: { replicas: 2, selector: { matchLabels: labels }, template } };
    (await api.request('POST', deployments, { body })).expect(201);
    path = `${deployments}/scaled`;
  });

  it('shows and changes how many are wanted, and nothing else', async () => {
    const scale = await read(`${path}/scale`);
    expect(scale).toMatchObject({ kind: 'Scale', apiVersion: 'autoscaling/v1', spec: { replicas: 2 } });
    const body = { ...scale, metadata: { ...scale.metadata, labels: { forged: 'yes' } }, spec: { replicas: 5 } };
    (await api.request('PUT', `${path}/scale`, { body })).expect(200);
    const { metadata, spec } = await read(path);
    expect([spec.replicas, metadata.labels, metadata.generation]).toEqual([5, undefined, 2]);
  });

  it.each<[string, object, number, string]>([
    ['fewer than none', { spec: { replicas: -1 } }, 422, 'spec.replicas: Invalid value: -1'],
    ['a half', { spec: { replicas: 1.5 } }, 422, 'replicas'],
    ['a word', { spec: { replicas: 'many' } }, 422, 'replicas'],
    ['more than can be counted', { spec: { replicas: 2 ** 40 } }, 422, 'replicas'],
    ['what has changed since', { metadata: { resourceVersion: '1' }, spec: { replicas: 3 } }, 409, 'has been modified'],
    ['another kind', { kind: 'Deployment', spec: { replicas: 3 } }, 400, 'Deployment'],
  ])('is refused to %s', async (_what, change, status, complaint) => {
    const { spec } = await read(path);
    const refused = await api.request('PATCH', `${path}/scale`, { body: change, headers: MERGE_PATCH });
    expect(refused.expect(status).json).toMatchObject({
      kind: 'Status',
      message: expect.stringContaining(complaint) as string,
    });
    const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'scaled' }, ...change };
    const body = { ...scale, metadata: { ...scale.metadata, name: 'scaled' } };
    expect((await api.request('PUT', `${path}/scale`, { body })).status).toBeGreaterThanOrEqual(400);
    expect((await read(path)).spec).toEqual(spec);
  });
});

describe('the front door', () => {
  it('cannot hurry a deletion, nor begin or take back one', async () => {
    const path = await makePod('leaving');
    const binding = { metadata: { name: 'leaving' }, target: { kind: 'Node', name: 'n' } };
    (await api.request('POST', `${path}/binding`, { body: binding })).expect(201);
    const merge = (metadata: object): ReturnType<InProcessApi['request']> =>
      api.request('PATCH', path, { body: { metadata }, headers: MERGE_PATCH });
    const begun = await merge({ deletionTimestamp: '2026-01-01T00:00:00Z', deletionGracePeriodSeconds: 0 });
    expect(begun.expect(422).json.message).toContain('metadata.deletionTimestamp');
    (await api.request('DELETE', path)).expect(200);
    const { metadata } = await read(path);
    for (const door of [path, `${path}/status`]) {
      const hurried = await api.request('PATCH', door, {
        body: { metadata: { deletionGracePeriodSeconds: 0 } },
        headers: MERGE_PATCH,
      });
      expect(hurried.expect(422).json.message).toContain(
        'metadata.deletionGracePeriodSeconds: Invalid value: 0: field is immutable',
      );
    }
    await merge({ deletionTimestamp: null, deletionGracePeriodSeconds: null });
    expect((await read(path)).metadata).toMatchObject({
      deletionTimestamp: metadata.deletionTimestamp,
      deletionGracePeriodSeconds: 30,
    });
  });
});
