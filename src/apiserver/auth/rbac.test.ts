import { describe, expect, it } from 'vitest';
import type { UserInfo } from '../http/message.ts';
import { forbiddenError } from './forbidden.ts';
import type { AuthorizationAttributes } from './policy-rule.ts';
import { RbacAuthorizer } from './rbac.ts';
import { clusterBinding, clusterRole, role, roleBinding } from './roles.fixture.ts';
import { TestRegistry } from '../registry/registry.fixture.ts';

const user = (username: string, ...groups: string[]): UserInfo => ({ username, groups });

/** `verb group/resource/subresource namespace name`, with `-` for an empty part; or `verb /path`. */
function attributes(text: string): AuthorizationAttributes {
  const [verb = '', what = '', namespace = '-', name = '-'] = text.split(' ');
  const empty = { verb, path: '', group: '', namespace: '', resource: '', subresource: '', name: '' };
  if (what.startsWith('/')) return { ...empty, isResource: false, path: what };
  const [group = '', resource = '', subresource = ''] = what.split('/');
  const part = (each: string): string => (each === '-' ? '' : each);
  return {
    ...empty,
    isResource: true,
    group: part(group),
    resource,
    subresource,
    namespace: part(namespace),
    name: part(name),
  };
}

type Rule = Parameters<typeof clusterRole>[1][number];

describe('a rule', () => {
  const pods: Rule = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] };
  const table: [rule: Rule, allowed: string[], denied: string[]][] = [
    [
      pods,
      ['get -/pods ns a', 'list -/pods ns', 'get -/pods - a'],
      [
        'watch -/pods ns',
        'get -/pods/status ns a',
        'get -/pod ns a',
        'get apps/pods ns a',
        'get /pods',
        'get -/podss ns',
        '* -/pods ns',
      ],
    ],
    [
      { ...pods, verbs: ['*'] },
      ['get -/pods ns a', 'made-up -/pods ns a', '* -/pods ns'],
      ['get -/pods/log ns a', 'get -/nodes'],
    ],
    [{ ...pods, apiGroups: ['*'] }, ['get -/pods ns', 'get anything.io/pods ns'], ['get anything.io/pods/log ns']],
    [
      { ...pods, resources: ['*'] },
      ['get -/pods ns', 'get -/pods/status ns', 'get -/nodes - n', 'get -/nodes/proxy - n'],
      ['get apps/deployments ns', 'get /api'],
    ],
    [
      { ...pods, resources: ['pods/status'] },
      ['get -/pods/status ns a'],
      ['get -/pods ns a', 'get -/pods/log ns a', 'get -/nodes/status - a'],
    ],
    [
      { ...pods, resources: ['*/scale'] },
      ['get -/pods/scale ns a', 'get -/anything/scale ns a'],
      ['get -/scale ns a', 'get -/pods ns a', 'get -/pods/scales ns a', 'get -/pods/xscale ns a'],
    ],
    // Only whole parts are wildcards: these stand for themselves, which no resource is called.
    [{ ...pods, resources: ['pods/*', 'po*'] }, [], ['get -/pods ns', 'get -/pods/status ns', 'get -/pods/log ns']],
    [
      { ...pods, resourceNames: ['a', 'b'] },
      ['get -/pods ns a', 'get -/pods ns b', 'list -/pods ns a'],
      ['get -/pods ns c', 'list -/pods ns', 'get -/pods ns *'],
    ],
    // A star is no wildcard among names, and an object may be called so.
    [{ ...pods, resourceNames: ['*'] }, ['get -/pods ns *'], ['get -/pods ns a']],
    [
      { verbs: ['get'], nonResourceURLs: ['/healthz', '/version/'] },
      ['get /healthz', 'get /version/'],
      ['get /healthz/', 'get /healthz/etcd', 'get /version', 'post /healthz', 'get -/pods ns'],
    ],
    [
      { verbs: ['get'], nonResourceURLs: ['/api/*'] },
      ['get /api/', 'get /api/v1', 'get /api/v1/x'],
      ['get /api', 'get /apis', 'get /'],
    ],
    [{ verbs: ['get'], nonResourceURLs: ['/api*'] }, ['get /api', 'get /apis/apps'], ['get /ap']],
    [{ verbs: ['get'], nonResourceURLs: ['/a/*/b'] }, ['get /a/*/b'], ['get /a/x/b']],
    [{ verbs: ['*'], nonResourceURLs: ['*'] }, ['get /', 'delete /metrics'], ['get -/pods ns']],
    [
      { verbs: ['*'], apiGroups: ['*'], resources: ['*'] },
      ['get -/pods ns', 'bind rbac.authorization.k8s.io/clusterroles - x', '* */*/x'],
      ['get /metrics'],
    ],
    [{ verbs: ['get'] }, [], ['get -/pods ns', 'get /']],
    [{ verbs: [], apiGroups: ['*'], resources: ['*'] }, [], ['get -/pods ns']],
    [{ verbs: ['get'], apiGroups: [], resources: ['pods'] }, [], ['get -/pods ns']],
    [
      { verbs: ['get'], apiGroups: [''], resources: ['constructor', '__proto__'] },
      ['get -/constructor ns', 'get -/__proto__ ns'],
      ['get -/toString ns'],
    ],
  ];
  it.each(table)('%j', async (rule, allowed, denied) => {
    const registry = await TestRegistry.open();
    await registry.put(clusterRole('r', [rule]));
    await registry.put(clusterBinding('b', 'r', 'User:u'));
    const authorizer = new RbacAuthorizer(registry);
    for (const each of allowed)
      expect([each, authorizer.authorize(user('u'), attributes(each)).allowed]).toEqual([each, true]);
    for (const each of denied)
      expect([each, authorizer.authorize(user('u'), attributes(each)).allowed]).toEqual([each, false]);
  });
});

