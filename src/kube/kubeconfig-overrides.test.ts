import { resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { ManualClock } from '../env/test.ts';
import { loadKubeconfig } from './kubeconfig.ts';
import type { KubeconfigOverrides } from './kubeconfig-overrides.ts';
import type { KubeconfigPorts } from './kubeconfig-ports.ts';

const PEM = '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----';
const base64 = (text: string): string => Buffer.from(text).toString('base64');
const POD = '/var/run/secrets/kubernetes.io/serviceaccount';

const CONFIG = {
  'current-context': 'here',
  clusters: [
    {
      name: 'east',
      cluster: {
        server: 'https://east:6443',
        'tls-server-name': 'east.example.com',
        'certificate-authority-data': base64(PEM),
      },
    },
    { name: 'west', cluster: { server: 'https://west:6443' } },
  ],
  users: [
    {
      name: 'admin',
      user: {
        'client-certificate-data': base64(PEM),
        'client-key-data': base64(PEM),
        as: 'root',
        'as-groups': ['system:masters'],
      },
    },
    { name: 'jane', user: { token: 'hers' } },
    { name: 'program', user: { exec: { apiVersion: 'client.authentication.k8s.io/v1', command: 'login' } } },
  ],
  contexts: [{ name: 'here', context: { cluster: 'east', user: 'admin', namespace: 'shop' } }],
};

function ports(files: Readonly<Record<string, string>>, environment: Record<string, string> = {}): KubeconfigPorts {
  return {
    clock: new ManualClock(),
    environment,
    homeDirectory: '/home/me',
    readFile: async (path) => {
      const text = files[path];
      if (text === undefined) throw Object.assign(new Error('ENOENT'), { code: 'ENOENT' });
      return text;
    },
    run: async () => {
      throw new Error('no program is to run');
    },
  };
}

const HOME = {
  '/home/me/.kube/config': stringify(CONFIG),
  [resolve('mine.crt')]: 'CRT',
  [resolve('mine.key')]: 'KEY',
  [resolve('ca.crt')]: 'OTHER',
};

/** What it comes to: where, who, and as whom. */
async function told(overrides: KubeconfigOverrides, machine: KubeconfigPorts = ports(HOME)): Promise<object> {
  const access = await loadKubeconfig({ ports: machine, overrides });
  const { server, serverName, isInsecure, namespace, impersonation } = access;
  const credentials = await access.credentials(new AbortController().signal);
  return {
    server,
    serverName,
    isInsecure,
    namespace,
    impersonation,
    credentials,
    authorities: await access.authorities(),
  };
}

const ADMIN = { certificate: PEM, key: PEM };
const ROOT = { 'impersonate-user': 'root', 'impersonate-group': ['system:masters'] };

describe('what is said on the command line', () => {
  it.each<[string, KubeconfigOverrides, object]>([
    [
      'nothing',
      {},
      { server: 'https://east:6443', serverName: 'east.example.com', credentials: ADMIN, authorities: PEM },
    ],
    [
      'a server, whose name is its own',
      { server: 'https://there' },
      { server: 'https://there', serverName: undefined, credentials: ADMIN },
    ],
    [
      'a server with its name',
      { server: 'https://there', tlsServerName: 'x' },
      { server: 'https://there', serverName: 'x' },
    ],
    ['the name of the server', { tlsServerName: 'x' }, { server: 'https://east:6443', serverName: 'x' }],
    ['no verification', { insecureSkipTlsVerify: true }, { isInsecure: true, authorities: undefined }],
    ['an authority', { certificateAuthority: 'ca.crt' }, { isInsecure: false, authorities: 'OTHER' }],
    ['a cluster', { cluster: 'west' }, { server: 'https://west:6443', credentials: ADMIN, namespace: 'shop' }],
    [
      'a user',
      { user: 'jane' },
      { server: 'https://east:6443', credentials: { authorization: 'Bearer hers' }, impersonation: {} },
    ],
    [
      'a token, and nothing else shows who asks',
      { token: 'abc' },
      { credentials: { authorization: 'Bearer abc' }, impersonation: ROOT },
    ],
    [
      'a token instead of a program',
      { user: 'program', token: 'abc' },
      { credentials: { authorization: 'Bearer abc' } },
    ],
    [
      'a certificate',
      { clientCertificate: 'mine.crt', clientKey: 'mine.key' },
      { credentials: { certificate: 'CRT', key: 'KEY' } },
    ],
    [
      'somebody to be, of no groups',
      { as: 'joe' },
      { impersonation: { 'impersonate-user': 'joe' }, credentials: ADMIN },
    ],
    [
      'all of somebody to be',
      { as: 'joe', asGroup: ['a', 'b'], asUid: '7' },
      { impersonation: { 'impersonate-user': 'joe', 'impersonate-group': ['a', 'b'], 'impersonate-uid': '7' } },
    ],
    [
      'groups of whom the kubeconfig names',
      { asGroup: ['a'] },
      { impersonation: { 'impersonate-user': 'root', 'impersonate-group': ['a'] } },
    ],
  ])('goes before the kubeconfig: %s', async (_, overrides, expected) =>
    expect(await told(overrides)).toMatchObject(expected),
  );

  it('is enough where it says where the server is', async () => {
    expect(await told({ server: 'https://there', token: 'abc' }, ports({}))).toEqual({
      server: 'https://there',
      serverName: undefined,
      isInsecure: false,
      namespace: 'default',
      impersonation: {},
      credentials: { authorization: 'Bearer abc' },
      authorities: undefined,
    });
    const { 'current-context': _, ...rest } = CONFIG;
    const machine = ports({ '/home/me/.kube/config': stringify(rest) });
    expect(await told({ cluster: 'west', user: 'jane' }, machine)).toMatchObject({ server: 'https://west:6443' });
  });

  it('goes before what a pod has', async () => {
    const files = { [`${POD}/token`]: 'pod', [`${POD}/ca.crt`]: PEM, [`${POD}/namespace`]: 'team' };
    const machine = ports(files, { KUBERNETES_SERVICE_HOST: '10.0.0.1' });
    expect(await told({ as: 'joe' }, machine)).toMatchObject({
      server: 'https://10.0.0.1:443',
      credentials: { authorization: 'Bearer pod' },
      impersonation: { 'impersonate-user': 'joe' },
    });
    expect(await told({ token: 'abc' }, machine)).toMatchObject({ credentials: { authorization: 'Bearer abc' } });
  });

  it.each<[KubeconfigOverrides, string]>([
    [{ server: 'http://there' }, '--server http://there is no https URL'],
    [{ clientKey: 'mine.key' }, '--client-certificate and --client-key go together: give both, or neither'],
    [{ user: 'jane', asUid: '7' }, '--as-group and --as-uid need --as, which says whom to be treated as'],
    [{ user: 'nobody' }, '/home/me/.kube/config: there is no user "nobody"; there are admin, jane, program'],
    [{ cluster: 'north' }, '/home/me/.kube/config: there is no cluster "north"; there are east, west'],
  ])('is refused where it makes no sense: %o', async (overrides, message) =>
    expect(told(overrides)).rejects.toThrow(message),
  );
});
