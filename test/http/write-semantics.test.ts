import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject } from '../../src/api/meta.ts';
import { type Answer, withQuery } from '../support/api.ts';
import { InProcessApi } from '../support/in-process.ts';
import { configMap, makeNamespace, namespace } from '../support/objects.ts';

/** Writes: rehearsals, preconditions, names, and how strictly bodies are taken. */

const JSON_PATCH = { 'content-type': 'application/json-patch+json' };
const MERGE_PATCH = { 'content-type': 'application/merge-patch+json' };
const STRATEGIC_PATCH = { 'content-type': 'application/strategic-merge-patch+json' };
const APPLY_PATCH = { 'content-type': 'application/apply-patch+yaml' };

let api: InProcessApi;
let room = '';
let path = '';

beforeAll(async () => {
  api = await InProcessApi.start();
  room = await makeNamespace(api);
  path = `/api/v1/namespaces/${room}/configmaps`;
  (
    await api.request('POST', `/api/v1/namespaces/${room}/serviceaccounts`, { body: { metadata: { name: 'default' } } })
  ).expect(201);
});
afterAll(() => api.stop());

const post = (target: string, body: unknown, headers = {}): Promise<Answer> =>
  api.request('POST', target, { body, headers });

function pod(name: string): JsonObject {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { containers: [{ name: 'main', image: 'example.org/main:1' }] },
  };
}

function deployment(name: string): JsonObject {
  const labels = { app: name };
  const { spec } = pod(name);
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name },
    spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } as JsonObject },
  };
}

/** Does something, and answers what it answered, having seen that nothing was stored. */
async function rehearse(
  method: string,
  target: string,
  options: Parameters<InProcessApi['request']>[2] = {},
): Promise<Answer> {
  const { revision } = api.store;
  const answer = await api.request(method, withQuery(target, { dryRun: 'All' }), options);
  expect(api.store.revision).toBe(revision);
  return answer;
}