describe('a binding', () => {
  const setup = async (): Promise<{ registry: TestRegistry; authorizer: RbacAuthorizer }> => {
    const registry = await TestRegistry.open();
    await registry.put(clusterRole('reader', [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }]));
    await registry.put(role('ns', 'writer', [{ verbs: ['create'], apiGroups: [''], resources: ['pods'] }]));
    return { registry, authorizer: new RbacAuthorizer(registry) };
  };
  const may = (authorizer: RbacAuthorizer, who: UserInfo, what: string): boolean =>
    authorizer.authorize(who, attributes(what)).allowed;

  it('reaches users, groups and service accounts, and none that share a name', async () => {
    const { registry, authorizer } = await setup();
    await registry.put(clusterBinding('users', 'reader', 'User:ann', 'ServiceAccount:ns/robot'));
    await registry.put(clusterBinding('groups', 'reader', 'Group:staff'));
    const get = 'get -/pods ns a';
    expect(may(authorizer, user('ann'), get)).toBe(true);
    expect(may(authorizer, user('x', 'ann'), get)).toBe(false);
    expect(may(authorizer, user('staff'), get)).toBe(false);
    expect(may(authorizer, user('x', 'others', 'staff'), get)).toBe(true);
    expect(may(authorizer, user('system:serviceaccount:ns:robot'), get)).toBe(true);
    expect(may(authorizer, user('system:serviceaccount:other:robot'), get)).toBe(false);
    expect(may(authorizer, user('robot'), get)).toBe(false);
    expect(may(authorizer, user('ann'), 'get -/pods other a')).toBe(true);
    expect(may(authorizer, user('ann'), 'get -/pods -')).toBe(true);
  });

  it('in a namespace counts there only', async () => {
    const { registry, authorizer } = await setup();
    await registry.put(roleBinding('ns', 'b', ['Role', 'writer'], 'User:ann', 'ServiceAccount:/robot'));
    await registry.put(roleBinding('ns', 'c', ['ClusterRole', 'reader'], 'User:ann'));
    expect(may(authorizer, user('ann'), 'create -/pods ns')).toBe(true);
    expect(may(authorizer, user('ann'), 'get -/pods ns')).toBe(true);
    expect(may(authorizer, user('ann'), 'get -/pods other')).toBe(false);
    expect(may(authorizer, user('ann'), 'get -/pods -')).toBe(false);
    expect(may(authorizer, user('system:serviceaccount:ns:robot'), 'create -/pods ns')).toBe(true);
  });

  it('of a namespace does not find a Role of another', async () => {
    const { registry, authorizer } = await setup();
    await registry.put(roleBinding('other', 'b', ['Role', 'writer'], 'User:ann'));
    const decision = authorizer.authorize(user('ann'), attributes('create -/pods other'));
    expect(decision).toEqual({
      allowed: false,
      reason: 'RBAC: role.rbac.authorization.k8s.io "writer" not found',
    });
  });

  it('names every role that is missing', async () => {
    const { registry, authorizer } = await setup();
    await registry.put(clusterBinding('a', 'nope', 'User:ann'));
    await registry.put(roleBinding('ns', 'b', ['Role', 'gone'], 'User:ann'));
    expect(authorizer.authorize(user('ann'), attributes('get -/nodes ns')).reason).toBe(
      'RBAC: [clusterrole.rbac.authorization.k8s.io "nope" not found, role.rbac.authorization.k8s.io "gone" not found]',
    );
  });

  it('counts from the moment it is written until the moment it is gone', async () => {
    const { registry, authorizer } = await setup();
    const get = 'get -/pods ns';
    expect(may(authorizer, user('ann'), get)).toBe(false);
    await registry.put(clusterBinding('b', 'reader', 'User:ann', 'User:ann', 'User:bob'));
    expect([may(authorizer, user('ann'), get), may(authorizer, user('bob'), get)]).toEqual([true, true]);
    await registry.put(clusterBinding('b', 'reader', 'User:bob'));
    expect([may(authorizer, user('ann'), get), may(authorizer, user('bob'), get)]).toEqual([false, true]);
    await registry.put(clusterRole('reader', [{ verbs: ['list'], apiGroups: [''], resources: ['pods'] }]));
    expect([may(authorizer, user('bob'), get), may(authorizer, user('bob'), 'list -/pods ns')]).toEqual([false, true]);
    await registry.drop(clusterBinding('b', 'reader'));
    expect(may(authorizer, user('bob'), 'list -/pods ns')).toBe(false);
  });

  it('is found when it was there before the authorizer', async () => {
    const { registry } = await setup();
    await registry.put(clusterBinding('b', 'reader', 'User:ann'));
    await registry.put(roleBinding('ns', 'c', ['Role', 'writer'], 'User:ann'));
    const authorizer = new RbacAuthorizer(registry);
    expect(may(authorizer, user('ann'), 'get -/pods x')).toBe(true);
    expect(may(authorizer, user('ann'), 'create -/pods ns')).toBe(true);
  });

  it('says what allowed a request', async () => {
    const { registry, authorizer } = await setup();
    await registry.put(clusterBinding('b', 'reader', 'Group:staff'));
    await registry.put(roleBinding('ns', 'c', ['Role', 'writer'], 'ServiceAccount:/robot'));
    expect(authorizer.authorize(user('x', 'staff'), attributes('get -/pods ns')).reason).toBe(
      'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to Group "staff"',
    );
    expect(authorizer.authorize(user('system:serviceaccount:ns:robot'), attributes('create -/pods ns')).reason).toBe(
      'RBAC: allowed by RoleBinding "c/ns" of Role "writer" to ServiceAccount "robot/ns"',
    );
  });

  it('is not needed by system:masters, nor given to a user of that name', async () => {
    const { authorizer } = await setup();
    expect(may(authorizer, user('x', 'system:masters'), 'delete -/nodes - n')).toBe(true);
    expect(may(authorizer, user('x', 'system:masters'), 'get /metrics')).toBe(true);
    expect(may(authorizer, user('system:masters'), 'get -/nodes - n')).toBe(false);
  });
});

