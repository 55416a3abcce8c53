import { beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { testEnv } from '../../env/test.ts';
import { TestRegistry } from '../registry/registry.fixture.ts';
import { ServiceAccountTokens } from '../auth/tokens.ts';
import { generateKeyPem } from '../../machinery/x509/authority.ts';
import { requestToken } from './token-request.ts';

let keyPem: string;
beforeAll(async () => {
  keyPem = await generateKeyPem();
});

const core = async (
  kind: string,
  name: string,
  uid: string,
  rest: object = {},
): Promise<Promise<Promise<Promise<Promise<Promise<KubeObject>>>>>> => ({
  apiVersion: 'v1',
  kind,
  metadata: { ...(kind === 'Node' ? {} : { namespace: 'ns' }), name, uid },
  ...rest,
});

async function setup() {
  const env = testEnv();
  const registry = await TestRegistry.open();
  await registry.put(await core('ServiceAccount', 'robot', 'sa-uid'));
  await registry.put(await core('Pod', 'p', 'pod-uid', { spec: { serviceAccountName: 'robot', nodeName: 'n' } }));
  await registry.put(
    await core('Pod', 'lost', 'lost-uid', { spec: { serviceAccountName: 'robot', nodeName: 'gone' } }),
  );
  await registry.put(await core('Pod', 'other', 'other-uid', { spec: { serviceAccountName: 'default' } }));
  await registry.put(await core('Secret', 's', 'secret-uid'));
  await registry.put(await core('Node', 'n', 'node-uid'));
  const tokens = new ServiceAccountTokens({ env, registry, keyPem, issuer: 'https://i', audiences: ['api'] });
  const ask = (
    spec: object,
    options: { metadata?: KubeObject['metadata']; name?: string; dryRun?: boolean } = {},
  ): Promise<KubeObject> =>
    requestToken({
      registry,
      tokens,
      context: { dryRun: options.dryRun ?? false },
      namespace: 'ns',
      name: options.name ?? 'robot',
      request: {
        apiVersion: 'authentication.k8s.io/v1',
        kind: 'TokenRequest',
        metadata: options.metadata ?? {},
        spec,
      },
      nowMs: env.clock.now(),
    });
  const tokenOf = (answer: KubeObject): string => (answer['status'] as { token: string }).token;
  const claimsOf = (answer: KubeObject): Record<string, unknown> =>
    (
      JSON.parse(Buffer.from(tokenOf(answer).split('.')[1] ?? '', 'base64url').toString('utf8')) as {
        'kubernetes.io': Record<string, unknown>;
      }
    )['kubernetes.io'];
  return { registry, tokens, ask, tokenOf, claimsOf };
}

describe('a token request', () => {
  it('is answered with a token that the server accepts', async () => {
    const { tokens, ask, tokenOf } = await setup();
    const answer = await ask({ expirationSeconds: 600 });
    expect(answer).toMatchObject({
      kind: 'TokenRequest',
      metadata: { name: 'robot', namespace: 'ns', uid: 'sa-uid', creationTimestamp: '2026-01-01T00:00:00Z' },
      spec: { audiences: ['api'], expirationSeconds: 600 },
      status: { expirationTimestamp: '2026-01-01T00:10:00Z' },
    });
    expect(await tokens.verify(tokenOf(answer))).toMatchObject({
      valid: true,
      user: { username: 'system:serviceaccount:ns:robot' },
    });
  });

  it('gets an hour and the audiences it asks for', async () => {
    const { tokens, ask, tokenOf } = await setup();
    const answer = await ask({ audiences: ['vault', 'x'] });
    expect(answer['status']).toMatchObject({ expirationTimestamp: '2026-01-01T01:00:00Z' });
    expect(await tokens.verify(tokenOf(answer))).toMatchObject({ valid: false });
    expect(await tokens.verify(tokenOf(answer), ['vault'])).toMatchObject({ valid: true });
  });

  const bound: [reference: object, claims: object][] = [
    [
      { kind: 'Pod', apiVersion: 'v1', name: 'p' },
      { pod: { name: 'p', uid: 'pod-uid' }, node: { name: 'n', uid: 'node-uid' } },
    ],
    [
      { kind: 'Pod', apiVersion: 'v1', name: 'lost', uid: 'lost-uid' },
      { pod: { name: 'lost', uid: 'lost-uid' }, node: { name: 'gone', uid: '' } },
    ],
    [{ kind: 'Secret', apiVersion: 'v1', name: 's', uid: 'secret-uid' }, { secret: { name: 's', uid: 'secret-uid' } }],
    [{ kind: 'Node', apiVersion: 'v1', name: 'n' }, { node: { name: 'n', uid: 'node-uid' } }],
  ];
  it.each(bound)('binds to %j', async (boundObjectRef, claims) => {
    const { tokens, ask, tokenOf, claimsOf } = await setup();
    const answer = await ask({ boundObjectRef });
    expect(claimsOf(answer)).toEqual({
      namespace: 'ns',
      serviceaccount: { name: 'robot', uid: 'sa-uid' },
      ...claims,
    });
    expect(await tokens.verify(tokenOf(answer))).toMatchObject({ valid: true });
  });

  const refused: [
    name: string,
    spec: object,
    options: Parameters<Awaited<ReturnType<typeof setup>>['ask']>[1],
    error: object,
  ][] = [
    ['an unknown account', {}, { name: 'nobody' }, { code: 404, message: 'serviceaccounts "nobody" not found' }],
    ['an account of another uid', {}, { metadata: { uid: 'old' } }, { code: 409 }],
    ['another name in the body', {}, { metadata: { name: 'x' } }, { code: 422 }],
    ['another namespace in the body', {}, { metadata: { namespace: 'x' } }, { code: 422 }],
    [
      'too short a time',
      { expirationSeconds: 599 },
      {},
      {
        code: 422,
        message:
          'TokenRequest.authentication.k8s.io "" is invalid: spec.expirationSeconds: Invalid value: 599: may not specify a duration less than 10 minutes',
      },
    ],
    ['too long a time', { expirationSeconds: 2 ** 32 + 1 }, {}, { code: 422 }],
    ['a missing pod', { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'x' } }, {}, { code: 404 }],
    [
      'a pod of another account',
      { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'other' } },
      {},
      {
        code: 400,
        message: 'cannot bind token for serviceaccount "robot" to pod running with different serviceaccount name.',
      },
    ],
    [
      'an object of another uid',
      { boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 's', uid: 'old' } },
      {},
      { code: 409 },
    ],
    [
      'another kind of object',
      { boundObjectRef: { kind: 'ConfigMap', apiVersion: 'v1', name: 'c' } },
      {},
      { code: 400 },
    ],
    [
      'a pod of another group',
      { boundObjectRef: { kind: 'Pod', apiVersion: 'x.io/v1', name: 'p' } },
      {},
      { code: 400 },
    ],
  ];
  it.each(refused)('is refused for %s', async (_name, spec, options, error) => {
    await expect((await setup()).ask(spec, options)).rejects.toMatchObject(error);
  });

  it('makes no token in a dry run', async () => {
    const { ask, tokenOf } = await setup();
    expect(tokenOf(await ask({}, { dryRun: true }))).toBe('');
  });
});
