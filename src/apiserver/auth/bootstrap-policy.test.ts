import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { silentLogger } from '../../env/test.ts';
import { clone } from '../../machinery/clone.ts';
import type { UserInfo } from '../http/message.ts';
import { AUTO_UPDATE_ANNOTATION, bootstrapObjects } from './bootstrap-policy.ts';
import { reconcileBootstrapPolicy, repaired } from './bootstrap-reconcile.ts';
import type { AuthorizationAttributes, PolicyRule } from './policy-rule.ts';
import { RbacAuthorizer } from './rbac.ts';
import { clusterBinding, clusterRole, roleBinding } from './roles.fixture.ts';
import { TestRegistry, userContext } from '../registry/registry.fixture.ts';
import { RoleAggregation } from './role-aggregation.ts';
import { ANONYMOUS } from './users.ts';

const RBAC = 'rbac.authorization.k8s.io';
const context = userContext({ user: { username: 'system:apiserver', groups: ['system:masters'] } });

async function setup(...extra: KubeObject[]): Promise<{ registry: TestRegistry; authorizer: RbacAuthorizer }> {
  const registry = await TestRegistry.open();
  await reconcileBootstrapPolicy(registry, context);
  for (const object of extra) await registry.put(object);
  return { registry, authorizer: new RbacAuthorizer(registry) };
}

const resource = (verb: string, group: string, what: string, namespace = 'ns'): AuthorizationAttributes => {
  const [name = '', subresource = ''] = what.split('/');
  return { verb, isResource: true, path: '', group, namespace, resource: name, subresource, name: '' };
};
const path = (verb: string, url: string): AuthorizationAttributes => ({
  ...resource(verb, '', '', ''),
  isResource: false,
  path: url,
});

describe('the default policy', () => {
  it('lets nobody see more than health', async () => {
    const { authorizer } = await setup();
    for (const url of ['/healthz', '/livez', '/readyz']) {
      expect(authorizer.authorize(ANONYMOUS, path('get', url)).allowed).toBe(true);
    }
    for (const url of ['/', '/version', '/api', '/apis', '/openapi/v3', '/metrics', '/healthz/x', '/openid/v1/jwks']) {
      expect([url, authorizer.authorize(ANONYMOUS, path('get', url)).allowed]).toEqual([url, false]);
    }
    expect(authorizer.authorize(ANONYMOUS, path('post', '/healthz')).allowed).toBe(false);
    expect(authorizer.rulesFor(ANONYMOUS, 'kube-system').resourceRules).toEqual([]);
  });

  it('lets everyone else discover the API and ask about themselves', async () => {
    const { authorizer } = await setup();
    const ann: UserInfo = { username: 'ann', groups: ['system:authenticated'] };
    for (const url of ['/version', '/api', '/api/v1', '/apis/apps/v1', '/openapi/v2', '/readyz']) {
      expect(authorizer.authorize(ann, path('get', url)).allowed).toBe(true);
    }
    const review = resource('create', 'authorization.k8s.io', 'selfsubjectaccessreviews', '');
    expect(authorizer.authorize(ann, review).allowed).toBe(true);
    expect(authorizer.authorize(ann, resource('list', '', 'pods')).allowed).toBe(false);
    expect(authorizer.authorize(ann, path('get', '/metrics')).allowed).toBe(false);
  });

  it('grades view, edit and admin', async () => {
    const binding = (role: string): KubeObject => roleBinding('ns', role, ['ClusterRole', role], `User:${role}`);
    const { authorizer } = await setup(binding('view'), binding('edit'), binding('admin'), binding('cluster-admin'));
    const may = (what: AuthorizationAttributes): string[] =>
      ['view', 'edit', 'admin', 'cluster-admin'].filter(
        (role) => authorizer.authorize({ username: role, groups: [] }, what).allowed,
      );
    expect(may(resource('list', '', 'pods'))).toEqual(['view', 'edit', 'admin', 'cluster-admin']);
    expect(may(resource('get', 'apps', 'deployments/scale'))).toEqual(['view', 'edit', 'admin', 'cluster-admin']);
    expect(may(resource('get', '', 'secrets'))).toEqual(['edit', 'admin', 'cluster-admin']);
    expect(may(resource('delete', '', 'pods'))).toEqual(['edit', 'admin', 'cluster-admin']);
    expect(may(resource('create', '', 'pods/eviction'))).toEqual(['edit', 'admin', 'cluster-admin']);
    expect(may(resource('create', RBAC, 'rolebindings'))).toEqual(['admin', 'cluster-admin']);
    expect(may(resource('update', '', 'resourcequotas'))).toEqual(['cluster-admin']);
    expect(may(resource('escalate', RBAC, 'roles'))).toEqual(['cluster-admin']);
    expect(may(resource('list', '', 'pods', 'other'))).toEqual([]);
  });

  it('gives nodes no role but to renew their certificates: the rest is each one’s own', async () => {
    const { authorizer } = await setup();
    const node: UserInfo = { username: 'system:node:a', groups: ['system:nodes', 'system:authenticated'] };
    const may = (what: AuthorizationAttributes): boolean => authorizer.authorize(node, what).allowed;
    expect(may(resource('patch', '', 'pods/status'))).toBe(false);
    expect(may(resource('update', 'coordination.k8s.io', 'leases'))).toBe(false);
    expect(may(resource('create', 'certificates.k8s.io', 'certificatesigningrequests/selfnodeclient', ''))).toBe(true);
    expect(may(resource('create', 'certificates.k8s.io', 'certificatesigningrequests/nodeclient', ''))).toBe(false);
    expect(may(resource('get', '', 'secrets'))).toBe(false);
    expect(may(resource('create', '', 'serviceaccounts/token'))).toBe(false);
    expect(may(resource('create', '', 'pods'))).toBe(false);
  });

  it('names every object once and refers to roles that exist', () => {
    const objects = bootstrapObjects();
    const keys = objects.map((each) => `${each.kind}/${each.metadata.namespace ?? ''}/${each.metadata.name}`);
    expect(new Set(keys).size).toBe(keys.length);
    for (const object of objects) {
      expect(object.metadata.annotations?.[AUTO_UPDATE_ANNOTATION]).toBe('true');
      const ref = object['roleRef'] as { kind: string; name: string } | undefined;
      const namespace = ref?.kind === 'Role' ? object.metadata.namespace : '';
      if (ref) expect(keys).toContain(`${ref.kind}/${namespace}/${ref.name}`);
    }
  });
});

