import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { InProcessApi } from '../support/in-process.ts';
import { sample } from '../support/sample.ts';
import { manifests } from './manifests.ts';

/**
 * Bodies as large as they may be, made of as many parts as possible. Each is answered after a walk or two: what is
 * quadratic in any of these takes hours, or all memory, and so fails here without anyone looking at a clock.
 */

/** How many rows of each table are tried where not all are. */
const SAMPLE = 6;

let api: InProcessApi;
beforeAll(async () => {
  api = await InProcessApi.start();
  const crd = manifests.get('apiextensions.k8s.io/customresourcedefinitions');
  const body = { metadata: { name: 'gadgets.wild.example.com' }, ...crd };
  (await api.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body })).expect(201);
  await eventually(async () => (await api.request('GET', GADGETS)).expect(200));
});
afterAll(() => api.stop());

const CORE = '/api/v1/namespaces/default';
const GADGETS = '/apis/wild.example.com/v1/namespaces/default/gadgets';
const RBAC = '/apis/rbac.authorization.k8s.io/v1/namespaces/default';

const list = <T>(count: number, item: (index: number) => T): T[] =>
  Array.from({ length: count }, (_, index) => item(index));
const map = <T>(count: number, value: (index: number) => T, key = 'k'): Record<string, T> =>
  Object.fromEntries(list(count, (index) => [`${key}${index}`, value(index)]));
const metadata = (fields: object): object => ({ metadata: { name: 'x', ...fields } });
const pod = (spec: object): object => ({
  metadata: { name: 'x' },
  spec: { containers: [{ name: 'a', image: 'b' }], ...spec },
});
const container = (fields: object): object => pod({ containers: [{ name: 'a', image: 'b', ...fields }] });

describe('objects of very many parts', () => {
  type Row = [name: string, path: string, body: unknown, status: number];
  const rows: readonly Row[] = [
    ['labels', `${CORE}/configmaps`, metadata({ labels: map(150_000, () => 'v') }), 201],
    ['labels that are none', `${CORE}/configmaps`, metadata({ labels: map(150_000, () => 'v v', '/') }), 422],
    ['annotations', `${CORE}/configmaps`, metadata({ annotations: map(150_000, () => 'v') }), 422],
    ['finalizers', `${CORE}/configmaps`, metadata({ finalizers: list(100_000, (index) => `a/b${index}`) }), 201],
    [
      'finalizers that are none',
      `${CORE}/configmaps`,
      metadata({ finalizers: list(150_000, (index) => `/${index}`) }),
      422,
    ],
    [
      'owners, each in control',
      `${CORE}/configmaps`,
      metadata({
        ownerReferences: list(25_000, (index) => ({
          apiVersion: 'v1',
          kind: 'Pod',
          name: 'a',
          uid: `u${index}`,
          controller: true,
        })),
      }),
      422,
    ],
    [
      'managers',
      `${CORE}/configmaps`,
      metadata({
        managedFields: list(12_000, (index) => ({
          manager: `m${index}`,
          operation: 'Apply',
          apiVersion: 'v1',
          fieldsType: 'FieldsV1',
          fieldsV1: { 'f:data': { [`f:k${index}`]: {} } },
        })),
      }),
      201,
    ],
    ['unknown fields', `${CORE}/configmaps`, { ...metadata({}), ...map(200_000, () => 1) }, 201],
    ['keys that are none', `${CORE}/configmaps`, { ...metadata({}), data: map(60_000, () => 'v', '/') }, 422],
    [
      'containers',
      `${CORE}/pods`,
      pod({ containers: list(10_000, (index) => ({ name: `c${index}`, image: 'b' })) }),
      201,
    ],
    [
      'containers of one name',
      `${CORE}/pods`,
      pod({ containers: list(60_000, () => ({ name: 'c', image: 'b' })) }),
      422,
    ],
    [
      'variables',
      `${CORE}/pods`,
      container({ env: list(30_000, (index) => ({ name: `E${index}`, value: '$(E0)' })) }),
      201,
    ],
    [
      'ports',
      `${CORE}/pods`,
      container({
        ports: list(20_000, (index) => ({ containerPort: index + 1, hostPort: index + 1, name: `p${index}` })),
      }),
      201,
    ],
    [
      'mounts of nothing',
      `${CORE}/pods`,
      container({ volumeMounts: list(60_000, (index) => ({ name: `v${index}`, mountPath: `/m${index}` })) }),
      422,
    ],
    ['volumes', `${CORE}/pods`, pod({ volumes: list(40_000, (index) => ({ name: `v${index}`, emptyDir: {} })) }), 201],
    ['resources', `${CORE}/pods`, container({ resources: { limits: map(30_000, () => '1', 'example.com/r') } }), 201],
    ['gates', `${CORE}/pods`, pod({ schedulingGates: list(60_000, (index) => ({ name: `a/b${index}` })) }), 201],
    [
      'quota',
      `${CORE}/resourcequotas`,
      { ...metadata({}), spec: { hard: map(40_000, () => '1', 'requests.example.com/r') } },
      201,
    ],
    [
      'service ports',
      `${CORE}/services`,
      { ...metadata({}), spec: { ports: list(30_000, (index) => ({ name: `p${index}`, port: index + 1 })) } },
      201,
    ],
    [
      'rules',
      `${RBAC}/roles`,
      {
        ...metadata({}),
        rules: list(30_000, (index) => ({ apiGroups: [`g${index}`], resources: ['r'], verbs: ['get'] })),
      },
      201,
    ],
    [
      'items by key',
      GADGETS,
      { ...metadata({}), spec: { list: list(40_000, (index) => ({ key: `k${index}` })) } },
      201,
    ],
    ['items of one key', GADGETS, { ...metadata({}), spec: { list: list(80_000, () => ({ key: 'k' })) } }, 422],
    ['numbers', GADGETS, { ...metadata({}), spec: { any: { list: list(1_000_000, () => 0) } } }, 201],
    ['words that are none', GADGETS, { ...metadata({}), spec: { word: 'A'.repeat(2_900_000) } }, 422],
    [
      'groups',
      '/apis/authorization.k8s.io/v1/subjectaccessreviews',
      {
        spec: {
          user: 'x',
          groups: list(200_000, (index) => `g${index}`),
          resourceAttributes: { verb: 'get', resource: 'pods' },
        },
      },
      201,
    ],
  ];

  it.each(sample(rows, SAMPLE))('%s', async (_name, path, body, status) => {
    const answer = await api.request('POST', `${path}?dryRun=All`, { body });
    expect(`${answer.status} ${answer.text.slice(0, 300)}`).toMatch(new RegExp(`^${status} `));
    if (status >= 400) expect(answer.text.length).toBeLessThan(200_000);
  });

  it('rights that nobody has are refused before they are all told apart', async () => {
    const many = (prefix: string): string[] => list(30, (index) => `${prefix}${index}`);
    const rules = list(2000, () => ({ apiGroups: many('g'), resources: many('r'), verbs: many('v') }));
    const binding = {
      metadata: { name: 'maker' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'maker' },
      subjects: [{ kind: 'User', name: 'maker', apiGroup: 'rbac.authorization.k8s.io' }],
    };
    const maker = {
      metadata: { name: 'maker' },
      rules: [{ apiGroups: ['rbac.authorization.k8s.io'], resources: ['roles'], verbs: ['create'] }],
    };
    (await api.request('POST', `${RBAC}/roles`, { body: maker })).expect(201);
    (await api.request('POST', `${RBAC}/rolebindings`, { body: binding })).expect(201);
    const user = api.as({ commonName: 'maker', organizations: [] });
    (await user.request('POST', `${RBAC}/roles`, { body: { metadata: { name: 'x' }, rules } })).expect(403);
  });
});

