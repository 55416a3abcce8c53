import { createHmac, createPrivateKey, createPublicKey, generateKeyPairSync, sign as signBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Authority, createAuthority, type Identity, issueIdentity } from '../../src/apiserver/pki/authority.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import type { Answer, Anything } from '../support/api.ts';
import { Cluster } from '../support/cluster.ts';
import { HttpClient } from '../support/http-client.ts';

/** Who gets in, what they may do, and what never gets out. */

const HOUR_MS = 3_600_000;
const ROOT = '/api/v1/namespaces/target';

let cluster: Cluster;
const clients: HttpClient[] = [];

beforeAll(async () => {
  // What is made while nobody watches must be private all the same.
  const umask = process.umask(0);
  cluster = await Cluster.start('--log-level', 'debug', '--audit-log', AUDIT_LOG);
  process.umask(umask);
  await cluster.create('/api/v1/namespaces', { metadata: { name: 'target' } });
  for (const name of ['one', 'two'])
    await cluster.create(`${ROOT}/secrets`, { metadata: { name }, stringData: { password: `${SECRET}-${name}` } });
  await cluster.create(`${ROOT}/configmaps`, { metadata: { name: 'one' }, data: {} });
  await cluster.create(`${ROOT}/serviceaccounts`, { metadata: { name: 'robot' } });
});
afterAll(async () => {
  for (const client of clients) client.close();
  await cluster.close();
  rmSync(AUDIT_DIRECTORY, { recursive: true });
});

const SECRET = 'hunter2hunter2hunter2';
const AUDIT_DIRECTORY = mkdtempSync(join(tmpdir(), 'godwit-audit-'));
const AUDIT_LOG = join(AUDIT_DIRECTORY, 'audit.log');

function client(credentials: { certificate?: string; key?: string; token?: string } = {}): HttpClient {
  const { url, ca } = cluster.godwit.access();
  const made = new HttpClient({ url, ca, ...credentials });
  clients.push(made);
  return made;
}

const withIdentity = ({ certificatePem, keyPem }: Identity): HttpClient =>
  client({ certificate: certificatePem, key: keyPem });

