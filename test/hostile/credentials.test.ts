import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign as signBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthority, issueIdentity } from '../../src/machinery/x509/authority.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import type { Anything } from '../support/api.ts';
import { Fortress, MASTER, ROOT } from './fortress.ts';

/** Who gets in: nobody, certificates and tokens, good and bad. */

const HOUR_MS = 3_600_000;

let fortress: Fortress;
beforeAll(async () => {
  fortress = await Fortress.start();
});
afterAll(() => fortress.close());

describe('nobody', () => {
  it.each(['/healthz', '/livez', '/readyz'])('may ask %s', async (path) => {
    expect((await fortress.client().request('GET', path)).expect(200).text).toBe('ok');
  });

  it.each([
    ['GET', '/'],
    ['GET', '/api'],
    ['GET', '/apis'],
    ['GET', '/apis/apps/v1'],
    ['GET', '/openapi/v2'],
    ['GET', '/openapi/v3'],
    ['GET', '/metrics'],
    ['GET', '/openid/v1/jwks'],
    ['GET', '/debug/pprof'],
    ['GET', '/api/v1/namespaces'],
    ['GET', `${ROOT}/secrets`],
    ['GET', `${ROOT}/secrets/one`],
    ['GET', `${ROOT}/secrets?watch=1`],
    ['POST', `${ROOT}/configmaps`],
    ['DELETE', `${ROOT}/configmaps/one`],
    ['PATCH', `${ROOT}/configmaps/one`],
    ['POST', '/apis/authorization.k8s.io/v1/selfsubjectaccessreviews'],
    ['POST', '/livez'],
  ])('may not %s %s', async (method, path) => {
    const answer = await fortress.client().request(method, path, method === 'GET' ? {} : { body: {} });
    expect(answer.expect(403).json).toMatchObject({
      kind: 'Status',
      reason: 'Forbidden',
      message: expect.stringContaining('User "system:anonymous" cannot'),
    });
  });

  it('learns nothing of what exists', async () => {
    const [there, absent] = await Promise.all(
      ['one', 'nothing'].map((name) => fortress.client().request('GET', `${ROOT}/secrets/${name}`)),
    );
    expect(there?.expect(403).text.replaceAll('one', 'nothing')).toBe(absent?.expect(403).text);
    expect((await fortress.client().request('GET', '/apis/nobody.example.com/v1/things')).status).toBe(403);
  });
});

describe('certificates that do not hold', () => {
  it('of an authority of one of their own', async () => {
    const own = await createAuthority({ clock: realClock, random: realRandom }, 'godwit-cluster-ca');
    const answer = await fortress.withIdentity(await issueIdentity(own, MASTER)).request('GET', '/livez');
    expect(answer.expect(401).json).toMatchObject({ kind: 'Status', reason: 'Unauthorized' });
  });

  it('of the authority for front proxies, which vouches for nobody here', async () => {
    const identity = await issueIdentity(fortress.authority('front-proxy-authority.pem'), MASTER);
    (await fortress.withIdentity(identity).request('GET', '/api')).expect(401);
  });

  it('that have expired', async () => {
    const identity = await issueIdentity(fortress.authority('cluster-authority.pem', Date.now() - 2 * HOUR_MS), MASTER);
    (await fortress.withIdentity(identity).request('GET', '/api')).expect(401);
  });

  it('that are not valid yet', async () => {
    const identity = await issueIdentity(fortress.authority('cluster-authority.pem', Date.now() + 2 * HOUR_MS), MASTER);
    (await fortress.withIdentity(identity).request('GET', '/api')).expect(401);
  });

  it('that are for servers', async () => {
    const identity = await issueIdentity(fortress.authority('cluster-authority.pem'), {
      ...MASTER,
      usages: ['server'],
    });
    (await fortress.withIdentity(identity).request('GET', '/api')).expect(401);
  });

  it('while a good one of the same authority does', async () => {
    const identity = await issueIdentity(fortress.authority('cluster-authority.pem'), MASTER);
    (await fortress.withIdentity(identity).request('GET', '/api')).expect(200);
  });
});