describe('aggregation', () => {
  const gatherer = (name: string, label: string, labels: Record<string, string> = {}) => ({
    ...clusterRole(name, [{ verbs: ['stale'], apiGroups: ['*'], resources: ['*'] }], labels),
    aggregationRule: { clusterRoleSelectors: [{ matchLabels: { [label]: 'true' } }] },
  });
  const may = (authorizer: RbacAuthorizer, what: string): boolean =>
    authorizer.authorize(user('u'), attributes(what)).allowed;

  it('gathers roles by label, through other gatherers, as they come, change and go', async () => {
    const registry = await TestRegistry.open();
    await registry.put(gatherer('admin', 'to-admin'));
    await registry.put(gatherer('edit', 'to-edit', { 'to-admin': 'true' }));
    await registry.put(clusterBinding('b', 'admin', 'User:u'));
    const authorizer = new RbacAuthorizer(registry);
    const get = 'get x.io/things ns';
    expect(may(authorizer, get)).toBe(false);
    // What the role itself holds is the controller's to write: it counts for nothing.
    expect(may(authorizer, 'stale -/pods ns')).toBe(false);

    const things = [{ verbs: ['get'], apiGroups: ['x.io'], resources: ['things'] }];
    await registry.put(clusterRole('things', things, { 'to-edit': 'true' }));
    expect(may(authorizer, get)).toBe(true);
    await registry.put(clusterRole('things', [], { 'to-edit': 'true' }));
    expect(may(authorizer, get)).toBe(false);
    await registry.put(clusterRole('things', things, { 'to-edit': 'true' }));
    expect(may(authorizer, get)).toBe(true);
    await registry.put(clusterRole('things', things));
    expect(may(authorizer, get)).toBe(false);
    await registry.put(clusterRole('things', things, { 'to-admin': 'true' }));
    expect(may(authorizer, get)).toBe(true);
    await registry.drop(clusterRole('things', things));
    expect(may(authorizer, get)).toBe(false);
  });

  it('stands circles, and selectors that make no sense', async () => {
    const registry = await TestRegistry.open();
    await registry.put(gatherer('a', 'to-a', { 'to-b': 'true' }));
    await registry.put(gatherer('b', 'to-b', { 'to-a': 'true', 'to-b': 'true' }));
    await registry.put(clusterRole('c', [{ verbs: ['get'], apiGroups: [''], resources: ['c'] }], { 'to-b': 'true' }));
    await registry.put({
      ...clusterRole('broken', []),
      aggregationRule: { clusterRoleSelectors: [{ matchExpressions: [{ key: 'x', operator: 'Frobs' }] }] },
    });
    for (const each of ['a', 'b', 'broken']) await registry.put(clusterBinding(each, each, `User:${each}`));
    const authorizer = new RbacAuthorizer(registry);
    const get = attributes('get -/c ns');
    expect(authorizer.authorize(user('a'), get).allowed).toBe(true);
    expect(authorizer.authorize(user('b'), get).allowed).toBe(true);
    expect(authorizer.authorize(user('broken'), get).allowed).toBe(false);
  });
});

