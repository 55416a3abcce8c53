import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeCertificateRequest } from '../../src/machinery/x509/certificate-request.fixture.ts';
import { Cluster } from '../support/cluster.ts';
import { eventually } from '../support/eventually.ts';
import { Kubectl, kubectlHas } from '../support/kubectl.ts';
import { tableOf } from './table.ts';

/** Being somebody else: tokens of service accounts, certificates of users, impersonation. */

let cluster: Cluster;
let kubectl: Kubectl;
let namespace: string;
let directory: string;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-credentials-'));
  cluster = await Cluster.start();
  ({ kubectl, namespace } = await cluster.namespace('credentials'));
  await kubectl.ok('create serviceaccount robot');
  await kubectl.ok('create configmap settings');
  await kubectl.ok('create role reader --verb=get,list,watch --resource=pods');
  await kubectl.ok([
    'create',
    'rolebinding',
    'readers',
    '--role=reader',
    '--user=jane',
    '--group=readers',
    `--serviceaccount=${namespace}:robot`,
  ]);
});
afterAll(async () => {
  await cluster.close();
  rmSync(directory, { recursive: true, force: true });
});

/** kubectl for somebody else on the same server, in the same namespace. */
function somebody(name: string, credentials: object): Kubectl {
  const { url, ca } = cluster.godwit.access();
  const config = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [
      { name: 'c', cluster: { server: url, 'certificate-authority-data': Buffer.from(ca).toString('base64') } },
    ],
    users: [{ name, user: credentials }],
    contexts: [{ name: 'x', context: { cluster: 'c', user: name, namespace } }],
    'current-context': 'x',
  };
  const path = join(directory, `${name}.kubeconfig`);
  writeFileSync(path, JSON.stringify(config));
  return new Kubectl(path);
}

/** Asks for a certificate as a user would, approves it as an administrator would, and uses it. */
async function certified(name: string, groups: string[]): Promise<Kubectl> {
  const { requestPem, keyPem } = await makeCertificateRequest({ commonName: name, organizations: groups });
  await kubectl.apply({
    apiVersion: 'certificates.k8s.io/v1',
    kind: 'CertificateSigningRequest',
    metadata: { name },
    spec: {
      request: Buffer.from(requestPem).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client',
      usages: ['client auth'],
      expirationSeconds: 3600,
    },
  });
  await kubectl.ok(['certificate', 'approve', name]);
  const certificate = await eventually(async () => {
    const { status } = await kubectl.json(`get csr ${name}`);
    expect(status.certificate).toBeTruthy();
    return status.certificate as string;
  });
  return somebody(name, {
    'client-certificate-data': certificate,
    'client-key-data': Buffer.from(keyPem).toString('base64'),
  });
}

