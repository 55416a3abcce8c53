import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Cluster } from '../support/cluster.ts';
import { type Kubectl, kubectlHas } from '../support/kubectl.ts';
import { tableOf } from './table.ts';

/** Who may do what, as kubectl shows it. */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;

beforeAll(async () => {
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace('access'));
  await kubectl.apply(
    [
      `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader}
rules:
- {apiGroups: [""], resources: [pods, pods/log], verbs: [get, list, watch]}
- {apiGroups: [apps], resources: [deployments], resourceNames: [web], verbs: [get]}
- {apiGroups: [apps], resources: [deployments/scale], verbs: [update, patch]}`,
      `apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: readers}
- {kind: ServiceAccount, name: robot, namespace: ${namespace}}`,
      'apiVersion: v1\nkind: ServiceAccount\nmetadata: {name: robot}',
      'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}',
    ].join('\n---\n'),
  );
});
afterAll(() => cluster.close());

const lines = (text: string): string[] => text.trimEnd().split('\n');

describe('auth can-i', () => {
  it.each([
    ['create pods', 'yes'],
    ['* *', 'yes'],
    ['get /metrics', 'yes'],
    ['list pods --as jane', 'yes'],
    ['list pod --as jane', 'yes'],
    ['list po --as jane', 'yes'],
    ['get pods/anything --as jane', 'yes'],
    ['get pods --subresource=log --as jane', 'yes'],
    ['create pods --as jane', 'no'],
    ['get pods --subresource=exec --as jane', 'no'],
    ['get deployments.apps/web --as jane', 'yes'],
    ['get deployments.apps/other --as jane', 'no'],
    ['list deployments.apps --as jane', 'no'],
    ['patch deployments.apps/any --subresource=scale --as jane', 'yes'],
    ['list pods --as somebody --as-group readers', 'yes'],
    ['list pods --as somebody', 'no'],
    ['get /healthz --as jane', 'yes'],
    ['get /metrics --as jane', 'no'],
    ['list pods -A --as jane', 'no'],
    ['create selfsubjectaccessreviews.authorization.k8s.io --as jane', 'yes'],
  ])('%s: %s', async (question, answer) => {
    const { code, stdout } = await kubectl.run(['auth', 'can-i', ...question.split(' ')]);
    expect({ code, answer: lines(stdout).at(-1) }).toEqual({ code: answer === 'yes' ? 0 : 1, answer });
  });

  it('says what looks odd about a question', async () => {
    const { stderr } = await kubectl.run(['auth', 'can-i', 'fly', 'pods']);
    expect(stderr).toContain("Warning: verb 'fly' is not a known verb");
    const unknown = await kubectl.run(['auth', 'can-i', 'get', 'nonsense']);
    expect(unknown.stderr).toContain("Warning: the server doesn't have a resource type 'nonsense'");
    const wide = await kubectl.run(['auth', 'can-i', 'list', 'nodes']);
    expect(wide.stderr).toContain("Warning: resource 'nodes' is not namespace scoped");
  });

  it('can be quiet', async () => {
    const { code, stdout, stderr } = await kubectl.run(['auth', 'can-i', 'delete', 'pods', '--as', 'jane', '--quiet']);
    expect({ code, stdout, stderr }).toEqual({ code: 1, stdout: '', stderr: '' });
  });

  it('lists all that somebody may do', async () => {
    const rows = tableOf(await kubectl.ok('auth can-i --list --as jane'));
    const verbs = (resource: string): string | undefined =>
      rows.find((row) => row['Resources'] === resource)?.['Verbs'];
    expect(verbs('pods')).toBe('[get list watch]');
    expect(verbs('pods/log')).toBe('[get list watch]');
    expect(verbs('deployments.apps/scale')).toBe('[update patch]');
    expect(verbs('selfsubjectaccessreviews.authorization.k8s.io')).toBe('[create]');
    expect(rows).toContainEqual({
      Resources: 'deployments.apps',
      'Non-Resource URLs': '[]',
      'Resource Names': '[web]',
      Verbs: '[get]',
    });
    expect(rows).toContainEqual({
      Resources: '',
      'Non-Resource URLs': '[/healthz]',
      'Resource Names': '[]',
      Verbs: '[get]',
    });
    expect(verbs('secrets')).toBeUndefined();
    const admin = tableOf(await kubectl.ok('auth can-i --list'));
    expect(admin).toContainEqual({ Resources: '*.*', 'Non-Resource URLs': '[]', 'Resource Names': '[]', Verbs: '[*]' });
    expect(admin).toContainEqual({ Resources: '', 'Non-Resource URLs': '[*]', 'Resource Names': '[]', Verbs: '[*]' });
  });
});

