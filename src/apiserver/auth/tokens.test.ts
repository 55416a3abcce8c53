import { createPrivateKey, createPublicKey, generateKeyPairSync } from 'node:crypto';
import { CompactSign, createLocalJWKSet, jwtVerify, SignJWT, UnsecuredJWT } from 'jose';
import { beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { testEnv } from '../../env/test.ts';
import { generateKeyPem } from '../../machinery/x509/authority.ts';
import { TestRegistry } from '../registry/registry.fixture.ts';
import { ServiceAccountTokens, type TokenRequestClaims } from './tokens.ts';

const ISSUER = 'https://kubernetes.default.svc';
let keyPem: string;
beforeAll(async () => {
  keyPem = await generateKeyPem();
});

const object = (kind: string, namespace: string, name: string, uid: string): KubeObject => ({
  apiVersion: 'v1',
  kind,
  metadata: { ...(namespace === '' ? {} : { namespace }), name, uid },
});
const robot = object('ServiceAccount', 'ns', 'robot', 'sa-uid');
const claims: TokenRequestClaims = { namespace: 'ns', serviceAccount: { name: 'robot', uid: 'sa-uid' } };

async function setup(): Promise<{
  env: ReturnType<typeof testEnv>;
  registry: TestRegistry;
  tokens: ServiceAccountTokens;
}> {
  const env = testEnv();
  const registry = await TestRegistry.open(robot);
  const tokens = new ServiceAccountTokens({ env, registry, keyPem, issuer: ISSUER, audiences: [ISSUER, 'api'] });
  return { env, registry, tokens };
}

const payloadOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8')) as Record<string, unknown>;
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

describe('a service account token', () => {
  it('says what upstream’s say', async () => {
    const { env, tokens } = await setup();
    const pod = { name: 'p', uid: 'pod-uid' };
    const { token, expiresMs } = await tokens.sign({ ...claims, pod, node: { name: 'n', uid: '' } }, ['api'], 3600);
    const now = env.clock.now() / 1000;
    expect(expiresMs).toBe((now + 3600) * 1000);
    expect(payloadOf(token)).toEqual({
      iss: ISSUER,
      sub: 'system:serviceaccount:ns:robot',
      aud: ['api'],
      iat: now,
      nbf: now,
      exp: now + 3600,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/) as string,
      'kubernetes.io': {
        namespace: 'ns',
        serviceaccount: { name: 'robot', uid: 'sa-uid' },
        pod,
        node: { name: 'n', uid: '' },
      },
    });
  });

  it('is verified by anyone with the published keys', async () => {
    const { env, tokens } = await setup();
    const { token } = await tokens.sign(claims, ['other'], 3600);
    const keys = createLocalJWKSet((await tokens.keySet()) as Parameters<typeof createLocalJWKSet>[0]);
    const { payload } = await jwtVerify(token, keys, {
      issuer: ISSUER,
      audience: 'other',
      currentDate: new Date(env.clock.now()),
    });
    expect(payload.sub).toBe('system:serviceaccount:ns:robot');
    expect(JSON.stringify(await tokens.keySet())).not.toContain('"d"');
    expect(tokens.discoveryDocument('https://x/openid/v1/jwks')).toMatchObject({
      issuer: ISSUER,
      jwks_uri: 'https://x/openid/v1/jwks',
      id_token_signing_alg_values_supported: ['ES256'],
    });
  });

  it('tells who its holder is', async () => {
    const { registry, tokens } = await setup();
    await registry.put(object('Pod', 'ns', 'p', 'pod-uid'));
    const { token } = await tokens.sign(
      { ...claims, pod: { name: 'p', uid: 'pod-uid' }, node: { name: 'n', uid: 'node-uid' } },
      ['api', 'more'],
      600,
    );
    expect(await tokens.verify(token)).toEqual({
      valid: true,
      audiences: ['api'],
      user: {
        username: 'system:serviceaccount:ns:robot',
        uid: 'sa-uid',
        groups: ['system:serviceaccounts', 'system:serviceaccounts:ns', 'system:authenticated'],
        extra: {
          'authentication.kubernetes.io/credential-id': [`JTI=${String(payloadOf(token)['jti'])}`],
          'authentication.kubernetes.io/pod-name': ['p'],
          'authentication.kubernetes.io/pod-uid': ['pod-uid'],
          'authentication.kubernetes.io/node-name': ['n'],
          'authentication.kubernetes.io/node-uid': ['node-uid'],
        },
      },
    });
  });

  it('ends when it says, remembered or not', async () => {
    const { env, tokens } = await setup();
    const { token } = await tokens.sign(claims, ['api'], 600);
    env.clock.advance(599_000);
    expect(await tokens.verify(token)).toMatchObject({ valid: true });
    env.clock.advance(1_000);
    expect(await tokens.verify(token)).toEqual({ valid: false, error: 'service account token has expired' });
  });

  it('does not begin before its time', async () => {
    const { env, tokens } = await setup();
    env.clock.advance(3_600_000);
    const { token } = await tokens.sign(claims, ['api'], 7200);
    const earlier = new ServiceAccountTokens({
      env: testEnv(),
      registry: await TestRegistry.open(robot),
      keyPem,
      issuer: ISSUER,
      audiences: ['api'],
    });
    expect(await earlier.verify(token)).toEqual({ valid: false, error: 'service account token is not valid yet' });
  });

  it('is good for its audiences only', async () => {
    const { tokens } = await setup();
    const { token } = await tokens.sign(claims, ['vault'], 600);
    expect(await tokens.verify(token)).toEqual({
      valid: false,
      error: `token audiences ["vault"] is invalid for the target audiences ["${ISSUER}","api"]`,
    });
    expect(await tokens.verify(token, ['vault', 'x'])).toMatchObject({ valid: true, audiences: ['vault'] });
    expect((await tokens.verify((await tokens.sign(claims, [], 600)).token)).valid).toBe(false);
  });

  describe('dies with', () => {
    const bound: [kind: string, key: 'pod' | 'secret' | 'node', namespace: string][] = [
      ['Pod', 'pod', 'ns'],
      ['Secret', 'secret', 'ns'],
      ['Node', 'node', ''],
    ];
    it.each(bound)('its %s', async (kind, key, namespace) => {
      const { env, registry, tokens } = await setup();
      const target = await registry.put(object(kind, namespace, 'x', 'x-uid'));
      const { token } = await tokens.sign({ ...claims, [key]: { name: 'x', uid: 'x-uid' } }, ['api'], 7200);
      const dead = { valid: false, error: 'service account token has been invalidated' };
      expect(await tokens.verify(token)).toMatchObject({ valid: true });

      await registry.drop(target);
      expect(await tokens.verify(token)).toEqual(dead);
      await registry.put(object(kind, namespace, 'x', 'another-uid'));
      expect(await tokens.verify(token)).toEqual(dead);

      const going = object(kind, namespace, 'x', 'x-uid');
      going.metadata.deletionTimestamp = new Date(env.clock.now() + 30_000).toISOString();
      await registry.put(going);
      expect(await tokens.verify(token)).toMatchObject({ valid: true });
      env.clock.advance(91_000);
      expect(await tokens.verify(token)).toEqual(dead);
    });

    it('its service account, also one of the same name', async () => {
      const { registry, tokens } = await setup();
      const { token } = await tokens.sign(claims, ['api'], 600);
      expect(await tokens.verify(token)).toMatchObject({ valid: true });
      await registry.drop(robot);
      const dead = { valid: false, error: 'service account ns/robot has been deleted' };
      expect(await tokens.verify(token)).toEqual(dead);
      await registry.put(object('ServiceAccount', 'ns', 'robot', 'new-uid'));
      expect(await tokens.verify(token)).toEqual(dead);
      await registry.put(robot);
      expect(await tokens.verify(token)).toMatchObject({ valid: true });
    });

    it('not the node that its pod ran on', async () => {
      const { registry, tokens } = await setup();
      await registry.put(object('Pod', 'ns', 'p', 'pod-uid'));
      const { token } = await tokens.sign(
        { ...claims, pod: { name: 'p', uid: 'pod-uid' }, node: { name: 'gone', uid: 'u' } },
        ['api'],
        600,
      );
      expect(await tokens.verify(token)).toMatchObject({ valid: true });
    });
  });
});