describe('dryRun', () => {
  it('rehearses every verb on an object', async () => {
    const made = (await rehearse('POST', path, { body: configMap('new') })).expect(201).json;
    expect(made.metadata).toMatchObject({
      name: 'new',
      uid: expect.any(String),
      creationTimestamp: expect.any(String),
    });
    expect(made.metadata).not.toHaveProperty('resourceVersion');
    (await api.request('GET', `${path}/new`)).expect(404);

    const stored = (await post(path, configMap('there', { data: { a: '1' } }))).expect(201).json;
    expect((await rehearse('POST', path, { body: configMap('there') })).status).toBe(409);
    const changed = { ...stored, data: { a: '2' } };
    expect((await rehearse('PUT', `${path}/there`, { body: changed })).expect(200).json.data).toEqual({ a: '2' });
    expect((await rehearse('PUT', `${path}/missing`, { body: configMap('missing') })).status).toBe(404);
    const patches = [
      [JSON_PATCH, [{ op: 'replace', path: '/data/a', value: '3' }]],
      [MERGE_PATCH, { data: { a: '3' } }],
      [STRATEGIC_PATCH, { data: { a: '3' } }],
    ] as const;
    for (const [headers, body] of patches)
      expect((await rehearse('PATCH', `${path}/there`, { headers, body })).expect(200).json.data).toEqual({ a: '3' });
    const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'there' }, data: { b: '1' } };
    const apply = { headers: APPLY_PATCH, body: applied };
    expect(
      (await api.request('PATCH', `${path}/there?dryRun=All&fieldManager=me`, apply)).expect(200).json.data,
    ).toEqual({ a: '1', b: '1' });
    const fresh = { ...applied, metadata: { name: 'fresh' } };
    expect(
      (await api.request('PATCH', `${path}/fresh?dryRun=All&fieldManager=me`, { headers: APPLY_PATCH, body: fresh }))
        .status,
    ).toBe(201);
    (await rehearse('DELETE', `${path}/there`)).expect(200);
    (
      await api.request('DELETE', `${path}/there`, {
        body: { kind: 'DeleteOptions', apiVersion: 'v1', dryRun: ['All'] },
      })
    ).expect(200);
    (await rehearse('DELETE', path)).expect(200);
    expect((await api.request('GET', `${path}/there`)).expect(200).json).toEqual(stored);
  });

  it('rehearses subresources', async () => {
    const pods = `/api/v1/namespaces/${room}/pods`;
    const deployments = `/apis/apps/v1/namespaces/${room}/deployments`;
    (await post(pods, pod('subject'))).expect(201);
    (await post(deployments, deployment('subject'))).expect(201);
    const before = (await api.request('GET', `${pods}/subject`)).json;
    (
      await rehearse('POST', `${pods}/subject/eviction`, {
        body: { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'subject' } },
      })
    ).expect(201);
    const inBody = {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'subject' },
      deleteOptions: { dryRun: ['All'] },
    };
    (await post(`${pods}/subject/eviction`, inBody)).expect(201);
    const binding = {
      apiVersion: 'v1',
      kind: 'Binding',
      metadata: { name: 'subject' },
      target: { kind: 'Node', name: 'node-1' },
    };
    (await rehearse('POST', `${pods}/subject/binding`, { body: binding })).expect(201);
    (
      await rehearse('PATCH', `${pods}/subject/status`, {
        headers: MERGE_PATCH,
        body: { status: { phase: 'Running' } },
      })
    ).expect(200);
    const scaled = await rehearse('PATCH', `${deployments}/subject/scale`, {
      headers: MERGE_PATCH,
      body: { spec: { replicas: 7 } },
    });
    expect(scaled.expect(200).json.spec.replicas).toBe(7);
    expect((await api.request('GET', `${pods}/subject`)).json).toEqual(before);
    expect((await api.request('GET', `${deployments}/subject/scale`)).json.spec.replicas).toBe(1);
  });

  it('is refused where its value is unknown', async () => {
    for (const [method, target, body] of [
      ['POST', path, configMap('x')],
      ['PUT', `${path}/x`, configMap('x')],
      ['DELETE', `${path}/x`, undefined],
    ] as const) {
      const answer = await api.request(method, `${target}?dryRun=Some`, { body });
      expect(answer.status).toBe(422);
      expect(answer.json.message).toContain('dryRun: Unsupported value: ["Some"]: supported values: "All"');
    }
  });
});

describe('an eviction', () => {
  it.each([
    ['no body', undefined, 'the request has no body; a Eviction is expected'],
    ['no name', {}, 'name in URL does not match name in Eviction object'],
  ])('with %s is refused: Kubernetes wants the pod named twice', async (_what, body, message) => {
    const target = `/api/v1/namespaces/${room}/pods/unnamed/eviction`;
    const answer = (await api.request('POST', target, { body })).expect(400);
    expect(answer.json.message).toBe(message);
  });

  it('is refused, for a while, where nobody has counted the budget yet', async () => {
    const pods = `/api/v1/namespaces/${room}/pods`;
    const budget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'uncounted' },
      spec: { maxUnavailable: 1, selector: { matchLabels: { app: 'uncounted' } } },
    };
    const running = pod('uncounted');
    running.metadata = { name: 'uncounted', labels: { app: 'uncounted' } };
    (await post(`/apis/policy/v1/namespaces/${room}/poddisruptionbudgets`, budget)).expect(201);
    (await post(pods, { ...running, spec: { ...(running.spec as JsonObject), nodeName: 'node' } })).expect(201);
    const headers = { 'content-type': 'application/merge-patch+json' };
    const body = { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } };
    (await api.request('PATCH', `${pods}/uncounted/status`, { body, headers })).expect(200);
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'uncounted' } };
    const answer = (await post(`${pods}/uncounted/eviction`, eviction)).expect(429);
    expect(answer.json).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: "Cannot evict pod as it would violate the pod's disruption budget.",
      reason: 'TooManyRequests',
      details: {
        causes: [
          {
            reason: 'DisruptionBudget',
            message: 'The disruption budget uncounted is still being processed by the server.',
          },
        ],
        retryAfterSeconds: 10,
      },
      code: 429,
    });
    expect(answer.headers['retry-after']).toBe('10');
  });
});