/** Somebody whom the admin's certificate vouches for. */
async function as(
  user: string,
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Answer> {
  return cluster.api.request(method, path, {
    ...(body === undefined ? {} : { body }),
    headers: { 'impersonate-user': user, ...headers },
  });
}

function fileOf(...path: string[]): string {
  return join(cluster.godwit.directory, ...path);
}

/** The cluster's own authority, as whoever has stolen its key would have it. */
function authority(file: string, nowMs = Date.now()): Authority {
  const text = readFileSync(fileOf('pki', file), 'utf8');
  const blocks = text.match(/-----BEGIN [^]*?-----END [^-]*-----\n?/g) ?? [];
  const find = (what: string): string => blocks.find((block) => block.includes(what)) ?? '';
  return {
    certificatePem: find('BEGIN CERTIFICATE'),
    keyPem: find('PRIVATE KEY'),
    env: { clock: { ...realClock, now: () => nowMs }, random: realRandom },
  };
}

const MASTER = {
  commonName: 'mallory',
  organizations: ['system:masters'],
  usages: ['client'] as const,
  validityMs: HOUR_MS,
};

describe('nobody', () => {
  it.each(['/healthz', '/livez', '/readyz'])('may ask %s', async (path) => {
    expect((await client().request('GET', path)).expect(200).text).toBe('ok');
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
    const answer = await client().request(method, path, method === 'GET' ? {} : { body: {} });
    expect(answer.expect(403).json).toMatchObject({
      kind: 'Status',
      reason: 'Forbidden',
      message: expect.stringContaining('User "system:anonymous" cannot'),
    });
  });

  it('learns nothing of what exists', async () => {
    const [there, absent] = await Promise.all(
      ['one', 'nothing'].map((name) => client().request('GET', `${ROOT}/secrets/${name}`)),
    );
    expect(there?.expect(403).text.replaceAll('one', 'nothing')).toBe(absent?.expect(403).text);
    expect((await client().request('GET', '/apis/nobody.example.com/v1/things')).status).toBe(403);
  });
});

describe('certificates that do not hold', () => {
  it('of an authority of one of their own', async () => {
    const own = await createAuthority({ clock: realClock, random: realRandom }, 'godwit-cluster-ca');
    const answer = await withIdentity(await issueIdentity(own, MASTER)).request('GET', '/livez');
    expect(answer.expect(401).json).toMatchObject({ kind: 'Status', reason: 'Unauthorized' });
  });

  it('of the authority for front proxies, which vouches for nobody here', async () => {
    const identity = await issueIdentity(authority('front-proxy-authority.pem'), MASTER);
    (await withIdentity(identity).request('GET', '/api')).expect(401);
  });

  it('that have expired', async () => {
    const identity = await issueIdentity(authority('cluster-authority.pem', Date.now() - 2 * HOUR_MS), MASTER);
    (await withIdentity(identity).request('GET', '/api')).expect(401);
  });

  it('that are not valid yet', async () => {
    const identity = await issueIdentity(authority('cluster-authority.pem', Date.now() + 2 * HOUR_MS), MASTER);
    (await withIdentity(identity).request('GET', '/api')).expect(401);
  });

  it('that are for servers', async () => {
    const identity = await issueIdentity(authority('cluster-authority.pem'), { ...MASTER, usages: ['server'] });
    (await withIdentity(identity).request('GET', '/api')).expect(401);
  });

  it('while a good one of the same authority does', async () => {
    const identity = await issueIdentity(authority('cluster-authority.pem'), MASTER);
    (await withIdentity(identity).request('GET', '/api')).expect(200);
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
    (await client({ token: bearer }).request('GET', '/api')).status;

  beforeAll(async () => {
    const answer = await cluster.create(`${ROOT}/serviceaccounts/robot/token`, { spec: { expirationSeconds: 3600 } });
    token = answer.status.token;
    [header, claims] = token
      .split('.')
      .slice(0, 2)
      .map((part) => JSON.parse(Buffer.from(part, 'base64url').toString())) as [Anything, Anything];
    key = readFileSync(fileOf('pki', 'service-account-key.pem'), 'utf8');
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
      (await client().request('GET', '/livez', { headers: { authorization } })).expect(401);
    },
  );

  it('whose service account has been deleted, even if another has taken its name', async () => {
    await cluster.create(`${ROOT}/serviceaccounts`, { metadata: { name: 'brief' } });
    const { status: issued } = await cluster.create(`${ROOT}/serviceaccounts/brief/token`, { spec: {} });
    expect(await status(issued.token)).toBe(200);
    (await cluster.api.request('DELETE', `${ROOT}/serviceaccounts/brief`)).expect(200);
    expect(await status(issued.token)).toBe(401);
    await cluster.create(`${ROOT}/serviceaccounts`, { metadata: { name: 'brief' } });
    expect(await status(issued.token)).toBe(401);
  });

  it('bound to a pod that is gone', async () => {
    const { metadata } = await cluster.create(`${ROOT}/pods`, {
      metadata: { name: 'holder' },
      spec: { serviceAccountName: 'robot', containers: [{ name: 'a', image: 'b' }] },
    });
    const boundObjectRef = { kind: 'Pod', apiVersion: 'v1', name: 'holder', uid: metadata.uid };
    const { status: issued } = await cluster.create(`${ROOT}/serviceaccounts/robot/token`, {
      spec: { boundObjectRef },
    });
    expect(await status(issued.token)).toBe(200);
    (await cluster.api.request('DELETE', `${ROOT}/pods/holder`, { body: { gracePeriodSeconds: 0 } })).expect(200);
    expect(await status(issued.token)).toBe(401);
  });
});

describe('rights, spelled whole', () => {
  let sequence = 0;

  /** A user with exactly these rights in the namespace. */
  async function userWith(...rules: object[]): Promise<string> {
    const name = `user-${sequence++}`;
    const rbac = `/apis/rbac.authorization.k8s.io/v1/namespaces/target`;
    await cluster.create(`${rbac}/roles`, { metadata: { name }, rules });
    await cluster.create(`${rbac}/rolebindings`, {
      metadata: { name },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name },
      subjects: [{ kind: 'User', apiGroup: 'rbac.authorization.k8s.io', name }],
    });
    return name;
  }

  const pod = { metadata: { name: 'p', namespace: 'target' }, spec: { containers: [{ name: 'a', image: 'b' }] } };
  const patch = { 'content-type': 'application/merge-patch+json' };
  const verbs: [string, (user: string) => Promise<Answer>][] = [
    ['get', (user) => as(user, 'GET', `${ROOT}/pods/p`)],
    ['list', (user) => as(user, 'GET', `${ROOT}/pods`)],
    ['watch', (user) => as(user, 'GET', `${ROOT}/pods?watch=1&timeoutSeconds=1`)],
    ['create', (user) => as(user, 'POST', `${ROOT}/pods?dryRun=All`, pod)],
    ['update', (user) => as(user, 'PUT', `${ROOT}/pods/p?dryRun=All`, pod)],
    ['patch', (user) => as(user, 'PATCH', `${ROOT}/pods/p?dryRun=All`, {}, patch)],
    ['delete', (user) => as(user, 'DELETE', `${ROOT}/pods/p?dryRun=All`)],
    ['deletecollection', (user) => as(user, 'DELETE', `${ROOT}/pods?dryRun=All`)],
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
      as(user, method, `${ROOT}/${path}`, method === 'GET' ? undefined : body, headers);
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
    (await as(user, 'GET', `${ROOT}/secrets/one`)).expect(200);
    expect((await as(user, 'GET', selected('metadata.name=one'))).expect(200).json.items).toHaveLength(1);
    for (const path of [
      `${ROOT}/secrets/two`,
      `${ROOT}/secrets`,
      `${ROOT}/secrets?watch=1`,
      selected('metadata.name=two'),
      selected('metadata.name!=one'),
      selected('type=Opaque'),
      `${selected('metadata.name=two')}&fieldSelector=metadata.name%3Done`,
    ])
      (await as(user, 'GET', path)).expect(403);
    // What is asked for by two names is nothing, whichever of them was authorized.
    const both = await as(user, 'GET', selected('metadata.name=one,metadata.name=two'));
    expect(both.status === 403 ? [] : both.json.items).toEqual([]);
    (await as(user, 'DELETE', `${ROOT}/secrets?dryRun=All`)).expect(403);
    (await as(user, 'POST', `${ROOT}/secrets?dryRun=All`, { metadata: { name: 'one' } })).expect(403);
  });

  it('in one namespace are not those in all', async () => {
    const user = await userWith({ apiGroups: [''], resources: ['secrets'], verbs: ['*'] });
    (await as(user, 'GET', `${ROOT}/secrets`)).expect(200);
    for (const path of [
      '/api/v1/secrets',
      '/api/v1/namespaces/default/secrets',
      '/api/v1/secrets?fieldSelector=metadata.namespace%3Dtarget',
    ])
      (await as(user, 'GET', path)).expect(403);
    const elsewhere = { metadata: { name: 'x', namespace: 'kube-system' } };
    (await as(user, 'POST', `${ROOT}/secrets`, elsewhere)).expect(400);
  });

  it('on config maps are none on secrets, whichever way the path is written', async () => {
    const user = await userWith({ apiGroups: [''], resources: ['configmaps'], verbs: ['*'] });
    (await as(user, 'GET', `${ROOT}/configmaps`)).expect(200);
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
      const { status, text } = await as(user, 'GET', path);
      expect(`${path} ${status}`).toMatch(/ (?:400|403|404)$/);
      expect(text).not.toContain(Buffer.from(SECRET).toString('base64').slice(0, 16));
    }
    for (const header of ['x-http-method-override', 'x-original-url', 'x-rewrite-url', 'x-forwarded-uri'])
      expect(
        (await as(user, 'GET', `${ROOT}/configmaps`, undefined, { [header]: `${ROOT}/secrets` })).expect(200).json.kind,
      ).toBe('ConfigMapList');
    (await as(user, 'GET', `${ROOT}/configmaps/one`, undefined, { 'x-http-method-override': 'DELETE' })).expect(200);
    (await as(user, 'GET', `${ROOT}/configmaps/one`)).expect(200);
  });

  it('cannot be given by those who do not have them', async () => {
    const user = await userWith({
      apiGroups: ['rbac.authorization.k8s.io'],
      resources: ['roles', 'rolebindings'],
      verbs: ['create'],
    });
    const rbac = '/apis/rbac.authorization.k8s.io/v1/namespaces/target';
    const rules = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }];
    (await as(user, 'POST', `${rbac}/roles`, { metadata: { name: 'more' }, rules })).expect(403);
    const binding = {
      metadata: { name: 'more' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
      subjects: [{ kind: 'User', name: user, apiGroup: 'rbac.authorization.k8s.io' }],
    };
    (await as(user, 'POST', `${rbac}/rolebindings`, binding)).expect(403);
  });
});