describe('a forged token', () => {
  const forgeries: [
    name: string,
    forge: (payload: Record<string, unknown>, token: string) => string | Promise<string>,
  ][] = [
    ['nothing', () => ''],
    ['no token', () => 'abc'],
    ['three dots', () => '...'],
    ['a huge one', (_, token) => `${token}${'A'.repeat(20_000)}`],
    ['alg none', (payload) => new UnsecuredJWT(payload).encode()],
    ['alg none, spelled otherwise', (payload) => `${base64({ alg: 'nOnE' })}.${base64(payload)}.`],
    [
      'alg none, with the signature',
      (payload, token) => `${base64({ alg: 'none' })}.${base64(payload)}.${token.split('.')[2]}`,
    ],
    [
      'HS256 with the public key as the secret',
      (payload) =>
        new SignJWT(payload)
          .setProtectedHeader({ alg: 'HS256' })
          .sign(Buffer.from(createPublicKey(keyPem).export({ type: 'spki', format: 'pem' }))),
    ],
    [
      'another key of the same kind',
      (payload) =>
        new SignJWT(payload)
          .setProtectedHeader({ alg: 'ES256' })
          .sign(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey),
    ],
    [
      'its own key in the header',
      async (payload) => {
        const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
        return new SignJWT(payload)
          .setProtectedHeader({ alg: 'ES256', jwk: publicKey.export({ format: 'jwk' }) as never })
          .sign(privateKey);
      },
    ],
    ['no signature', (_, token) => `${token.slice(0, token.lastIndexOf('.'))}.`],
    [
      'changed claims',
      (payload, token) => {
        const [header, , signature] = token.split('.');
        return `${header}.${base64({ ...payload, sub: 'system:serviceaccount:kube-system:admin' })}.${signature}`;
      },
    ],
  ];
  it.each(forgeries)('%s', async (_name, forge) => {
    const { tokens } = await setup();
    const { token } = await tokens.sign(claims, ['api'], 600);
    const forged = await forge(payloadOf(token), token);
    expect(await tokens.verify(forged)).toEqual({ valid: false, error: 'invalid bearer token' });
    expect(await tokens.verify(token)).toMatchObject({ valid: true });
  });

  it.each([
    ['of another issuer', { iss: 'https://elsewhere' }],
    ['whose subject is not its service account', { sub: 'system:serviceaccount:ns:other' }],
    ['without an end', { exp: undefined }],
    ['without claims of ours', { 'kubernetes.io': undefined }],
    ['without a uid', { 'kubernetes.io': { namespace: 'ns', serviceaccount: { name: 'robot' } } }],
    ['with claims of the wrong shape', { 'kubernetes.io': ['ns'] }],
  ])('that our own key signed, %s', async (_name, change) => {
    const { tokens } = await setup();
    const payload = { ...payloadOf((await tokens.sign(claims, ['api'], 600)).token), ...change };
    const signed = await new CompactSign(Buffer.from(JSON.stringify(payload)))
      .setProtectedHeader({ alg: 'ES256' })
      .sign(createPrivateKey(keyPem));
    expect(await tokens.verify(signed)).toEqual({ valid: false, error: 'invalid bearer token' });
  });
});