describe('tokens of service accounts', () => {
  const robot = (token: string): Kubectl => somebody('robot', { token });
  const claimsOf = (token: string): Record<string, unknown> =>
    JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString());
  const tokenOf = async (...args: string[]): Promise<string> =>
    (await kubectl.ok(['create', 'token', 'robot', ...args])).trim();

  it('let in whoever has one, as that account', async () => {
    if (!kubectlHas(24, 'create token')) return;
    const token = await tokenOf();
    expect(await robot(token).ok('get pods')).toBe('');
    expect(await robot(token).fails('get configmaps')).toBe(
      `Error from server (Forbidden): configmaps is forbidden: User "system:serviceaccount:${namespace}:robot" cannot list resource "configmaps" in API group "" in the namespace "${namespace}"\n`,
    );
    const { sub, exp, iat } = claimsOf(token) as { sub: string; exp: number; iat: number };
    expect({ sub, seconds: exp - iat }).toEqual({ sub: `system:serviceaccount:${namespace}:robot`, seconds: 3600 });
  });

  it('last as long as they are asked to, within bounds', async () => {
    const token = await tokenOf('--duration=20m');
    const { exp, iat } = claimsOf(token) as { exp: number; iat: number };
    expect(exp - iat).toBe(1200);
    expect(await kubectl.fails('create token robot --duration=5m')).toMatch(
      /spec\.expirationSeconds: Invalid value: 300: may not specify a duration less than 10 minutes\n$/,
    );
  });

  it('are good for their audience alone', async () => {
    const token = await tokenOf('--audience=https://other.example.com');
    expect(claimsOf(token)['aud']).toEqual(['https://other.example.com']);
    expect(await robot(token).fails('get pods')).toBe('error: You must be logged in to the server (Unauthorized)\n');
    const review = (audiences?: string[]): object => ({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenReview',
      spec: { token, ...(audiences ? { audiences } : {}) },
    });
    const asked = await cluster.create(
      '/apis/authentication.k8s.io/v1/tokenreviews',
      review(['https://other.example.com']),
    );
    expect(asked.status).toMatchObject({
      authenticated: true,
      audiences: ['https://other.example.com'],
      user: { username: `system:serviceaccount:${namespace}:robot` },
    });
    expect(
      (await cluster.create('/apis/authentication.k8s.io/v1/tokenreviews', review())).status.authenticated,
    ).toBeFalsy();
  });

  it('die with what they are bound to', async () => {
    await kubectl.ok('create secret generic anchor');
    const token = await tokenOf('--bound-object-kind=Secret', '--bound-object-name=anchor');
    expect(await robot(token).ok('get pods')).toBe('');
    await kubectl.ok('delete secret anchor');
    await eventually(async () =>
      expect(await robot(token).fails('get pods')).toBe('error: You must be logged in to the server (Unauthorized)\n'),
    );
    expect(await kubectl.fails('create token robot --bound-object-kind=Secret --bound-object-name=anchor')).toBe(
      'error: failed to create token: secrets "anchor" not found\n',
    );
    expect(
      await kubectl.fails('create token robot --bound-object-kind=ConfigMap --bound-object-name=settings'),
    ).toContain('error: supported --bound-object-kind values are');
  });

  it('die with their account, even if one of the same name comes after it', async () => {
    const token = await tokenOf();
    await kubectl.ok('delete serviceaccount robot');
    await eventually(async () => expect(await robot(token).fails('get pods')).toContain('(Unauthorized)'));
    expect(await kubectl.fails('create token robot')).toBe(
      'error: failed to create token: serviceaccounts "robot" not found\n',
    );
    await kubectl.ok('create serviceaccount robot');
    expect(await robot(token).fails('get pods')).toContain('(Unauthorized)');
    expect(await robot(await tokenOf()).ok('get pods')).toBe('');
  });

  it('are nothing when they are made up, or of another cluster', async () => {
    const [header, , signature] = (await tokenOf()).split('.');
    const forged = Buffer.from(JSON.stringify({ sub: 'system:serviceaccount:kube-system:admin' })).toString(
      'base64url',
    );
    for (const token of [
      'nonsense',
      `${header}.${forged}.${signature}`,
      `${Buffer.from('{"alg":"none"}').toString('base64url')}.${forged}.`,
    ])
      expect(await robot(token).fails('get pods')).toContain('(Unauthorized)');
  });
});

