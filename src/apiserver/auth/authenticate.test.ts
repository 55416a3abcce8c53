import { beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import type { LogFields, Logger } from '../../env/ports.ts';
import { silentLogger, testEnv } from '../../env/test.ts';
import type { ApiRequest, UserInfo } from '../http/message.ts';
import { generateKeyPem } from '../../machinery/x509/authority.ts';
import { Authenticator } from './authenticate.ts';
import { BearerTokens } from './bearer-tokens.ts';
import { RbacAuthorizer } from './rbac.ts';
import { clusterBinding, clusterRole, roleBinding } from './roles.fixture.ts';
import { TestRegistry } from '../registry/registry.fixture.ts';
import { ServiceAccountTokens } from './tokens.ts';

let keyPem: string;
beforeAll(async () => {
  keyPem = await generateKeyPem();
});

async function setup(log: Logger = silentLogger) {
  const env = testEnv();
  const registry = await TestRegistry.open();
  await registry.put({
    apiVersion: 'v1',
    kind: 'ServiceAccount',
    metadata: { namespace: 'ns', name: 'robot', uid: 'u' },
  });
  const serviceAccounts = new ServiceAccountTokens({ env, registry, keyPem, issuer: 'https://i', audiences: ['api'] });
  const tokens = new BearerTokens({ clock: env.clock, registry, serviceAccounts });
  const authenticator = new Authenticator({ log, tokens, authorizer: new RbacAuthorizer(registry) });
  const authenticate = (headers: ApiRequest['headers'], certificate?: ApiRequest['certificate']): Promise<UserInfo> =>
    authenticator.authenticate({ headers, certificate, remoteAddress: '192.0.2.1' });
  return { env, registry, serviceAccounts, tokens, authenticator, authenticate };
}

const certificate = (commonName: string, ...organizations: string[]): ApiRequest['certificate'] => ({
  commonName,
  organizations,
  fingerprint: 'AB:01:FF',
});

describe('identity', () => {
  it('is nobody without credentials', async () => {
    expect(await (await setup()).authenticate({})).toEqual({
      username: 'system:anonymous',
      groups: ['system:unauthenticated'],
    });
  });

  it('is an error with a certificate that does not hold, unless a token does', async () => {
    const { serviceAccounts, authenticator } = await setup();
    const request = { headers: {}, isCertificateRefused: true, remoteAddress: '192.0.2.1' };
    await expect(authenticator.authenticate(request)).rejects.toThrow('Unauthorized');
    const claims = { namespace: 'ns', serviceAccount: { name: 'robot', uid: 'u' } };
    const { token } = await serviceAccounts.sign(claims, ['api'], 600);
    const headers = { authorization: `Bearer ${token}` };
    expect((await authenticator.authenticate({ ...request, headers })).username).toBe('system:serviceaccount:ns:robot');
  });

  it('comes from a client certificate', async () => {
    expect(await (await setup()).authenticate({}, certificate('ann', 'staff', 'ops'))).toEqual({
      username: 'ann',
      groups: ['staff', 'ops', 'system:authenticated'],
      extra: { 'authentication.kubernetes.io/credential-id': ['X509SHA256=ab01ff'] },
    });
  });

  it('comes from the certificate rather than from a token, even a bad one', async () => {
    const { authenticate } = await setup();
    const user = await authenticate({ authorization: 'Bearer nonsense' }, certificate('ann'));
    expect(user.username).toBe('ann');
  });

  it('comes from a service account token', async () => {
    const { serviceAccounts, authenticate } = await setup();
    const claims = { namespace: 'ns', serviceAccount: { name: 'robot', uid: 'u' } };
    const { token } = await serviceAccounts.sign(claims, ['api'], 600);
    for (const scheme of ['Bearer', 'bearer', 'BEARER ']) {
      expect((await authenticate({ authorization: `${scheme} ${token}` })).username).toBe(
        'system:serviceaccount:ns:robot',
      );
    }
  });

  it.each([
    'Bearer',
    'Bearer ',
    'Bearer a b',
    'Bearer abc',
    'Basic dTpw',
    'nonsense',
    'Bearer abcdef.0123456789abcdef',
  ])('is refused, not nobody’s, with the credentials %j', async (authorization) => {
    const { authenticate } = await setup();
    await expect(authenticate({ authorization })).rejects.toMatchObject({
      code: 401,
      reason: 'Unauthorized',
      message: 'Unauthorized',
    });
  });

  it('is refused for a certificate without a name', async () => {
    const { authenticate } = await setup();
    await expect(authenticate({}, certificate('', 'system:masters'))).rejects.toMatchObject({
      code: 401,
    });
  });

  it('never shows a token in logs', async () => {
    const lines: string[] = [];
    const write = (message: string, fields?: LogFields): void => void lines.push(message + JSON.stringify(fields));
    const log: Logger = { debug: write, info: write, warn: write, error: write, child: () => log };
    const { serviceAccounts, authenticate, env } = await setup(log);
    const claims = { namespace: 'ns', serviceAccount: { name: 'robot', uid: 'u' } };
    const { token } = await serviceAccounts.sign(claims, ['api'], 600);
    env.clock.advance(3_600_000);
    await expect(authenticate({ authorization: `Bearer ${token}` })).rejects.toMatchObject({ code: 401 });
    await expect(authenticate({ authorization: 'Bearer abcdef.0123456789abcdef' })).rejects.toThrow('Unauthorized');
    expect(lines).toHaveLength(2);
    for (const part of [...token.split('.'), '0123456789abcdef']) expect(lines.join()).not.toContain(part);
  });
});

describe('a bootstrap token', () => {
  const text = 'abcdef.0123456789abcdef';
  const encode = (data: Record<string, string>): Record<string, string> =>
    Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString('base64')]));
  const secret = (
    changes: Partial<Record<string, string | undefined>> = {},
    type = 'bootstrap.kubernetes.io/token',
  ) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'kube-system', name: 'bootstrap-token-abcdef' } as KubeObject['metadata'],
    type,
    data: encode(
      JSON.parse(
        JSON.stringify({
          'token-id': 'abcdef',
          'token-secret': '0123456789abcdef',
          'usage-bootstrap-authentication': 'true',
          ...changes,
        }),
      ) as Record<string, string>,
    ),
  });
  const login = async (object: KubeObject, token = text): Promise<UserInfo> => {
    const { registry, authenticate } = await setup();
    await registry.put(object);
    return authenticate({ authorization: `Bearer ${token}` });
  };

  it('names its holder by its id', async () => {
    expect(await login(secret())).toEqual({
      username: 'system:bootstrap:abcdef',
      groups: ['system:bootstrappers', 'system:authenticated'],
    });
    const groups = { 'auth-extra-groups': 'system:bootstrappers:workers,system:bootstrappers:a' };
    expect((await login(secret(groups))).groups).toEqual([
      'system:bootstrappers',
      'system:bootstrappers:a',
      'system:bootstrappers:workers',
      'system:authenticated',
    ]);
    expect((await login(secret({ expiration: '2026-01-01T00:00:01Z' }))).username).toBe('system:bootstrap:abcdef');
  });

  const deleted = secret();
  deleted.metadata.deletionTimestamp = '2026-01-01T00:00:00Z';
  const elsewhere = secret();
  elsewhere.metadata.namespace = 'default';
  const refused: [name: string, object: KubeObject, token?: string][] = [
    ['a wrong secret', secret(), 'abcdef.0123456789abcdee'],
    ['an empty secret', secret({ 'token-secret': '' })],
    ['another id inside', secret({ 'token-id': 'abcdeg' })],
    ['no leave to authenticate', secret({ 'usage-bootstrap-authentication': undefined })],
    ['an end in the past', secret({ expiration: '2025-12-31T23:59:59Z' })],
    ['an end that is now', secret({ expiration: '2026-01-01T00:00:00Z' })],
    ['an end that is none', secret({ expiration: 'soon' })],
    ['a group that is not for it to give', secret({ 'auth-extra-groups': 'system:masters' })],
    ['a group list with a hole', secret({ 'auth-extra-groups': 'system:bootstrappers:a,' })],
    ['another type of secret', secret({}, 'Opaque')],
    ['a deleted secret', deleted],
    ['a secret of another namespace', elsewhere],
  ];
  it.each(refused)('is refused for %s', async (_name, object, token) => {
    await expect(login(object, token)).rejects.toMatchObject({ code: 401 });
  });

  it('is meant for this server', async () => {
    const { registry, tokens } = await setup();
    await registry.put(secret());
    expect(await tokens.verify(text, ['api', 'x'])).toMatchObject({ valid: true, audiences: ['api'] });
    expect(await tokens.verify(text, ['vault'])).toMatchObject({ valid: false });
  });
});

