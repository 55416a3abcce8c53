import { beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { testEnv } from '../../env/test.ts';
import { BearerTokens } from '../auth/bearer-tokens.ts';
import { RbacAuthorizer } from '../auth/rbac.ts';
import { clusterBinding, clusterRole, roleBinding } from '../auth/roles.fixture.ts';
import { TestRegistry } from '../registry/registry.fixture.ts';
import { ServiceAccountTokens } from '../auth/tokens.ts';
import type { UserInfo } from '../http/message.ts';
import { generateKeyPem } from '../../machinery/x509/authority.ts';
import { reviews } from './reviews.ts';

let keyPem: string;
beforeAll(async () => {
  keyPem = await generateKeyPem();
});

const ann: UserInfo = { username: 'ann', groups: ['staff'], uid: 'u1', extra: { scopes: ['a'] } };
const pods = { verbs: ['get', 'list'], apiGroups: [''], resources: ['pods'] };
const health = { verbs: ['get'], nonResourceURLs: ['/healthz'] };

async function setup() {
  const env = testEnv();
  const registry = await TestRegistry.open();
  await registry.put({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { namespace: 'ns', name: 'robot', uid: 'u' },
  });
  await registry.put(clusterRole('pods', [pods]));
  await registry.put(clusterRole('health', [health]));
  await registry.put(roleBinding('ns', 'b', ['ClusterRole', 'pods'], 'User:ann'));
  await registry.put(clusterBinding('h', 'health', 'Group:staff'));
  const serviceAccounts = new ServiceAccountTokens({ env, registry, keyPem, issuer: 'https://i', audiences: ['api'] });
  const roles = new RbacAuthorizer(registry);
  const all = reviews({
    authorizer: roles,
    roles,
    tokens: new BearerTokens({ clock: env.clock, registry, serviceAccounts }),
    clock: env.clock,
  });
  const ask = async (plural: string, spec: object | undefined, metadata: KubeObject['metadata'] = {}) => {
    const group = plural === 'tokenreviews' || plural === 'selfsubjectreviews' ? 'authentication' : 'authorization';
    const review = all.get(`${plural}.${group}.k8s.io`);
    if (!review) throw new Error(`no review ${plural}`);
    const apiVersion = `${group}.k8s.io/v1`;
    const answer = await review(ann, { apiVersion, kind: 'Review', metadata, ...(spec ? { spec } : {}) });
    return answer['status'] as Record<string, unknown>;
  };
  return { env, registry, serviceAccounts, ask };
}

const resource = (verb: string, namespace: string, more: object = {}): object => ({
  resourceAttributes: { verb, group: '', resource: 'pods', namespace, ...more },
});

describe('SelfSubjectAccessReview', () => {
  it('tells what the asker may do', async () => {
    const { ask } = await setup();
    expect(await ask('selfsubjectaccessreviews', resource('list', 'ns'))).toEqual({
      allowed: true,
      reason: 'RBAC: allowed by RoleBinding "b/ns" of ClusterRole "pods" to User "ann"',
    });
    expect(await ask('selfsubjectaccessreviews', resource('list', 'other'))).toEqual({ allowed: false });
    expect(await ask('selfsubjectaccessreviews', resource('list', 'ns', { subresource: 'log' }))).toEqual({
      allowed: false,
    });
    const path = { nonResourceAttributes: { verb: 'get', path: '/healthz' } };
    expect(await ask('selfsubjectaccessreviews', path)).toMatchObject({ allowed: true });
  });

  it('takes metadata as kubectl sends it, and refuses any that says something', async () => {
    const { ask } = await setup();
    expect(await ask('selfsubjectaccessreviews', resource('list', 'ns'), { creationTimestamp: null })).toMatchObject({
      allowed: true,
    });
    await expect(ask('selfsubjectaccessreviews', resource('list', 'ns'), { name: 'x' })).rejects.toMatchObject({
      code: 422,
    });
  });

  it.each([
    ['nothing', {}],
    ['both', { ...resource('get', 'ns'), nonResourceAttributes: { verb: 'get', path: '/' } }],
  ])('refuses %s', async (_name, spec) => {
    await expect((await setup()).ask('selfsubjectaccessreviews', spec)).rejects.toMatchObject({ code: 422 });
  });
});

describe('SubjectAccessReview', () => {
  it('tells what somebody else may do', async () => {
    const { ask } = await setup();
    const about = (user: string, ...groups: string[]) => ({ user, groups, ...resource('get', 'ns') });
    expect(await ask('subjectaccessreviews', about('ann'))).toMatchObject({ allowed: true });
    expect(await ask('subjectaccessreviews', about('bob', 'staff'))).toEqual({ allowed: false });
    expect(await ask('subjectaccessreviews', about('', 'system:masters'))).toEqual({ allowed: true });
    await expect(ask('subjectaccessreviews', resource('get', 'ns'))).rejects.toMatchObject({ code: 422 });
  });

  it('stays in its namespace when it is local', async () => {
    const { ask } = await setup();
    const spec = { user: 'ann', ...resource('get', 'ns') };
    expect(await ask('localsubjectaccessreviews', spec, { namespace: 'ns' })).toMatchObject({ allowed: true });
    await expect(ask('localsubjectaccessreviews', spec, { namespace: 'other' })).rejects.toMatchObject({ code: 422 });
  });
});

describe('SelfSubjectRulesReview', () => {
  it('lists what the asker may do there', async () => {
    const { registry, ask } = await setup();
    expect(await ask('selfsubjectrulesreviews', { namespace: 'ns' })).toEqual({
      resourceRules: [pods],
      nonResourceRules: [health],
      incomplete: false,
    });
    await registry.put(clusterBinding('x', 'nope', 'User:ann'));
    expect(await ask('selfsubjectrulesreviews', { namespace: 'other' })).toEqual({
      resourceRules: [],
      nonResourceRules: [health],
      incomplete: true,
      evaluationError: 'clusterrole.rbac.authorization.k8s.io "nope" not found',
    });
    await expect(ask('selfsubjectrulesreviews', {})).rejects.toMatchObject({
      code: 400,
      message: 'no namespace on request',
    });
  });
});

describe('SelfSubjectReview', () => {
  it('tells the asker who they are', async () => {
    expect(await (await setup()).ask('selfsubjectreviews', undefined)).toEqual({ userInfo: ann });
  });
});

describe('TokenReview', () => {
  it('tells whose a token is', async () => {
    const { serviceAccounts, ask } = await setup();
    const claims = { namespace: 'ns', serviceAccount: { name: 'robot', uid: 'u' } };
    const { token } = await serviceAccounts.sign(claims, ['api', 'vault'], 600);
    expect(await ask('tokenreviews', { token })).toMatchObject({
      authenticated: true,
      audiences: ['api'],
      user: { username: 'system:serviceaccount:ns:robot', uid: 'u' },
    });
    expect(await ask('tokenreviews', { token, audiences: ['vault'] })).toMatchObject({ audiences: ['vault'] });
    expect(await ask('tokenreviews', { token, audiences: ['x'] })).toMatchObject({ authenticated: false, user: {} });
  });

  it('answers about a bad token too', async () => {
    const { ask } = await setup();
    expect(await ask('tokenreviews', { token: 'nonsense' })).toEqual({
      authenticated: false,
      user: {},
      error: 'invalid bearer token',
    });
    await expect(ask('tokenreviews', {})).rejects.toMatchObject({ code: 400 });
  });
});