describe('patches of very many parts', () => {
  const merge = { 'content-type': 'application/merge-patch+json' };
  const strategic = { 'content-type': 'application/strategic-merge-patch+json' };
  const json = { 'content-type': 'application/json-patch+json' };
  const apply = { 'content-type': 'application/apply-patch+yaml' };
  const gadget = (spec: object): object => ({
    apiVersion: 'wild.example.com/v1',
    kind: 'Gadget',
    metadata: { name: 'large' },
    spec,
  });

  beforeAll(async () => {
    const body = { metadata: { name: 'large' }, spec: { any: { list: list(300_000, () => 0) } } };
    (await api.request('POST', GADGETS, { body })).expect(201);
    const containers = list(3000, (index) => ({ name: `c${index}`, image: 'b' }));
    (await api.request('POST', `${CORE}/pods`, { body: { metadata: { name: 'large' }, spec: { containers } } })).expect(
      201,
    );
  });

  type Row = [name: string, path: string, body: unknown, headers: Record<string, string>, status: number];
  const rows: readonly Row[] = [
    [
      'insertions at the front',
      `${GADGETS}/large`,
      list(10_000, () => ({ op: 'add', path: '/spec/any/list/0', value: 1 })),
      json,
      200,
    ],
    [
      'insertions in the middle',
      `${GADGETS}/large`,
      list(10_000, () => ({ op: 'add', path: '/spec/any/list/150000', value: 1 })),
      json,
      200,
    ],
    [
      'moves',
      `${GADGETS}/large`,
      list(10_000, () => ({ op: 'move', from: '/spec/any/list/0', path: '/spec/any/list/-' })),
      json,
      200,
    ],
    ['tests of everything', `${GADGETS}/large`, list(9000, () => ({ op: 'test', path: '', value: {} })), json, 422],
    ['fields', `${GADGETS}/large`, { spec: { any: map(100_000, () => 1) } }, merge, 200],
    [
      'items of one key',
      `${CORE}/pods/large`,
      { spec: { containers: list(50_000, () => ({ name: 'c1', image: 'b' })) } },
      strategic,
      200,
    ],
    [
      'items in another order',
      `${CORE}/pods/large`,
      { spec: { '$setElementOrder/containers': list(3000, (index) => ({ name: `c${2999 - index}` })) } },
      strategic,
      422,
    ],
    [
      'values in an order',
      `${CORE}/pods/large`,
      {
        metadata: {
          finalizers: list(80_000, (index) => `a/b${index}`),
          '$setElementOrder/finalizers': list(80_000, (index) => `a/b${index}`),
        },
      },
      strategic,
      200,
    ],
    ['owned fields', `${GADGETS}/large`, gadget({ any: map(80_000, () => 1) }), apply, 200],
    ['owned items', `${GADGETS}/large`, gadget({ list: list(40_000, (index) => ({ key: `k${index}` })) }), apply, 200],
  ];

  it.each(sample(rows, SAMPLE))('%s', async (_name, path, body, headers, status) => {
    const answer = await api.request('PATCH', `${path}?dryRun=All&fieldManager=me`, { body, headers });
    expect(`${answer.status} ${answer.text.slice(0, 300)}`).toMatch(new RegExp(`^${status} `));
  });
});