describe('tokens that do not hold', () => {
  const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  let token: string;
  let claims: Anything;
  let header: Anything;
  let key: string;

  const signed = (payload: object, options: { header?: object; key?: string } = {}): string => {
    const text = `${encode(options.header ?? header)}.${encode(payload)}`;
    const signature = signBytes('sha256', Buffer.from(text), { key: options.key ?? key, dsaEncoding: 'ieee-p1363' });
    return `${text}.${signature.toString('base64url')}`;
  };
  const status = async (bearer: string): Promise<number> =>
    (await fortress.client({ token: bearer }).request('GET', '/api')).status;

  beforeAll(async () => {
    const answer = await fortress.cluster.create(`${ROOT}/serviceaccounts/robot/token`, {
      spec: { expirationSeconds: 3600 },
    });
    token = answer.status.token;
    [header, claims] = token
      .split('.')
      .slice(0, 2)
      .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString())) as [Anything, Anything];
    key = readFileSync(fortress.file('pki', 'service-account-key.pem'), 'utf8');
  });

  it('while a good one does, and so does one signed by hand with the stolen key', async () => {
    expect(await status(token)).toBe(200);
    expect(await status(signed(claims))).toBe(200);
  });

  it.each<[string, () => string]>([
    ['nonsense', () => 'nonsense'],
    ['three dots', () => '...'],
    ['without a signature', () => token.split('.').slice(0, 2).join('.')],
    ['with an empty signature', () => `${token.split('.').slice(0, 2).join('.')}.`],
    [
      'with another claim',
      () => token.replace(/\.[^.]*\./, `.${encode({ ...claims, sub: 'system:serviceaccount:kube-system:admin' })}.`),
    ],
    ['of the algorithm none', () => `${encode({ alg: 'none' })}.${encode(claims)}.`],
    ['of the algorithm None', () => `${encode({ alg: 'None', typ: 'JWT' })}.${encode(claims)}.`],
    [
      'signed by HMAC with the public key',
      () => {
        const text = `${encode({ alg: 'HS256', typ: 'JWT' })}.${encode(claims)}`;
        const publicPem = createPublicKey(createPrivateKey(key)).export({ type: 'spki', format: 'pem' });
        return `${text}.${createHmac('sha256', publicPem).update(text).digest('base64url')}`;
      },
    ],
    [
      'of another key',
      () =>
        signed(claims, {
          key: generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({
            type: 'pkcs8',
            format: 'pem',
          }) as string,
        }),
    ],
    [
      'that brings its own key along',
      () => {
        const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
        return signed(claims, {
          key: pair.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string,
          header: { alg: 'ES256', jwk: pair.publicKey.export({ format: 'jwk' }) },
        });
      },
    ],
    [
      'with a critical header that nobody knows',
      () => signed(claims, { header: { ...header, crit: ['exp2'], exp2: 1 } }),
    ],
    ['that has expired', () => signed({ ...claims, exp: Math.floor(Date.now() / 1000) - 1 })],
    ['that is not valid yet', () => signed({ ...claims, nbf: Math.floor(Date.now() / 1000) + 3600 })],
    ['that never expires', () => signed({ ...claims, exp: undefined })],
    ['of another issuer', () => signed({ ...claims, iss: 'https://evil.example.com' })],
    ['for another audience', () => signed({ ...claims, aud: ['https://vault.example.com'] })],
    [
      'of a service account that never was',
      () =>
        signed({
          ...claims,
          sub: 'system:serviceaccount:target:ghost',
          'kubernetes.io': { ...claims['kubernetes.io'], serviceaccount: { name: 'ghost', uid: 'x' } },
        }),
    ],
    [
      'that says one name and means another',
      () => signed({ ...claims, sub: 'system:serviceaccount:kube-system:admin' }),
    ],
    ['of 15 000 letters', () => 'x'.repeat(15_000)],
    ['with a payload of nonsense', () => `${encode(header)}.bm9uc2Vuc2U.${token.split('.')[2]}`],
  ])('%s', async (_name, make) => expect(await status(make())).toBe(401));

  it.each(['Basic YWRtaW46YWRtaW4=', 'Bearer', 'Bearer a b', 'Negotiate x', 'Token x'])(
    'the header %j',
    async (authorization) => {
      (await fortress.client().request('GET', '/livez', { headers: { authorization } })).expect(401);
    },
  );

  it('whose service account has been deleted, even if another has taken its name', async () => {
    await fortress.cluster.create(`${ROOT}/serviceaccounts`, { metadata: { name: 'brief' } });
    const { status: issued } = await fortress.cluster.create(`${ROOT}/serviceaccounts/brief/token`, { spec: {} });
    expect(await status(issued.token)).toBe(200);
    (await fortress.cluster.api.request('DELETE', `${ROOT}/serviceaccounts/brief`)).expect(200);
    expect(await status(issued.token)).toBe(401);
    await fortress.cluster.create(`${ROOT}/serviceaccounts`, { metadata: { name: 'brief' } });
    expect(await status(issued.token)).toBe(401);
  });

  it('bound to a pod that is gone', async () => {
    const { metadata } = await fortress.cluster.create(`${ROOT}/pods`, {
      metadata: { name: 'holder' },
      spec: { serviceAccountName: 'robot', containers: [{ name: 'a', image: 'b' }] },
    });
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'holder', uid: metadata.uid };
    const { status: issued } = await fortress.cluster.create(`${ROOT}/serviceaccounts/robot/token`, {
      spec: { boundObjectRef },
    });
    expect(await status(issued.token)).toBe(200);
    (await fortress.cluster.api.request('DELETE', `${ROOT}/pods/holder`, { body: { gracePeriodSeconds: 0 } })).expect(
      200,
    );
    expect(await status(issued.token)).toBe(401);
  });
});

describe('TLS', () => {
  it.each(['TLSv1', 'TLSv1.1'] as const)('%s is refused by the server', async (version) => {
    const { hostname, port } = new URL(fortress.cluster.godwit.access().url);
    const socket = connectTls({
      host: hostname,
      port: Number(port),
      rejectUnauthorized: false,
      minVersion: version,
      maxVersion: version,
      ciphers: 'ALL:@SECLEVEL=0',
    });
    const failure = await new Promise<NodeJS.ErrnoException>((resolve, reject) => {
      socket.on('error', resolve);
      socket.on('secureConnect', () => reject(new Error(`${version} was accepted`)));
    });
    // An alert is what the other side says; whatever this side refuses has another code.
    expect(failure.code).toBe('ERR_SSL_TLSV1_ALERT_PROTOCOL_VERSION');
  });
});