describe('rulesFor', () => {
  it('lists what holds everywhere and in the namespace, and says when a role is missing', async () => {
    const registry = await TestRegistry.open();
    const get = { verbs: ['get'], apiGroups: [''], resources: ['pods'] };
    const health = { verbs: ['get'], nonResourceURLs: ['/healthz'] };
    const write = { verbs: ['create'], apiGroups: [''], resources: ['pods'] };
    await registry.put(clusterRole('r', [get, health]));
    await registry.put(role('ns', 'w', [write]));
    await registry.put(clusterBinding('b', 'r', 'Group:g'));
    await registry.put(roleBinding('ns', 'c', ['Role', 'w'], 'User:u'));
    const authorizer = new RbacAuthorizer(registry);
    expect(authorizer.rulesFor(user('u', 'g'), 'ns')).toEqual({
      resourceRules: [get, write],
      nonResourceRules: [health],
      incomplete: false,
      evaluationError: '',
    });
    expect(authorizer.rulesFor(user('u', 'g'), 'other').resourceRules).toEqual([get]);
    await registry.put(clusterBinding('d', 'nope', 'Group:g'));
    expect(authorizer.rulesFor(user('u', 'g'), 'ns')).toMatchObject({
      incomplete: true,
      evaluationError: 'clusterrole.rbac.authorization.k8s.io "nope" not found',
    });
  });
});

describe('a decision', () => {
  it('does not slow down with the number of bindings that concern others', async () => {
    const registry = await TestRegistry.open();
    await registry.put(clusterRole('r', [{ verbs: ['get'], apiGroups: [''], resources: ['pods'] }]));
    for (let index = 0; index < 20_000; index++) {
      await registry.put(clusterBinding(`c${index}`, 'r', `User:c${index}`));
      await registry.put(roleBinding('ns', `r${index}`, ['ClusterRole', 'r'], `User:r${index}`));
    }
    const authorizer = new RbacAuthorizer(registry);
    const wanted = attributes('get -/pods ns a');
    const who = user('r777', 'system:authenticated');
    const started = performance.now();
    let allowed = 0;
    for (let round = 0; round < 20_000; round++) if (authorizer.authorize(who, wanted).allowed) allowed++;
    const microseconds = ((performance.now() - started) * 1000) / 20_000;
    expect(allowed).toBe(20_000);
    // A scan would take milliseconds; the limit leaves room for a machine under load.
    expect(microseconds).toBeLessThan(50);
  });
});

describe('a refusal', () => {
  it.each([
    [
      'list -/pods default',
      'pods is forbidden: User "x" cannot list resource "pods" in API group "" in the namespace "default"',
    ],
    [
      'get -/namespaces - foo',
      'namespaces "foo" is forbidden: User "x" cannot get resource "namespaces" in API group "" at the cluster scope',
    ],
    [
      'patch apps/deployments/scale ns web',
      'deployments.apps "web" is forbidden: User "x" cannot patch resource "deployments/scale" in API group "apps" in the namespace "ns"',
    ],
    ['get /metrics', 'forbidden: User "x" cannot get path "/metrics"'],
    ['get /<b>&', 'forbidden: User "x" cannot get path "/&lt;b&gt;&amp;"'],
  ])('of %s', (what, message) => {
    const error = forbiddenError(user('x'), attributes(what));
    expect(error).toMatchObject({ code: 403, reason: 'Forbidden', message });
  });

  it('adds the authorizer’s reason', () => {
    expect(forbiddenError(user('x'), attributes('get /a'), 'RBAC: why').message).toBe(
      'forbidden: User "x" cannot get path "/a": RBAC: why',
    );
  });
});