describe('preconditions', () => {
  it('of an update: the object that was read, unchanged since', async () => {
    const first = (await post(path, configMap('contested'))).expect(201).json;
    (await api.request('PUT', `${path}/contested`, { body: { ...first, data: { by: 'one' } } })).expect(200);
    const late = await api.request('PUT', `${path}/contested`, { body: { ...first, data: { by: 'two' } } });
    expect(late.status).toBe(409);
    expect(late.json).toMatchObject({ reason: 'Conflict', details: { name: 'contested', kind: 'configmaps' } });
    expect(late.json.message).toBe(
      'Operation cannot be fulfilled on configmaps "contested": the object has been modified; please apply your changes to the latest version and try again',
    );
    const other = {
      ...first,
      metadata: { ...first.metadata, uid: 'e0b4b3c5-0000-4000-8000-000000000000', resourceVersion: '' },
    };
    const mistaken = await api.request('PUT', `${path}/contested`, { body: other });
    expect(mistaken.status).toBe(409);
    expect(mistaken.json.message).toContain('Precondition failed: UID in precondition');
    for (const [headers, body] of [
      [MERGE_PATCH, { metadata: { resourceVersion: first.metadata.resourceVersion }, data: { by: 'three' } }],
      [JSON_PATCH, [{ op: 'replace', path: '/metadata/resourceVersion', value: first.metadata.resourceVersion }]],
    ] as const)
      expect((await api.request('PATCH', `${path}/contested`, { headers, body })).status).toBe(409);
    expect((await api.request('GET', `${path}/contested`)).json.data).toEqual({ by: 'one' });
    (
      await api.request('PUT', `${path}/contested`, { body: configMap('contested', { data: { by: 'anyone' } }) })
    ).expect(200);
  });

  it('are not asked for by who does not name any, however many write at once', async () => {
    (await post(path, configMap('busy'))).expect(201);
    const writers = Array.from({ length: 20 }, (_, index) => `writer-${index}`);
    const answers = await Promise.all(
      writers.map((by) => api.request('PUT', `${path}/busy`, { body: configMap('busy', { data: { by } }) })),
    );
    expect(answers.map(({ status }) => status)).toEqual(writers.map(() => 200));
    expect(new Set(answers.map(({ json }) => json.metadata.resourceVersion)).size).toBe(writers.length);
    const patches = await Promise.all(
      writers.map((by) => api.request('PATCH', `${path}/busy`, { headers: MERGE_PATCH, body: { data: { [by]: by } } })),
    );
    expect(patches.map(({ status }) => status)).toEqual(writers.map(() => 200));
    expect((await api.request('GET', `${path}/busy`)).json.data).toMatchObject(
      Object.fromEntries(writers.map((by) => [by, by])),
    );
  });

  it('of a deletion', async () => {
    const { metadata } = (await post(path, configMap('doomed'))).expect(201).json;
    const remove = (preconditions: object): Promise<Answer> =>
      api.request('DELETE', `${path}/doomed`, { body: { preconditions } });
    const wrongUid = await remove({ uid: 'e0b4b3c5-0000-4000-8000-000000000000' });
    expect(wrongUid.status).toBe(409);
    expect(wrongUid.json.message).toBe(
      `Operation cannot be fulfilled on ConfigMap "doomed": the UID in the precondition (e0b4b3c5-0000-4000-8000-000000000000) does not match the UID in record (${metadata.uid}). The object might have been deleted and then recreated`,
    );
    expect((await remove({ resourceVersion: '1' })).status).toBe(409);
    expect((await remove({ uid: metadata.uid, resourceVersion: metadata.resourceVersion })).status).toBe(200);
  });

  it('are demanded by kinds that are written by several at once', async () => {
    const leases = `/apis/coordination.k8s.io/v1/namespaces/${room}/leases`;
    const lease = {
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: { name: 'lead' },
      spec: { holderIdentity: 'a' },
    };
    const { metadata } = (await post(leases, lease)).expect(201).json;
    const blind = await api.request('PUT', `${leases}/lead`, { body: lease });
    expect(blind.status).toBe(422);
    expect(blind.json.message).toBe(
      'leases.coordination.k8s.io "lead" is invalid: metadata.resourceVersion: Invalid value: 0: must be specified for an update',
    );
    const seen = { ...lease, metadata: { name: 'lead', resourceVersion: metadata.resourceVersion } };
    (await api.request('PUT', `${leases}/lead`, { body: seen })).expect(200);
  });
});