describe('certificates', () => {
  it('make a user whom RBAC knows by name and group', async () => {
    const dave = await certified('dave', ['readers']);
    const { status } = await dave.json('auth whoami');
    expect(status.userInfo).toMatchObject({ username: 'dave', groups: ['readers', 'system:authenticated'] });
    expect(await dave.ok('get pods')).toBe('');
    expect(await dave.fails('get secrets')).toBe(
      `Error from server (Forbidden): secrets is forbidden: User "dave" cannot list resource "secrets" in API group "" in the namespace "${namespace}"\n`,
    );
    expect(tableOf(await kubectl.ok('get csr dave'))).toMatchObject([
      {
        NAME: 'dave',
        SIGNERNAME: 'kubernetes.io/kube-apiserver-client',
        REQUESTOR: 'kubernetes-admin',
        REQUESTEDDURATION: '60m',
        CONDITION: 'Approved,Issued',
      },
    ]);
  });

  it('are not given to whom they are denied', async () => {
    const { requestPem } = await makeCertificateRequest({ commonName: 'eve', organizations: [] });
    await kubectl.apply({
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: 'eve' },
      spec: {
        request: Buffer.from(requestPem).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth'],
      },
    });
    expect(tableOf(await kubectl.ok('get csr eve'))).toMatchObject([
      { CONDITION: 'Pending', REQUESTEDDURATION: '<none>' },
    ]);
    expect(await kubectl.ok('certificate deny eve')).toBe('certificatesigningrequest.certificates.k8s.io/eve denied\n');
    const { status } = await kubectl.json('get csr eve');
    expect(status).not.toHaveProperty('certificate');
    expect(status.conditions).toMatchObject([{ type: 'Denied', status: 'True', reason: 'KubectlDeny' }]);
    expect(tableOf(await kubectl.ok('get csr eve'))).toMatchObject([{ CONDITION: 'Denied' }]);
    // What was decided stays decided.
    expect(await kubectl.fails('certificate approve eve')).toContain('eve');
  });

  it('cannot be approved, nor asked for in another name, by just anyone', async () => {
    await kubectl.ok(
      'create clusterrole access-asker --verb=create,get,update,patch --resource=certificatesigningrequests.certificates.k8s.io,certificatesigningrequests.certificates.k8s.io/approval',
    );
    await kubectl.ok('create clusterrolebinding access-asker --clusterrole=access-asker --user=mallory');
    const { requestPem } = await makeCertificateRequest({ commonName: 'mallory', organizations: ['system:masters'] });
    const request = {
      apiVersion: 'certificates.k8s.io/v1',
      kind: 'CertificateSigningRequest',
      metadata: { name: 'mallory' },
      spec: {
        request: Buffer.from(requestPem).toString('base64'),
        signerName: 'kubernetes.io/kube-apiserver-client',
        usages: ['client auth'],
        username: 'kubernetes-admin',
        groups: ['system:masters'],
      },
    };
    // Nobody at all gets that group by certificate.
    expect(await kubectl.fails('create -f - --as mallory', { stdin: JSON.stringify(request) })).toContain(
      'use of kubernetes.io/kube-apiserver-client signer with system:masters group is not allowed',
    );
    const modest = await makeCertificateRequest({ commonName: 'mallory', organizations: ['admins'] });
    request.spec.request = Buffer.from(modest.requestPem).toString('base64');
    await kubectl.ok('create -f - --as mallory', { stdin: JSON.stringify(request) });
    expect((await kubectl.json('get csr mallory')).spec).toMatchObject({
      username: 'mallory',
      groups: ['system:authenticated'],
    });
    expect(await kubectl.fails('certificate approve mallory --as mallory')).toContain(
      'certificatesigningrequests.certificates.k8s.io "mallory" is forbidden: user not permitted to approve requests with signerName "kubernetes.io/kube-apiserver-client"',
    );
  });
});

describe('impersonation', () => {
  it('is for those alone who may impersonate that very user, group or account', async () => {
    await kubectl.ok('create clusterrole access-impersonator --verb=impersonate --resource=users --resource-name=jane');
    await kubectl.ok('create clusterrolebinding access-impersonator --clusterrole=access-impersonator --user=carol');
    // Carol is played by a certificate: kubectl cannot nest --as.
    const carol = await certified('carol', []);
    expect(await carol.ok('get pods --as jane')).toBe('');
    expect(await carol.fails('get pods --as bob')).toBe(
      'Error from server (Forbidden): users "bob" is forbidden: User "carol" cannot impersonate resource "users" in API group "" at the cluster scope\n',
    );
    expect(await carol.fails('get pods --as jane --as-group system:masters')).toBe(
      'Error from server (Forbidden): groups "system:masters" is forbidden: User "carol" cannot impersonate resource "groups" in API group "" at the cluster scope\n',
    );
    expect(await carol.fails(`get pods --as system:serviceaccount:${namespace}:robot`)).toBe(
      `Error from server (Forbidden): serviceaccounts "robot" is forbidden: User "carol" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "${namespace}"\n`,
    );
    expect(await carol.fails('get pods --as jane --as-uid 7')).toBe(
      'Error from server (Forbidden): uids.authentication.k8s.io "7" is forbidden: User "carol" cannot impersonate resource "uids" in API group "authentication.k8s.io" at the cluster scope\n',
    );
  });

  it('of a service account brings its groups', async () => {
    const { status } = await kubectl.json(`auth whoami --as system:serviceaccount:${namespace}:robot`);
    expect(status.userInfo).toMatchObject({
      username: `system:serviceaccount:${namespace}:robot`,
      groups: ['system:serviceaccounts', `system:serviceaccounts:${namespace}`, 'system:authenticated'],
    });
    expect(await kubectl.ok(`get pods --as system:serviceaccount:${namespace}:robot`)).toBe('');
  });

  it('of groups alone is refused', async () => {
    expect(await kubectl.fails('get pods --as-group readers')).toContain('without impersonating a user');
  });
});
