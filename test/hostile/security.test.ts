import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { issueIdentity } from '../../src/machinery/x509/authority.ts';
import type { Answer } from '../support/api.ts';
import { Fortress, MASTER, ROOT, SECRET } from './fortress.ts';

/** What those may do who got in, and as whom. */

let fortress: Fortress;
beforeAll(async () => {
  fortress = await Fortress.start();
});
afterAll(() => fortress.close());

describe('rights, spelled whole', () => {
  let sequence = 0;

  /** A user with exactly these rights in the namespace. */
  async function userWith(...rules: object[]): Promise<string> {
    const name = `user-${sequence++}`;
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/target`;
    await fortress.cluster.create(`${rbac}/roles`, { metadata: { name }, rules });
    await fortress.cluster.create(`${rbac}/rolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name }],
    });
    return name;
  }

  const pod = { metadata: { name: 'p', namespace: 'target' }, spec: { containers: [{ name: 'a', image: 'b' }] } };
  const patch = { 'content-type': 'application/merge-patch+json' };
  const verbs: [string, (user: string) => Promise<Answer>][] = [
    ['get', (user) => fortress.as(user, 'GET', `${ROOT}/pods/p`)],
    ['list', (user) => fortress.as(user, 'GET', `${ROOT}/pods`)],
    ['watch', (user) => fortress.as(user, 'GET', `${ROOT}/pods?watch=1&timeoutSeconds=1`)],
    ['create', (user) => fortress.as(user, 'POST', `${ROOT}/pods?dryRun=All`, pod)],
    ['update', (user) => fortress.as(user, 'PUT', `${ROOT}/pods/p?dryRun=All`, pod)],
    ['patch', (user) => fortress.as(user, 'PATCH', `${ROOT}/pods/p?dryRun=All`, {}, patch)],
    ['delete', (user) => fortress.as(user, 'DELETE', `${ROOT}/pods/p?dryRun=All`)],
    ['deletecollection', (user) => fortress.as(user, 'DELETE', `${ROOT}/pods?dryRun=All`)],
  ];

  it.each(verbs.map(([verb]) => verb))('%s gives that verb and no other', async (verb) => {
    const user = await userWith({ apiGroups: [''], resources: ['pods'], verbs: [verb] });
    const allowed = await Promise.all(
      verbs.map(async ([each, ask]) => ((await ask(user)).status === 403 ? [] : [each])),
    );
    expect(allowed.flat()).toEqual([verb]);
  });

  const subresources: [string, string, string, object][] = [
    ['pods/status', 'GET', 'pods/p/status', {}],
    ['pods/status', 'PUT', 'pods/p/status', pod],
    ['pods/status', 'PATCH', 'pods/p/status', {}],
    ['pods/eviction', 'POST', 'pods/p/eviction', { apiVersion: 'policy/v1', kind: 'Eviction' }],
    [
      'pods/binding',
      'POST',
      'pods/p/binding',
      { apiVersion: 'v1', kind: 'Binding', target: { kind: 'Node', name: 'n' } },
    ],
    ['pods/ephemeralcontainers', 'PATCH', 'pods/p/ephemeralcontainers', {}],
    ['serviceaccounts/token', 'POST', 'serviceaccounts/robot/token', {}],
    ['replicationcontrollers/scale', 'GET', 'replicationcontrollers/r/scale', {}],
    ['replicationcontrollers/scale', 'PATCH', 'replicationcontrollers/r/scale', {}],
  ];
  it.each(subresources)('of a resource are not those of %s: %s %s', async (resource, method, path, body) => {
    const [parent = ''] = resource.split('/');
    const headers: Record<string, string> = method === 'PATCH' ? patch : {};
    const ask = (user: string): Promise<Answer> =>
      fortress.as(user, method, `${ROOT}/${path}`, method === 'GET' ? undefined : body, headers);
    const refused = await ask(await userWith({ apiGroups: ['*'], resources: [parent], verbs: ['*'] }));
    expect(refused.expect(403).json.message).toContain(
      `cannot ${{ GET: 'get', PUT: 'update', PATCH: 'patch', POST: 'create' }[method]} resource "${resource}"`,
    );
    expect((await ask(await userWith({ apiGroups: ['*'], resources: [resource], verbs: ['*'] }))).status).not.toBe(403);
    expect(
      (await ask(await userWith({ apiGroups: ['*'], resources: [`*/${resource.split('/')[1]}`], verbs: ['*'] })))
        .status,
    ).not.toBe(403);
  });

  it('on one name are not those on all', async () => {
    const user = await userWith({ apiGroups: [''], resources: ['secrets'], verbs: ['*'], resourceNames: ['one'] });
    const selected = (selector: string): string => `${ROOT}/secrets?fieldSelector=${encodeURIComponent(selector)}`;
    (await fortress.as(user, 'GET', `${ROOT}/secrets/one`)).expect(200);
    expect((await fortress.as(user, 'GET', selected('metadata.name=one'))).expect(200).json.items).toHaveLength(1);
    for (const path of [
      `${ROOT}/secrets/two`,
      `${ROOT}/secrets`,
      `${ROOT}/secrets?watch=1`,
      selected('metadata.name=two'),
      selected('metadata.name!=one'),
      selected('type=Opaque'),
      `${selected('metadata.name=two')}&fieldSelector=metadata.name%3Done`,
    ])
      (await fortress.as(user, 'GET', path)).expect(403);
    // What is asked for by two names is nothing, whichever of them was authorized.
    const both = await fortress.as(user, 'GET', selected('metadata.name=one,metadata.name=two'));
    expect(both.status === 403 ? [] : both.json.items).toEqual([]);
    (await fortress.as(user, 'DELETE', `${ROOT}/secrets?dryRun=All`)).expect(403);
    (await fortress.as(user, 'POST', `${ROOT}/secrets?dryRun=All`, { metadata: { name: 'one' } })).expect(403);
  });

  it('in one namespace are not those in all', async () => {
    const user = await userWith({ apiGroups: [''], resources: ['secrets'], verbs: ['*'] });
    (await fortress.as(user, 'GET', `${ROOT}/secrets`)).expect(200);
    for (const path of [
      '/api/v1/secrets',
      '/api/v1/namespaces/default/secrets',
      '/api/v1/secrets?fieldSelector=metadata.namespace%3Dtarget',
    ])
      (await fortress.as(user, 'GET', path)).expect(403);
    const elsewhere = { metadata: { name: 'x', namespace: 'kube-system' } };
    (await fortress.as(user, 'POST', `${ROOT}/secrets`, elsewhere)).expect(400);
  });

  it('on config maps are none on secrets, whichever way the path is written', async () => {
    const user = await userWith({ apiGroups: [''], resources: ['configmaps'], verbs: ['*'] });
    (await fortress.as(user, 'GET', `${ROOT}/configmaps`)).expect(200);
    for (const path of [
      `${ROOT}/secrets`,
      `${ROOT}/secrets/`,
      `${ROOT}/Secrets`,
      `${ROOT}/configmaps/../secrets`,
      `${ROOT}/configmaps/%2e%2e/secrets`,
      `${ROOT}/configmaps/..%2fsecrets`,
      `${ROOT}//secrets`,
      `${ROOT}/configmaps;/secrets`,
      `/API/v1/namespaces/target/secrets`,
      `/api/v1/namespaces/target%2fsecrets/configmaps`,
      `${ROOT}/secrets%2fone`,
      `${ROOT}/%73ecrets`,
      `${ROOT}/secrets/one/status`,
    ]) {
      const { status, text } = await fortress.as(user, 'GET', path);
      expect(`${path} ${status}`).toMatch(/ (?:400|403|404)$/);
      expect(text).not.toContain(Buffer.from(SECRET).toString('base64').slice(0, 16));
    }
    for (const header of ['x-http-method-override', 'x-original-url', 'x-rewrite-url', 'x-forwarded-uri'])
      expect(
        (await fortress.as(user, 'GET', `${ROOT}/configmaps`, undefined, { [header]: `${ROOT}/secrets` })).expect(200)
          .json.kind,
      ).toBe('ConfigMapList');
    (
      await fortress.as(user, 'GET', `${ROOT}/configmaps/one`, undefined, { 'x-http-method-override': 'DELETE' })
    ).expect(200);
    (await fortress.as(user, 'GET', `${ROOT}/configmaps/one`)).expect(200);
  });

  it('cannot be given by those who do not have them', async () => {
    const user = await userWith({
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['roles', 'rolebindings'],
      verbs: ['create'],
    });
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/target';
    const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }];
    (await fortress.as(user, 'POST', `${rbac}/roles`, { metadata: { name: 'more' }, rules })).expect(403);
    const binding = {
      metadata: { name: 'more' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'User', name: user, apiGroup: 'rbac.authorization.k8s.io' }],
    };
    (await fortress.as(user, 'POST', `${rbac}/rolebindings`, binding)).expect(403);
  });
});