describe('names', () => {
  it('must be the same in body and path', async () => {
    expect((await api.request('PUT', `${path}/one`, { body: configMap('two') })).status).toBe(400);
    expect((await post(path, configMap('x', { namespace: 'elsewhere' }))).json.message).toBe(
      'the namespace of the provided object does not match the namespace sent on the request',
    );
    expect((await post(path, { ...configMap('x'), kind: 'Secret' })).status).toBe(400);
    expect((await post(path, { ...configMap('x'), apiVersion: 'v2' })).status).toBe(400);
    expect((await post(path, configMap('Not_A_Name'))).status).toBe(422);
    expect((await post(path, { metadata: {} })).json.message).toContain('name or generateName is required');
  });

  it('are generated, and tried again when they are taken', async () => {
    let draws = 0;
    const random = { ...api.env.random, number: () => (draws++ < 15 ? 0 : api.env.random.number()) };
    const own = await InProcessApi.start({ env: { random } });
    try {
      await own.request('POST', '/api/v1/namespaces', { body: namespace('gen') });
      draws = 0;
      const target = '/api/v1/namespaces/gen/configmaps';
      const body = { metadata: { generateName: 'job-' } };
      const first = (await own.request('POST', target, { body })).expect(201).json;
      expect(first.metadata).toMatchObject({ name: 'job-bbbbb', generateName: 'job-' });
      const second = (await own.request('POST', target, { body })).expect(201).json;
      expect(second.metadata.name).toMatch(/^job-[bcdfghjklmnpqrstvwxz2456789]{5}$/);
      expect(second.metadata.name).not.toBe('job-bbbbb');
      draws = Number.NEGATIVE_INFINITY;
      const unlucky = await own.request('POST', target, { body });
      expect(unlucky.status).toBe(409);
      expect(unlucky.json).toMatchObject({ reason: 'AlreadyExists', details: { retryAfterSeconds: 1 } });
      expect(unlucky.json.message).toBe(
        'configmaps "job-bbbbb" already exists, the server was not able to generate a unique name for the object',
      );
      const long = (
        await own.request('POST', target, { body: { metadata: { generateName: 'x'.repeat(100) } } })
      ).expect(201).json;
      expect(long.metadata.name).toHaveLength(63);
    } finally {
      await own.stop();
    }
  });

  it('that are missing are created by a PUT where the kind allows it, and only by those who may create', async () => {
    const roles = `/apis/rbac.authorization.k8s.io/v1/namespaces/${room}/roles`;
    const role = (name: string): object => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name },
      rules: [],
    });
    (await api.request('PUT', `${roles}/made-by-put`, { body: role('made-by-put') })).expect(201);
    expect((await api.request('PUT', `${path}/not-by-put`, { body: configMap('not-by-put') })).status).toBe(404);

    const bind = async (name: string, verbs: readonly string[]): Promise<void> => {
      const rules = [{ apiGroups: ['', 'rbac.authorization.k8s.io'], resources: ['configmaps', 'roles'], verbs }];
      (await post(roles, { ...role(name), rules })).expect(201);
      const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name };
      const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name }];
      (
        await post(`/apis/rbac.authorization.k8s.io/v1/namespaces/${room}/rolebindings`, {
          metadata: { name },
          roleRef,
          subjects,
        })
      ).expect(201);
    };
    await bind('changer', ['get', 'update', 'patch']);
    const changer = api.as({ commonName: 'changer', organizations: [] });
    const refused = await changer.request('PUT', `${roles}/never`, { body: role('never') });
    expect(refused.status).toBe(403);
    expect(refused.json.message).toContain('cannot create resource "roles"');
    const apply = { headers: APPLY_PATCH, body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'never' } } };
    const applied = await changer.request('PATCH', `${path}/never?fieldManager=me`, apply);
    expect(applied.status).toBe(403);
    expect(applied.json.message).toContain('cannot create resource "configmaps"');
    await bind('maker', ['get', 'update', 'patch', 'create']);
    const maker = api.as({ commonName: 'maker', organizations: [] });
    expect((await maker.request('PATCH', `${path}/never?fieldManager=me`, apply)).status).toBe(201);
  });
});