describe('schemas that cost much', () => {
  async function define(plural: string, spec: object): Promise<string> {
    const crd: Anything = structuredClone(manifests.get('apiextensions.k8s.io/customresourcedefinitions'));
    const kind = `${plural[0]?.toUpperCase()}${plural.slice(1, -1)}`;
    crd.spec.names = { plural, singular: plural.slice(0, -1), kind, listKind: `${kind}List` };
    crd.spec.versions[0].schema.openAPIV3Schema.properties.spec = spec;
    crd.spec.versions[0].additionalPrinterColumns = [];
    delete crd.spec.versions[0].subresources;
    const body = { metadata: { name: `${plural}.wild.example.com` }, ...crd };
    (await api.request('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', { body })).expect(201);
    const path = `/apis/wild.example.com/v1/namespaces/default/${plural}`;
    await eventually(async () => (await api.request('GET', path)).expect(200));
    return path;
  }
  const text = `c${'ab'.repeat(1_400_000)}`;

  it.each([
    ['counts', 'a[abc]{999}c$'],
    ['nested counts', '(?:a[abc]{0,31}){31}c$'],
    ['nested stars', '^(([abc]*)*)*d$'],
  ])('by patterns: %s', async (name, pattern) => {
    const path = await define(`p${name.replaceAll(' ', '')}s`, {
      type: 'object',
      properties: { t: { type: 'string', pattern } },
    });
    const answer = await api.request('POST', path, { body: { metadata: { name: 'x' }, spec: { t: text } } });
    expect(answer.expect(422).json.message).toContain('spec.t');
  });

  it('by rules', async () => {
    const items = { type: 'string', maxLength: 10 };
    const rule = 'self.list.all(a, self.list.all(b, a != b || self.list.exists(c, c == a)))';
    const path = await define('rules', {
      type: 'object',
      properties: { list: { type: 'array', maxItems: 30, items } },
      'x-kubernetes-validations': [{ rule }],
    });
    (
      await api.request('POST', path, {
        body: { metadata: { name: 'x' }, spec: { list: list(30, (index) => `${index}`) } },
      })
    ).expect(201);
    (
      await api.request('POST', path, {
        body: { metadata: { name: 'x' }, spec: { list: list(100_000, (index) => `${index}`) } },
      })
    ).expect(422);
  });
});

describe('selectors that cost much', () => {
  it.each([
    ['of spaces', 'fieldSelector', `a${' '.repeat(16_000)}b`, 400],
    ['of spaces', 'labelSelector', `a${' '.repeat(16_000)}b`, 400],
    ['of requirements', 'labelSelector', list(3000, (index) => `!k${index}`).join(), 400],
    ['of values', 'labelSelector', `a in (${list(3000, (index) => `${index}`).join()})`, 200],
    ['of escapes', 'fieldSelector', '\\,'.repeat(8000), 400],
  ])('%s: a %s', async (_name, kind, selector, status) => {
    const query = new URLSearchParams({ [kind]: selector }).toString();
    for (let time = 0; time < 50; time++)
      expect((await api.request('GET', `${CORE}/pods?${query}`)).status).toBe(status);
    // Before anyone asks who is asking.
    for (let time = 0; time < 50; time++)
      expect((await api.as(undefined).request('GET', `${CORE}/pods?${query}`)).status).toBeGreaterThanOrEqual(400);
  });
});