describe('auth whoami', () => {
  it('shows who the server thinks is asking', async () => {
    if (!kubectlHas(28, 'auth whoami')) return;
    const rows = tableOf(await kubectl.ok('auth whoami'));
    expect(rows).toContainEqual({ ATTRIBUTE: 'Username', VALUE: 'kubernetes-admin' });
    expect(rows.find((row) => row['ATTRIBUTE'] === 'Groups')?.['VALUE']).toBe('[system:masters system:authenticated]');
    const review = await kubectl.json('auth whoami --as jane --as-group readers --as-uid 42');
    expect(review).toMatchObject({ apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' });
    expect(review.status.userInfo).toMatchObject({
      username: 'jane',
      uid: '42',
      groups: ['readers', 'system:authenticated'],
    });
  });
});

describe('what somebody may not do', () => {
  it.each([
    [
      'get secrets',
      'secrets is forbidden: User "jane" cannot list resource "secrets" in API group "" in the namespace "$NS"',
    ],
    [
      'get secret any',
      'secrets "any" is forbidden: User "jane" cannot get resource "secrets" in API group "" in the namespace "$NS"',
    ],
    ['get pods -A', 'pods is forbidden: User "jane" cannot list resource "pods" in API group "" at the cluster scope'],
    ['get nodes', 'nodes is forbidden: User "jane" cannot list resource "nodes" in API group "" at the cluster scope'],
    [
      'get node any',
      'nodes "any" is forbidden: User "jane" cannot get resource "nodes" in API group "" at the cluster scope',
    ],
    [
      'get deployments.apps',
      'deployments.apps is forbidden: User "jane" cannot list resource "deployments" in API group "apps" in the namespace "$NS"',
    ],
    [
      'get deployment other',
      'deployments.apps "other" is forbidden: User "jane" cannot get resource "deployments" in API group "apps" in the namespace "$NS"',
    ],
    [
      'delete pod any',
      'pods "any" is forbidden: User "jane" cannot delete resource "pods" in API group "" in the namespace "$NS"',
    ],
    [
      'get pod any --subresource=status',
      'pods "any" is forbidden: User "jane" cannot get resource "pods/status" in API group "" in the namespace "$NS"',
    ],
    [
      'get ns',
      'namespaces is forbidden: User "jane" cannot list resource "namespaces" in API group "" at the cluster scope',
    ],
    ['get --raw /metrics', 'forbidden: User "jane" cannot get path "/metrics"'],
  ])('%s', async (command, complaint) => {
    const { code, stderr } = await kubectl.run(['--as', 'jane', ...command.split(' ')]);
    expect(code).toBe(1);
    expect(stderr).toBe(`Error from server (Forbidden): ${complaint.replace('$NS', namespace)}\n`);
  });

  it('says it of writes too', async () => {
    expect(await kubectl.fails('create configmap mine --as jane')).toBe(
      `error: failed to create configmap: configmaps is forbidden: User "jane" cannot create resource "configmaps" in API group "" in the namespace "${namespace}"\n`,
    );
    expect(await kubectl.fails('label configmap settings a=b --as jane')).toBe(
      `Error from server (Forbidden): configmaps "settings" is forbidden: User "jane" cannot get resource "configmaps" in API group "" in the namespace "${namespace}"\n`,
    );
  });

  it('does not tell whether what is forbidden exists', async () => {
    const of = async (name: string): Promise<string> =>
      (await kubectl.fails(`get configmap ${name} --as jane`)).replace(name, 'X');
    expect(await of('settings')).toBe(await of('nonsense'));
  });

  it('still lets through what is allowed', async () => {
    expect(await kubectl.ok('get pods --as jane')).toBe('');
    expect(await kubectl.fails('get pod any --as jane')).toBe('Error from server (NotFound): pods "any" not found\n');
    expect(await kubectl.fails('get deployment web --as jane')).toBe(
      'Error from server (NotFound): deployments.apps "web" not found\n',
    );
  });
});

describe('escalation', () => {
  beforeAll(async () => {
    await kubectl.ok(
      'create clusterrole access-granter --verb=create,update,patch,get --resource=clusterrolebindings,clusterroles,rolebindings,roles',
    );
    await kubectl.ok('create clusterrolebinding access-granter --clusterrole=access-granter --user=bob');
  });
  const BOB = 'user "bob" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held';

  it('by binding a stronger role is refused', async () => {
    expect(await kubectl.fails('create clusterrolebinding evil --clusterrole=cluster-admin --user=bob --as bob')).toBe(
      `error: failed to create clusterrolebinding: clusterrolebindings.rbac.authorization.k8s.io "evil" is forbidden: ${BOB}:\n` +
        '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}\n{NonResourceURLs:["*"], Verbs:["*"]}\n',
    );
    expect(await kubectl.fails('create rolebinding evil --role=reader --user=bob --as bob')).toBe(
      `error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io "evil" is forbidden: ${BOB}:\n` +
        '{APIGroups:[""], Resources:["pods"], Verbs:["get" "list" "watch"]}\n' +
        '{APIGroups:[""], Resources:["pods/log"], Verbs:["get" "list" "watch"]}\n' +
        '{APIGroups:["apps"], Resources:["deployments"], ResourceNames:["web"], Verbs:["get"]}\n' +
        '{APIGroups:["apps"], Resources:["deployments/scale"], Verbs:["update" "patch"]}\n',
    );
  });

  it('by writing a stronger role is refused', async () => {
    expect(await kubectl.fails('create clusterrole evil --verb=get,list --resource=secrets,nodes --as bob')).toBe(
      `Error from server (Forbidden): clusterroles.rbac.authorization.k8s.io "evil" is forbidden: ${BOB}:\n` +
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}\n{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}\n',
    );
    const patch = '[{"op":"add","path":"/rules/-","value":{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]}}]';
    expect(
      await kubectl.fails(['patch', 'clusterrole', 'access-granter', '--type=json', '-p', patch, '--as', 'bob']),
    ).toBe(
      `Error from server (Forbidden): clusterroles.rbac.authorization.k8s.io "access-granter" is forbidden: ${BOB}:\n` +
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}\n',
    );
  });

  it('is no escalation when it is held, or allowed by name', async () => {
    await kubectl.ok('create role weaker --verb=get --resource=roles.rbac.authorization.k8s.io --as bob');
    await kubectl.ok(
      'create clusterrole access-binder --verb=bind --resource=clusterroles.rbac.authorization.k8s.io --resource-name=view',
    );
    await kubectl.ok('create clusterrolebinding access-binder --clusterrole=access-binder --user=bob');
    expect(await kubectl.ok('create rolebinding viewers --clusterrole=view --group=viewers --as bob')).toBe(
      'rolebinding.rbac.authorization.k8s.io/viewers created\n',
    );
    expect(await kubectl.fails('create rolebinding editors --clusterrole=edit --group=viewers --as bob')).toContain(
      BOB,
    );
  });

  it('needs the role to exist, lest it be filled later', async () => {
    expect(await kubectl.fails('create rolebinding early --clusterrole=not-yet --user=bob --as bob')).toContain(
      'error: failed to create rolebinding: rolebindings.rbac.authorization.k8s.io "not-yet" not found',
    );
    // Who may do everything may also do that.
    await kubectl.ok('create rolebinding early --clusterrole=not-yet --user=bob');
  });
});