describe('acting as somebody else', () => {
  const review = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
  let token: string;
  beforeAll(async () => {
    token = (await fortress.cluster.create(`${ROOT}/serviceaccounts/robot/token`, { spec: {} })).status.token;
  });

  it.each<[string, Record<string, string>]>([
    ['the admin', { 'impersonate-user': 'kubernetes-admin' }],
    ['a member of system:masters', { 'impersonate-user': 'x', 'impersonate-group': 'system:masters' }],
    ['another service account', { 'impersonate-user': 'system:serviceaccount:kube-system:default' }],
    [
      'itself with another group',
      { 'impersonate-user': 'system:serviceaccount:target:robot', 'impersonate-group': 'system:masters' },
    ],
    [
      'itself with an extra',
      { 'impersonate-user': 'system:serviceaccount:target:robot', 'impersonate-extra-scopes': 'all' },
    ],
    ['nobody', { 'impersonate-user': 'system:anonymous' }],
  ])('as %s needs the right to', async (_name, headers) => {
    (await fortress.client({ token }).request('GET', '/api', { headers })).expect(403);
    (await fortress.client().request('GET', '/livez', { headers })).expect(403);
  });

  it.each([
    { 'impersonate-group': 'system:masters' },
    { 'impersonate-uid': 'x' },
    { 'impersonate-extra-scopes': 'all' },
  ])('%j alone is no request', async (headers) => {
    (
      await fortress.client({ token }).request('GET', '/api', { headers: headers as unknown as Record<string, string> })
    ).expect(400);
  });

  it("the headers by which front proxies name users are nobody else's to send", async () => {
    const headers = {
      'x-remote-user': 'kubernetes-admin',
      'x-remote-group': 'system:masters',
      'x-remote-extra-scopes': 'all',
      'x-forwarded-user': 'kubernetes-admin',
      'x-ssl-client-cn': 'kubernetes-admin',
    };
    (await fortress.client().request('GET', '/api', { headers })).expect(403);
    const { status } = (await fortress.client({ token }).request('POST', review, { body: {}, headers })).expect(
      201,
    ).json;
    expect(status.userInfo.username).toBe('system:serviceaccount:target:robot');
    expect(status.userInfo.groups).not.toContain('system:masters');
  });
});

describe('nodes', () => {
  it('cannot read secrets, nor change what is not theirs to change', async () => {
    const identity = await issueIdentity(fortress.authority('cluster-authority.pem'), {
      ...MASTER,
      commonName: 'system:node:n1',
      organizations: ['system:nodes'],
    });
    const node = fortress.withIdentity(identity);
    for (const path of [
      `${ROOT}/secrets`,
      `${ROOT}/secrets/one`,
      '/api/v1/secrets',
      '/api/v1/secrets?watch=1',
      '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
    ])
      (await node.request('GET', path)).expect(403);
    (await node.request('POST', `${ROOT}/serviceaccounts/robot/token`, { body: {} })).expect(403);
    (await node.request('GET', '/api')).expect(200);
  });
});