describe('what is empty', () => {
  it('is left out, as where Go writes the answer', async () => {
    const body = configMap('hollow', { data: { a: '1' }, labels: { b: '1' } });
    (await post(path, body)).expect(201);
    const removal = { metadata: { labels: { b: null }, annotations: {} }, data: { a: null } };
    const patched = (await api.request('PATCH', `${path}/hollow`, { headers: MERGE_PATCH, body: removal })).expect(200);
    expect(patched.json).not.toHaveProperty('data');
    expect(patched.json.metadata).not.toHaveProperty('labels');
    expect(patched.json.metadata).not.toHaveProperty('annotations');
    const again = { ...patched.json, data: {}, metadata: { ...patched.json.metadata, labels: {} } };
    const unchanged = (await api.request('PUT', `${path}/hollow`, { body: again })).expect(200).json;
    expect(unchanged.metadata.resourceVersion).toBe(patched.json.metadata.resourceVersion);
  });
});

describe('fieldValidation', () => {
  const unknown = '{"metadata":{"name":"odd","labels":{"a":"1"}},"data":{"x":"1"},"dat":{},"spec":1}';
  const repeated = '{"metadata":{"name":"odd"},"data":{"x":"1","x":"2"},"data":{"y":"1"}}';
  const send = (body: string, level: string, headers = {}): Promise<Answer> =>
    post(`${path}?dryRun=All&fieldValidation=${level}`, body, headers);

  it('Warn, the default, stores what is known and tells of the rest', async () => {
    const answer = (await post(`${path}?dryRun=All`, unknown)).expect(201);
    expect(answer.warnings).toEqual(['unknown field "dat"', 'unknown field "spec"']);
    expect(answer.json).not.toHaveProperty('spec');
    expect((await send(repeated, 'Warn')).expect(201).warnings).toEqual([
      'duplicate field "data.x"',
      'duplicate field "data"',
    ]);
  });

  it('Ignore says nothing', async () => {
    for (const body of [unknown, repeated]) expect((await send(body, 'Ignore')).expect(201).warnings).toEqual([]);
  });

  it('Strict refuses, naming every field', async () => {
    const answer = await send(unknown, 'Strict');
    expect(answer.status).toBe(400);
    expect(answer.json.message).toBe(
      'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "dat", unknown field "spec"',
    );
    expect((await send(repeated, 'Strict')).json.message).toContain('duplicate field "data.x", duplicate field "data"');
    const yaml = 'metadata: {name: odd}\nspec: 1\n';
    expect((await send(yaml, 'Strict', { 'content-type': 'application/yaml' })).json.message).toContain(
      'unknown field "spec"',
    );
  });

  it('holds for updates and patches alike', async () => {
    (await post(path, configMap('strict'))).expect(201);
    const update = await api.request('PUT', `${path}/strict?fieldValidation=Strict`, {
      body: { ...configMap('strict'), spec: 1 },
    });
    expect(update.json.message).toContain('unknown field "spec"');
    for (const [headers, body] of [
      [MERGE_PATCH, { spec: 1 }],
      [STRATEGIC_PATCH, { spec: 1 }],
      [JSON_PATCH, [{ op: 'add', path: '/spec', value: 1 }]],
    ] as const) {
      const strict = await api.request('PATCH', `${path}/strict?fieldValidation=Strict`, { headers, body });
      expect(strict.status).toBeGreaterThanOrEqual(400);
      expect(strict.json.message).toContain('unknown field "spec"');
      const warned = await api.request('PATCH', `${path}/strict?fieldValidation=Warn`, { headers, body });
      expect(warned.expect(200).warnings).toEqual(['unknown field "spec"']);
    }
  });

  it('has three levels', async () => {
    const answer = await send('{}', 'Lenient');
    expect(answer.status).toBe(422);
    expect(answer.json.message).toContain(
      'fieldValidation: Unsupported value: "Lenient": supported values: "", "Ignore", "Strict", "Warn"',
    );
  });
});