describe('acting as somebody else', () => {
  const review = '/apis/authentication.k8s.io/v1/selfsubjectreviews';
  let token: string;
  beforeAll(async () => {
    token = (await cluster.create(`${ROOT}/serviceaccounts/robot/token`, { spec: {} })).status.token;
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
    (await client({ token }).request('GET', '/api', { headers })).expect(403);
    (await client().request('GET', '/livez', { headers })).expect(403);
  });

  it.each([
    { 'impersonate-group': 'system:masters' },
    { 'impersonate-uid': 'x' },
    { 'impersonate-extra-scopes': 'all' },
  ])('%j alone is no request', async (headers) => {
    (await client({ token }).request('GET', '/api', { headers: headers as unknown as Record<string, string> })).expect(
      400,
    );
  });

  it("the headers by which front proxies name users are nobody else's to send", async () => {
    const headers = {
      'x-remote-user': 'kubernetes-admin',
      'x-remote-group': 'system:masters',
      'x-remote-extra-scopes': 'all',
      'x-forwarded-user': 'kubernetes-admin',
      'x-ssl-client-cn': 'kubernetes-admin',
    };
    (await client().request('GET', '/api', { headers })).expect(403);
    const { status } = (await client({ token }).request('POST', review, { body: {}, headers })).expect(201).json;
    expect(status.userInfo.username).toBe('system:serviceaccount:target:robot');
    expect(status.userInfo.groups).not.toContain('system:masters');
  });
});