describe('reconcileBootstrapPolicy', () => {
  const read = (registry: TestRegistry, plural: string, name: string): KubeObject | undefined =>
    registry.view(`${plural}.${RBAC}`).get('', name);

  it('changes nothing when all is there', () => {
    for (const object of bootstrapObjects()) expect(repaired(clone(object), object)).toEqual(object);
  });

  it('gives back what was lost, and keeps what was added', async () => {
    const { registry } = await setup();
    const added: PolicyRule = { verbs: ['get'], apiGroups: ['x.io'], resources: ['things'] };
    const lost = read(registry, 'clusterroles', 'system:basic-user') as KubeObject;
    await registry.put({ ...lost, metadata: { ...lost.metadata, labels: { mine: 'x' } }, rules: [added] });
    await registry.put(clusterBinding('system:discovery', 'system:discovery', 'User:ann'));
    await registry.put({ ...(read(registry, 'clusterroles', 'admin') as KubeObject), aggregationRule: undefined });
    await registry.drop(clusterBinding('cluster-admin', ''));
    await reconcileBootstrapPolicy(registry, context);

    const role = read(registry, 'clusterroles', 'system:basic-user');
    expect(role?.['rules']).toEqual([
      added,
      { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['selfsubjectaccessreviews'] },
      { verbs: ['create'], apiGroups: ['authorization.k8s.io'], resources: ['selfsubjectrulesreviews'] },
      { verbs: ['create'], apiGroups: ['authentication.k8s.io'], resources: ['selfsubjectreviews'] },
    ]);
    expect(role?.metadata.labels).toEqual({ mine: 'x', 'kubernetes.io/bootstrapping': 'rbac-defaults' });
    const subjects = read(registry, 'clusterrolebindings', 'system:discovery')?.['subjects'] as { name: string }[];
    expect(subjects.map(({ name }) => name)).toEqual(['ann', 'system:authenticated']);
    expect(read(registry, 'clusterrolebindings', 'cluster-admin')).toBeDefined();
    expect(read(registry, 'clusterroles', 'admin')?.['aggregationRule']).toEqual({
      clusterRoleSelectors: [{ matchLabels: { 'rbac.authorization.k8s.io/aggregate-to-admin': 'true' } }],
    });
  });

  it('leaves alone what says so', async () => {
    const { registry } = await setup();
    const role = clusterRole('system:basic-user', []);
    role.metadata.annotations = { [AUTO_UPDATE_ANNOTATION]: 'false' };
    await registry.put(role);
    await reconcileBootstrapPolicy(registry, context);
    expect(read(registry, 'clusterroles', 'system:basic-user')?.['rules']).toEqual([]);
  });

  it('does not touch a binding to another role', async () => {
    const { registry } = await setup();
    await registry.put(clusterBinding('system:discovery', 'mine', 'User:ann'));
    await reconcileBootstrapPolicy(registry, context);
    expect(read(registry, 'clusterrolebindings', 'system:discovery')?.['subjects']).toHaveLength(1);
  });
});

describe('role aggregation', () => {
  it('shows in each gathering role what it gathers, as that changes', async () => {
    const { registry, authorizer } = await setup();
    const abort = new AbortController();
    const aggregation = new RoleAggregation({ registry, roles: authorizer, log: silentLogger });
    const running = aggregation.run(abort.signal);
    const rulesOf = (name: string): readonly PolicyRule[] =>
      (registry.view(`clusterroles.${RBAC}`).get('', name)?.['rules'] ?? []) as PolicyRule[];
    const things: PolicyRule = { verbs: ['get'], apiGroups: ['x.io'], resources: ['things'] };

    await settled();
    expect(rulesOf('view').length).toBeGreaterThan(3);
    expect(rulesOf('admin')).toEqual(authorizer.rulesOfRole({ kind: 'ClusterRole', name: 'admin' }, ''));
    await registry.put(clusterRole('things', [things], { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' }));
    await settled();
    for (const name of ['view', 'edit', 'admin']) expect(rulesOf(name)).toContainEqual(things);
    await registry.drop(clusterRole('things', []));
    await settled();
    for (const name of ['view', 'edit', 'admin']) expect(rulesOf(name)).not.toContainEqual(things);

    abort.abort();
    await running;
  });
});

/** Long enough for passes over a registry that answers at once. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}