describe('deletions of collections', () => {
  it('that meet find nothing missing: what another has deleted is gone, as was wanted', async () => {
    const target = `/api/v1/namespaces/${await makeNamespace(api)}/configmaps`;
    for (let index = 0; index < 20; index++) await post(target, configMap(`c${index}`));
    const both = await Promise.all([api.request('DELETE', target), api.request('DELETE', target)]);
    for (const answer of both) expect(answer.expect(200).json.kind).toBe('ConfigMapList');
    expect((await api.request('GET', target)).json.items).toEqual([]);
  });

  it('that fail say so', async () => {
    const target = `/api/v1/namespaces/${await makeNamespace(api)}/configmaps`;
    for (const name of ['a', 'b']) await post(target, configMap(name));
    const refused = await api.request('DELETE', target, { body: { preconditions: { uid: 'another' } } });
    expect(refused.expect(409).json).toMatchObject({ kind: 'Status', reason: 'Conflict' });
    expect((await api.request('GET', target)).json.items).toHaveLength(2);
  });
});

describe('force', () => {
  it.each([JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH])('is for applying alone, not for %j', async (headers) => {
    await post(path, configMap('forced'));
    const body = headers === JSON_PATCH ? [] : {};
    const refused = await api.request('PATCH', `${path}/forced?force=true`, { body, headers });
    expect(refused.expect(422).json.message).toBe(
      'PatchOptions.meta.k8s.io "" is invalid: force: Forbidden: may not be specified for non-apply patch',
    );
  });
});

describe('what is applied', () => {
  const apply = (target: string, body: string, level = 'Strict'): Promise<Answer> =>
    api.request('PATCH', `${target}?fieldManager=me&fieldValidation=${level}`, { body, headers: APPLY_PATCH });

  it.each([
    [
      'YAML',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: twice}\ndata: {a: b}\ndata: {a: c}\n',
      'line 5: key "data" already set in map',
    ],
    [
      'JSON',
      '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{},"data":{"a":"c"}}',
      'duplicate field "data"',
    ],
  ])('says nothing twice, in %s', async (_form, body, repeat) => {
    expect((await apply(`${path}/twice`, body)).expect(400).json.message).toBe(
      `error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n  ${repeat}`,
    );
    (await api.request('GET', `${path}/twice`)).expect(404);
    const warned = await apply(`${path}/twice`, body, 'Warn');
    expect([warned.status, warned.json.data, warned.warnings]).toEqual([201, { a: 'c' }, [repeat]]);
    (await api.request('DELETE', `${path}/twice`)).expect(200);
  });

  it('has the types of its kind', async () => {
    const target = `/api/v1/namespaces/${room}/services/typed`;
    const body = 'apiVersion: v1\nkind: Service\nmetadata: {name: typed}\nspec: {ports: [{port: 1.5}]}\n';
    const refused = await apply(target, body);
    expect(refused.expect(400).json).toMatchObject({ kind: 'Status', reason: 'BadRequest' });
    expect(refused.json.message).toMatch(/port/);
    (await api.request('GET', target)).expect(404);
  });
});