describe('nodes', () => {
  it('cannot read secrets, nor change what is not theirs to change', async () => {
    const identity = await issueIdentity(authority('cluster-authority.pem'), {
      ...MASTER,
      commonName: 'system:node:n1',
      organizations: ['system:nodes'],
    });
    const node = withIdentity(identity);
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

describe('what lies on the disk', () => {
  it('is private to whoever started the server, whatever the umask', () => {
    const open: string[] = [];
    const visit = (path: string): void => {
      const { mode } = statSync(path);
      if ((mode & 0o077) !== 0 && path !== cluster.godwit.directory) open.push(`${path} ${(mode & 0o777).toString(8)}`);
      if (statSync(path).isDirectory()) for (const name of readdirSync(path)) visit(join(path, name));
    };
    visit(cluster.godwit.directory);
    visit(AUDIT_DIRECTORY);
    expect(open).toEqual([]);
    expect(readdirSync(cluster.godwit.directory)).toEqual(expect.arrayContaining(['data', 'kubeconfig', 'pki']));
  });
});

describe('TLS', () => {
  it.each(['TLSv1', 'TLSv1.1'] as const)('%s is refused by the server', async (version) => {
    const { hostname, port } = new URL(cluster.godwit.access().url);
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

describe('what is written down', () => {
  it('holds no secret and no token, however they were sent', async () => {
    const { status } = await cluster.create(`${ROOT}/serviceaccounts/robot/token`, { spec: {} });
    const bearer = client({ token: status.token });
    const merge = { 'content-type': 'application/merge-patch+json' };
    const json = { 'content-type': 'application/json-patch+json' };
    const data = { password: SECRET };
    const encoded = Buffer.from(SECRET).toString('base64');
    await cluster.create(`${ROOT}/secrets`, { metadata: { name: 'written' }, stringData: data });
    await cluster.merge(`${ROOT}/secrets/written`, { stringData: { more: SECRET } });
    const bad: [string, string, unknown, Record<string, string>?][] = [
      ['POST', `${ROOT}/secrets`, `{"metadata":{"name":"x"},"stringData":{"password": ${SECRET}}}`],
      ['POST', `${ROOT}/secrets`, `{"metadata":{"name":"x"},"stringData":{"password":"${SECRET}"`],
      ['POST', `${ROOT}/secrets`, `metadata: [\npassword: ${SECRET}`, { 'content-type': 'application/yaml' }],
      ['POST', `${ROOT}/secrets`, { metadata: { name: 'x' }, data: { password: SECRET } }],
      ['POST', `${ROOT}/secrets`, { metadata: { name: 'x' }, data: { password: [SECRET] } }],
      ['POST', `${ROOT}/secrets`, { metadata: { name: 'x' }, data: SECRET }],
      ['POST', `${ROOT}/secrets?fieldValidation=Strict`, { metadata: { name: 'x' }, [SECRET]: 1 }],
      [
        'POST',
        `${ROOT}/secrets`,
        { metadata: { name: 'x' }, type: 'kubernetes.io/dockerconfigjson', data: { '.dockerconfigjson': encoded } },
      ],
      ['POST', `${ROOT}/secrets`, { metadata: { name: 'x' }, stringData: { [`/${SECRET}`]: SECRET } }],
      ['PUT', `${ROOT}/secrets/written`, { metadata: { name: 'written' }, type: SECRET, stringData: data }],
      ['PATCH', `${ROOT}/secrets/written`, { data: { password: [SECRET] } }, merge],
      ['PATCH', `${ROOT}/secrets/written`, { data: [SECRET] }, merge],
      ['PATCH', `${ROOT}/secrets/written`, [{ op: 'replace', path: '/data', value: SECRET }], json],
      ['PATCH', `${ROOT}/secrets/written`, [{ op: 'test', path: '/data/password', value: SECRET }], json],
      [
        'PATCH',
        `${ROOT}/secrets/written?fieldManager=me`,
        { apiVersion: 'v1', kind: 'Secret', stringData: [SECRET] },
        { 'content-type': 'application/apply-patch+yaml' },
      ],
      ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: [status.token] } }],
      ['POST', '/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: SECRET } }],
      ['GET', `${ROOT}/secrets?token=${SECRET}&access_token=${SECRET}&password=${SECRET}`, undefined],
    ];
    for (const [method, path, body, headers = {}] of bad) {
      const options = { ...(body === undefined ? {} : { body }), headers };
      await cluster.api.request(method, path, options);
      await bearer.request(method, path, options);
    }
    await client({ token: `${SECRET}.${SECRET}.${SECRET}` }).request('GET', '/api');
    await client().request('GET', '/api', {
      headers: { authorization: `Basic ${SECRET}`, cookie: SECRET, 'proxy-authorization': SECRET },
    });
    expect(await cluster.godwit.terminate()).toBe(0);
    const audit = readFileSync(AUDIT_LOG, 'utf8');
    expect(audit.split('\n').length).toBeGreaterThan(50);
    for (const [where, text] of Object.entries({ audit, log: cluster.godwit.output })) {
      const leaks = text
        .split('\n')
        .filter((line) =>
          [SECRET, encoded.slice(0, 20), status.token, 'PRIVATE KEY'].some((secret) => line.includes(secret)),
        );
      expect({ where, leaks }).toEqual({ where, leaks: [] });
    }
  });
});