describe('the default roles', () => {
  it.each([
    ['view', 'get pods', 'yes'],
    ['view', 'list deployments.apps', 'yes'],
    ['view', 'list jobs.batch', 'yes'],
    ['view', 'list ingresses.networking.k8s.io', 'yes'],
    ['view', 'get secrets', 'no'],
    ['view', 'create pods', 'no'],
    ['view', 'get roles.rbac.authorization.k8s.io', 'no'],
    ['edit', 'create pods', 'yes'],
    ['edit', 'get secrets', 'yes'],
    ['edit', 'create jobs.batch', 'yes'],
    ['edit', 'create serviceaccounts --subresource=token', 'yes'],
    ['edit', 'create rolebindings.rbac.authorization.k8s.io', 'no'],
    ['edit', 'create resourcequotas', 'no'],
    ['admin', 'create rolebindings.rbac.authorization.k8s.io', 'yes'],
    ['admin', 'delete namespaces', 'no'],
  ])('%s: %s: %s', async (role, question, answer) => {
    // Bound once per role; a second time it is there already.
    await kubectl.run(['create', 'rolebinding', `default-${role}`, `--clusterrole=${role}`, `--user=default-${role}`]);
    const { stdout } = await kubectl.run(['auth', 'can-i', ...question.split(' '), '--as', `default-${role}`]);
    expect(lines(stdout).at(-1)).toBe(answer);
  });
});

describe('nobody', () => {
  it('sees the health of the server and nothing else', async () => {
    const nobody = ['--as', 'system:anonymous'];
    expect(await kubectl.ok(['get', '--raw', '/healthz', ...nobody])).toBe('ok');
    expect(await kubectl.fails(['get', '--raw', '/apis', ...nobody])).toBe(
      'Error from server (Forbidden): forbidden: User "system:anonymous" cannot get path "/apis"\n',
    );
    expect(await kubectl.fails(['get', '--raw', `/api/v1/namespaces/${namespace}/pods`, ...nobody])).toBe(
      `Error from server (Forbidden): pods is forbidden: User "system:anonymous" cannot list resource "pods" in API group "" in the namespace "${namespace}"\n`,
    );
  });
});
