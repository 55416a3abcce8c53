import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { InProcessApi } from '../../../test/support/in-process.ts';
import { TOKEN_GROUP } from '../bootstrap-tokens.ts';
import { installedApi, rulesBy } from './installed-api.fixture.ts';
import { COMPONENTS, rightsPage, type Who } from './rights-page.fixture.ts';

/**
 * What each component may do, as the API server answers it, whatever the roles are made of: written down in
 * docs/kubernetes-rights.md, and so that nobody gives more without being seen. What a node may do besides is tried with
 * a node's certificate in test/http/node-rights.test.ts.
 */

const NODE: Who = { user: 'system:node:n1', groups: ['system:nodes'] };
let api: InProcessApi;

beforeAll(async () => {
  api = await installedApi();
});
afterAll(() => api.stop());

async function allowed({ user, groups }: Who, resourceAttributes: object): Promise<boolean> {
  const body = {
    apiVersion: 'authorization.k8s.io/v1',
    kind: 'SubjectAccessReview',
    spec: { user, groups: [...groups, 'system:authenticated'], resourceAttributes },
  };
  const answer = await api.request('POST', '/apis/authorization.k8s.io/v1/subjectaccessreviews', { body });
  return answer.expect(201).json.status.allowed as boolean;
}

describe('each component', () => {
  it('may do what is written down, and nothing else', async () =>
    expect(await rightsPage(rulesBy(api))).toMatchFileSnapshot('../../../docs/kubernetes-rights.md'));

  const FORBIDDEN: readonly (readonly [what: string, attributes: object])[] = [
    ['secrets of users', { verb: 'get', resource: 'secrets', namespace: 'shop' }],
    ['a list of secrets', { verb: 'list', resource: 'secrets', namespace: 'kubevirt' }],
    ['other secrets of its namespace', { verb: 'get', resource: 'secrets', namespace: 'kubevirt', name: 'other' }],
    ['tokens of others', { verb: 'create', resource: 'serviceaccounts', subresource: 'token', namespace: 'shop' }],
    ['a shell in pods', { verb: 'create', resource: 'pods', subresource: 'exec', namespace: 'shop' }],
    ['nodes made or removed', { verb: 'delete', resource: 'nodes' }],
    ['labels and taints of nodes', { verb: 'patch', resource: 'nodes' }],
    ['roles', { verb: 'create', group: 'rbac.authorization.k8s.io', resource: 'clusterroles' }],
    ['bindings', { verb: 'patch', group: 'rbac.authorization.k8s.io', resource: 'clusterrolebindings' }],
    ['others’ names', { verb: 'impersonate', resource: 'users' }],
    ['definitions of kinds', { verb: 'patch', group: 'apiextensions.k8s.io', resource: 'customresourcedefinitions' }],
    [
      'webhooks of others',
      {
        verb: 'patch',
        group: 'admissionregistration.k8s.io',
        resource: 'validatingwebhookconfigurations',
        name: 'other',
      },
    ],
    ['the configuration', { verb: 'patch', group: 'kubevirt.io', resource: 'kubevirts', namespace: 'kubevirt' }],
    ['machines removed', { verb: 'delete', group: 'kubevirt.io', resource: 'virtualmachines', namespace: 'shop' }],
    ['policies', { verb: 'create', group: 'migrations.kubevirt.io', resource: 'migrationpolicies' }],
  ];

  it.each(COMPONENTS)('$title: is kept from what would make it more than it is', async (who) => {
    const got: string[] = [];
    for (const [what, attributes] of FORBIDDEN) if (await allowed(who, attributes)) got.push(what);
    expect(got).toEqual([]);
  });

  it('an agent reads no secrets, changes no guests but their status, and touches nothing of the system', async () => {
    const guests = { group: 'kubevirt.io', resource: 'virtualmachineinstances', namespace: 'shop', name: 'vm' };
    expect(await allowed(NODE, { ...guests, verb: 'patch', subresource: 'status' })).toBe(true);
    const own = new Set(['labels and taints of nodes', 'nodes made or removed']);
    // Of which node is for the API server's admission to say: see test/http/node-rights.test.ts.
    for (const [what, attributes] of FORBIDDEN)
      if (!own.has(what)) expect(await allowed(NODE, attributes), what).toBe(false);
    for (const verb of ['create', 'update', 'patch', 'delete'])
      expect(await allowed(NODE, { ...guests, verb })).toBe(false);
  });
});

describe('the bearer of a bootstrap token', () => {
  it.each([
    ['may become a node by one of ours', TOKEN_GROUP, true],
    ['gets nothing from us by one of kubeadm’s', 'system:bootstrappers:kubeadm:default-node-token', false],
  ])('%s', async (_, group, isAllowed) => {
    // Not in `system:bootstrappers`, whose members may join by what the embedded API gives them besides.
    const who = { user: 'system:bootstrap:abcdef', groups: [group] };
    const requests = { group: 'certificates.k8s.io', resource: 'certificatesigningrequests', verb: 'create' };
    expect(await allowed(who, requests)).toBe(isAllowed);
    expect(await allowed(who, { ...requests, subresource: 'nodeclient' })).toBe(isAllowed);
  });

  it('is of a group that Kubernetes lets a token name', () =>
    expect(TOKEN_GROUP).toMatch(/^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/));
});

describe('users', () => {
  const asked = (group: string, resource: string, verb: string, subresource?: string): object => ({
    group,
    resource,
    verb,
    namespace: 'shop',
    ...(subresource === undefined ? {} : { subresource }),
  });
  const MIGRATION = asked('kubevirt.io', 'virtualmachineinstancemigrations', 'create');
  const MIGRATE = asked('subresources.kubevirt.io', 'virtualmachines', 'update', 'migrate');
  const EDIT = asked('kubevirt.io', 'virtualmachines', 'update');
  const VIEW = asked('kubevirt.io', 'virtualmachines', 'list');

  async function bind(user: string, ...roles: readonly string[]): Promise<void> {
    for (const role of roles) {
      const body = {
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: `${user}-${role.replaceAll(':', '-')}` },
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: role },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
      };
      const path = '/apis/rbac.authorization.k8s.io/v1/namespaces/shop/rolebindings';
      (await api.request('POST', path, { body })).expect(201);
    }
  }

  it('of a namespace are those of its machines; who may move them is said apart', async () => {
    (await api.request('POST', '/api/v1/namespaces', { body: { metadata: { name: 'shop' } } })).expect(201);
    await bind('ada', 'admin');
    await bind('ed', 'edit');
    await bind('vi', 'view');
    await bind('mo', 'edit', 'kubevirt.io:migrate');
    const mays = async (user: string): Promise<boolean[]> => {
      const answers: boolean[] = [];
      for (const attributes of [VIEW, EDIT, MIGRATE, MIGRATION])
        answers.push(await allowed({ user, groups: [] }, attributes));
      return answers;
    };
    // Roles are aggregated a moment later.
    await expect.poll(() => mays('ed')).toEqual([true, true, false, false]);
    await expect.poll(() => mays('ada')).toEqual([true, true, false, false]);
    await expect.poll(() => mays('vi')).toEqual([true, false, false, false]);
    await expect.poll(() => mays('mo')).toEqual([true, true, true, true]);
    expect(await mays('nobody')).toEqual([false, false, false, false]);
  });
});