describe('impersonation', () => {
  const rules = [
    { verbs: ['impersonate'], apiGroups: [''], resources: ['users'], resourceNames: ['bob', 'system:anonymous'] },
    {
      verbs: ['impersonate'],
      apiGroups: [''],
      resources: ['groups'],
      resourceNames: ['g1', 'g2', 'system:unauthenticated'],
    },
    { verbs: ['impersonate'], apiGroups: ['authentication.k8s.io'], resources: ['uids'], resourceNames: ['id'] },
    {
      verbs: ['impersonate'],
      apiGroups: ['authentication.k8s.io'],
      resources: ['userextras/scopes', 'userextras/acme.com/x'],
    },
  ];
  const act = async (headers: ApiRequest['headers'], who = 'ann', ...groups: string[]): Promise<UserInfo> => {
    const { registry, authenticate } = await setup();
    await registry.put(clusterRole('as', rules));
    await registry.put(
      clusterRole('as-sa', [{ verbs: ['impersonate'], apiGroups: [''], resources: ['serviceaccounts'] }]),
    );
    await registry.put(clusterBinding('b', 'as', 'User:ann'));
    await registry.put(roleBinding('ns', 'b', ['ClusterRole', 'as-sa'], 'User:ann'));
    return authenticate(headers, certificate(who, ...groups));
  };

  const allowed: [headers: ApiRequest['headers'], user: UserInfo][] = [
    [{ 'impersonate-user': 'bob' }, { username: 'bob', groups: ['system:authenticated'] }],
    [
      { 'impersonate-user': 'bob', 'impersonate-group': 'g1, g2', 'impersonate-uid': 'id' },
      { username: 'bob', uid: 'id', groups: ['g1', 'g2', 'system:authenticated'] },
    ],
    [
      { 'impersonate-user': 'bob', 'impersonate-group': 'system:unauthenticated' },
      { username: 'bob', groups: ['system:unauthenticated'] },
    ],
    [
      { 'impersonate-user': 'bob', 'impersonate-extra-scopes': 'a, b', 'impersonate-extra-acme.com%2fx': 'c' },
      { username: 'bob', groups: ['system:authenticated'], extra: { scopes: ['a', 'b'], 'acme.com/x': ['c'] } },
    ],
    [{ 'impersonate-user': 'system:anonymous' }, { username: 'system:anonymous', groups: ['system:unauthenticated'] }],
    [
      { 'impersonate-user': 'system:serviceaccount:ns:robot' },
      {
        username: 'system:serviceaccount:ns:robot',
        groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:authenticated'],
      },
    ],
    [
      { 'impersonate-user': 'system:serviceaccount:ns:robot', 'impersonate-group': 'g1' },
      { username: 'system:serviceaccount:ns:robot', groups: ['g1', 'system:authenticated'] },
    ],
  ];
  it.each(allowed)('%j', async (headers, user) => {
    expect(await act(headers)).toEqual(user);
  });

  it('of nobody is none', async () => {
    const headers = { 'impersonate-user': '', 'impersonate-group': '', 'impersonate-uid': '' };
    expect((await act(headers)).username).toBe('ann');
  });

  const refused: [headers: ApiRequest['headers'], message: string][] = [
    [
      { 'impersonate-user': 'carl' },
      'users "carl" is forbidden: User "ann" cannot impersonate resource "users" in API group "" at the cluster scope',
    ],
    [
      { 'impersonate-user': 'bob', 'impersonate-group': 'g1,system:masters' },
      'groups "system:masters" is forbidden: User "ann" cannot impersonate resource "groups" in API group "" at the cluster scope',
    ],
    [
      { 'impersonate-user': 'system:serviceaccount:other:robot' },
      'serviceaccounts "robot" is forbidden: User "ann" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "other"',
    ],
    [
      { 'impersonate-user': 'bob', 'impersonate-uid': 'other' },
      'uids.authentication.k8s.io "other" is forbidden: User "ann" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope',
    ],
    [
      { 'impersonate-user': 'bob', 'impersonate-extra-other': 'x' },
      'userextras.authentication.k8s.io "x" is forbidden: User "ann" cannot impersonate resource "userextras/other" in API group "authentication.k8s.io" at the cluster scope',
    ],
    // Not the form of a service account's name, so a user's, which ann may not be.
    [
      { 'impersonate-user': 'system:serviceaccount:ns:robot:x' },
      'users "system:serviceaccount:ns:robot:x" is forbidden: User "ann" cannot impersonate resource "users" in API group "" at the cluster scope',
    ],
  ];
  it.each(refused)('is refused: %j', async (headers, message) => {
    await expect(act(headers)).rejects.toMatchObject({ code: 403, message });
  });

  it('is refused to those without leave, and free to system:masters', async () => {
    await expect(act({ 'impersonate-user': 'bob' }, 'dan')).rejects.toMatchObject({ code: 403 });
    expect(
      await act({ 'impersonate-user': 'x', 'impersonate-group': 'system:masters' }, 'root', 'system:masters'),
    ).toEqual({
      username: 'x',
      groups: ['system:masters', 'system:authenticated'],
    });
  });

  it.each(['impersonate-group', 'impersonate-uid', 'impersonate-extra-a'])('needs a user with %s', async (header) => {
    await expect(act({ [header]: 'x' })).rejects.toMatchObject({ code: 400 });
  });

  it('keeps hostile keys as data', async () => {
    const user = await act({ 'impersonate-user': 'x', 'impersonate-extra-__proto__': 'p' }, 'root', 'system:masters');
    expect(Object.entries(user.extra ?? {})).toEqual([['__proto__', ['p']]]);
    expect(Object.getPrototypeOf(user.extra)).toBe(Object.prototype);
  });
});
