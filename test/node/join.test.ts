import { X509Certificate } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { type ApiServer, startApiServer } from '../../src/apiserver/api-server.ts';
import type { Condition, KubeObject } from '../../src/api/meta.ts';
import { realDiskFiles } from '../../src/env/real-disk-files.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { silentLogger } from '../../src/env/test.ts';
import { Client } from '../../src/kube/client.ts';
import type { ClusterAccess } from '../../src/kube/cluster-access.ts';
import { HttpsTransport } from '../../src/kube/https-transport.ts';
import { loadKubeconfig } from '../../src/kube/kubeconfig.ts';
import { systemKubeconfigPorts } from '../../src/kube/kubeconfig-system.ts';
import type { Resource } from '../../src/kube/resource.ts';
import { createAuthority, DAY_MS, issueIdentity } from '../../src/machinery/x509/authority.ts';
import { type Bootstrap, joinCluster, servingCertificate } from '../../src/node/identity/join.ts';
import { fingerprintOf } from '../../src/node/identity/pinned-authority.ts';
import { nodeResource } from '../../src/node/registration/node-registration.ts';
import { eventually } from '../support/eventually.ts';

/** How a machine becomes a node of a real API server, over real TLS, and stays one. */

const TOKEN = 'abcdef.0123456789abcdef';
interface SigningRequest extends KubeObject {
  spec: { signerName: string };
  status?: { certificate?: string; conditions?: Condition[] };
}
const REQUESTS: Resource<SigningRequest> = {
  group: 'certificates.k8s.io',
  version: 'v1',
  plural: 'certificatesigningrequests',
  kind: 'CertificateSigningRequest',
  namespaced: false,
};
const SECRETS: Resource = { group: '', version: 'v1', plural: 'secrets', kind: 'Secret', namespaced: true };

/** Time that can be moved on. */
let offsetMs = 0;
const clock = { ...realClock, now: () => realClock.now() + offsetMs };
const env = { clock, random: realRandom, log: silentLogger };
const ports = systemKubeconfigPorts(realClock, {});
const { signal } = new AbortController();

let serverDirectory: string;
let server: ApiServer;
let authority: X509Certificate;
let admin: Client;
let directory: string;
let nodes = 0;
let node: string;
const transports: HttpsTransport[] = [];

function connect(access: ClusterAccess): Client {
  const transport = new HttpsTransport({ access, env });
  transports.push(transport);
  return new Client(transport, 'test');
}

async function accessFrom(text: string): Promise<ClusterAccess> {
  const path = join(directory, 'given');
  writeFileSync(path, text, { mode: 0o600 });
  return loadKubeconfig({ ports, path });
}

beforeAll(async () => {
  serverDirectory = mkdtempSync(join(tmpdir(), 'godwit-join-'));
  directory = serverDirectory;
  server = await startApiServer({ env, directory: serverDirectory, host: '127.0.0.1', port: 0 });
  const access = await accessFrom(server.kubeconfig);
  authority = new X509Certificate((await access.authorities()) ?? '');
  admin = connect(access);
  const stringData = {
    'token-id': 'abcdef',
    'token-secret': '0123456789abcdef',
    'usage-bootstrap-authentication': 'true',
  };
  const metadata = { name: 'bootstrap-token-abcdef', namespace: 'kube-system' };
  const type = 'bootstrap.kubernetes.io/token';
  await admin.create(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata, type, stringData }, signal);
});
afterAll(async () => {
  for (const transport of transports) transport.close();
  await server.stop();
  rmSync(serverDirectory, { recursive: true });
});
beforeEach(() => {
  offsetMs = 0;
  node = `n${++nodes}`;
  directory = mkdtempSync(join(tmpdir(), 'godwit-node-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const pinned = (fingerprint = fingerprintOf(authority), token = TOKEN): Bootstrap => ({
  kind: 'pinned',
  server: server.url,
  token,
  authorityFingerprint: fingerprint,
});

function joinAs(bootstrap: Bootstrap | undefined, until = signal) {
  const kubeconfigPath = join(directory, 'kubeconfig');
  const ownAccess = async () => {
    try {
      statSync(kubeconfigPath);
    } catch {
      return undefined;
    }
    return loadKubeconfig({ ports, path: kubeconfigPath });
  };
  const options = { env, files: realDiskFiles, node, directory: join(directory, 'pki'), kubeconfigPath };
  return joinCluster({ ...options, ownAccess, bootstrap, connect }, until);
}

async function requestsOf(signer: string): Promise<SigningRequest[]> {
  const { items } = await admin.list(REQUESTS, {}, signal);
  return items.filter((each) => each.spec.signerName === `kubernetes.io/${signer}`);
}

async function decide(request: SigningRequest, type: 'Approved' | 'Denied'): Promise<void> {
  const conditions: Condition[] = [{ type, status: 'True', reason: 'Test', message: 'by hand' }];
  await admin.update(REQUESTS, { ...request, status: { conditions } }, signal, { subresource: 'approval' });
}

const registered = (client: Client) =>
  client.create(nodeResource, { apiVersion: 'v1', kind: 'Node', metadata: { name: node } }, signal);

describe('a machine that is to be a node', () => {
  it('joins by a token and the fingerprint of the authority, and is that node from then on', async () => {
    const { client, clientCertificate } = await joinAs(pinned());
    expect((await registered(client)).metadata.name).toBe(node);
    expect(clientCertificate?.current?.certificatePem).toContain('BEGIN CERTIFICATE');
    for (const file of ['kubeconfig', 'pki/client.pem'])
      expect(statSync(join(directory, file)).mode & 0o777).toBe(0o600);
    expect(statSync(join(directory, 'pki')).mode & 0o777).toBe(0o700);
    const config = parse(readFileSync(join(directory, 'kubeconfig'), 'utf8'));
    expect(config.users[0]).toEqual({
      name: `system:node:${node}`,
      user: {
        'client-certificate': join(directory, 'pki/client.pem'),
        'client-key': join(directory, 'pki/client.pem'),
      },
    });
    const own = connect(await loadKubeconfig({ ports, path: join(directory, 'kubeconfig') }));
    expect((await own.get(nodeResource, '', node, signal)).metadata.name).toBe(node);
  });

  it('joins by a kubeconfig that has a token', async () => {
    const config = parse(server.kubeconfig);
    config.users[0].user = { token: TOKEN };
    const { client } = await joinAs({ kind: 'access', access: await accessFrom(JSON.stringify(config)) });
    expect((await registered(client)).metadata.name).toBe(node);
  });

  it('joins once: the next time it is what it was', async () => {
    await joinAs(pinned());
    const asked = (await requestsOf('kube-apiserver-client-kubelet')).length;
    for (const bootstrap of [undefined, pinned()]) {
      const { client, clientCertificate } = await joinAs(bootstrap);
      expect(clientCertificate).toBeDefined();
      await client.list(nodeResource, { fieldSelector: `metadata.name=${node}` }, signal);
    }
    expect(await requestsOf('kube-apiserver-client-kubelet')).toHaveLength(asked);
  });

  it('needs nobody to be what it was', async () => {
    await joinAs(pinned());
    const path = join(directory, 'kubeconfig');
    const away = 'https://127.0.0.1:1';
    writeFileSync(path, readFileSync(path, 'utf8').replace(server.url, away));
    await expect(joinAs({ ...pinned(), server: away } as Bootstrap)).resolves.toMatchObject({
      access: { server: away },
    });
    await expect(joinAs(undefined)).resolves.toMatchObject({ access: { server: away } });
  });

  it('tells its token to nobody but the authority that it was told of', async () => {
    const wrong = `sha256:${'0'.repeat(64)}`;
    await expect(joinAs(pinned(wrong))).rejects.toThrow(/cannot be had: .*none with that fingerprint/);
    await expect(joinAs(pinned('md5:1'))).rejects.toThrow('is no fingerprint');
  });

  it('says what is wrong with it', async () => {
    await expect(joinAs(undefined)).rejects.toThrow(/does not exist: join with a bootstrap token.*godwit token create/);
    await expect(joinAs(pinned(undefined, 'abcdef.ffffffffffffffff'))).rejects.toThrow(
      /does not accept the bootstrap token: it may have expired/,
    );
  });

  it('uses a kubeconfig with credentials of its own as it is', async () => {
    writeFileSync(join(directory, 'kubeconfig'), server.kubeconfig);
    const { client, clientCertificate } = await joinAs(undefined);
    expect(clientCertificate).toBeUndefined();
    expect((await registered(client)).metadata.name).toBe(node);
  });

  it('joins anew when its certificate is of another cluster, or of another node, or has expired', async () => {
    const foreign = await createAuthority(env, 'foreign');
    const options = { organizations: ['system:nodes'], usages: ['client' as const], validityMs: DAY_MS };
    const { certificatePem, keyPem } = await issueIdentity(foreign, { ...options, commonName: `system:node:${node}` });
    const path = join(directory, 'pki/client.pem');
    const first = await joinAs(pinned());
    await registered(first.client);
    const mine = readFileSync(path, 'utf8');
    writeFileSync(path, certificatePem + keyPem);
    expect((await (await joinAs(pinned())).client.get(nodeResource, '', node, signal)).metadata.name).toBe(node);
    const again = readFileSync(path, 'utf8');
    expect(again).not.toBe(mine);
    offsetMs = 366 * DAY_MS;
    await expect(joinAs(undefined)).rejects.toThrow(/has expired, or is not for the node.*godwit token create/);
    offsetMs = 0;
    node = `${node}-renamed`;
    await registered((await joinAs(pinned())).client);
  });
});

describe('a node', () => {
  it('renews its certificate while it runs, and speaks by the new one', async () => {
    const { client, clientCertificate, access } = await joinAs(pinned());
    await registered(client);
    const halt = new AbortController();
    const before = await access.credentials(signal);
    offsetMs = 300 * DAY_MS;
    const running = clientCertificate?.run(halt.signal);
    // What it has by then was signed by a server whose clock is the same.
    offsetMs = 340 * DAY_MS;
    await eventually(async () => expect(await access.credentials(signal)).not.toEqual(before));
    halt.abort();
    await running;
    const { certificate = '' } = await access.credentials(signal);
    expect(Date.parse(new X509Certificate(certificate).validTo)).toBeGreaterThan(clock.now() + 300 * DAY_MS);
    expect(readFileSync(join(directory, 'pki/client.pem'), 'utf8')).toContain(certificate);
  });

  async function serving(client: Client, addresses = ['10.0.0.7', 'fd00::7']) {
    const directories = { directory: join(directory, 'pki') };
    const after = Promise.resolve();
    const certificate = await servingCertificate({
      env,
      files: realDiskFiles,
      node,
      addresses,
      server: server.url,
      client,
      after,
      ...directories,
    });
    const halt = new AbortController();
    const ended = certificate.run(halt.signal);
    return {
      certificate,
      stop: async () => {
        halt.abort();
        await ended;
      },
    };
  }

  it('waits for the approval of its serving certificate, across restarts, and asks once', async () => {
    const { client } = await joinAs(pinned());
    await registered(client);
    const before = (await requestsOf('kubelet-serving')).length;
    const first = await serving(client);
    await eventually(async () => expect(await requestsOf('kubelet-serving')).toHaveLength(before + 1));
    await first.stop();
    expect(first.certificate.current).toBeUndefined();
    const second = await serving(client);
    let changes = 0;
    second.certificate.onChange(() => changes++);
    const asked = (await requestsOf('kubelet-serving')).at(-1) as SigningRequest;
    await decide(asked, 'Approved');
    await eventually(() => expect(second.certificate.current).toBeDefined());
    await second.stop();
    expect(changes).toBe(1);
    expect(await requestsOf('kubelet-serving')).toHaveLength(before + 1);
    const certificate = new X509Certificate(second.certificate.current?.certificatePem ?? '');
    expect(certificate.checkHost(node)).toBe(node);
    expect(certificate.checkIP('10.0.0.7')).toBe('10.0.0.7');
    expect(certificate.checkIP('fd00::7')).toBe('fd00::7');
    // It is there at once after a restart; and another address needs another certificate.
    const third = await serving(client);
    expect(third.certificate.current?.certificatePem).toBe(second.certificate.current?.certificatePem);
    await third.stop();
    const moved = await serving(client, ['10.0.0.8']);
    expect(moved.certificate.current).toBeUndefined();
    await eventually(async () => expect(await requestsOf('kubelet-serving')).toHaveLength(before + 2));
    await moved.stop();
  });

  it('asks again, with another key, when it was denied', async () => {
    const { client } = await joinAs(pinned());
    await registered(client);
    const before = (await requestsOf('kubelet-serving')).map(({ metadata }) => metadata.name);
    const fresh = async () =>
      (await requestsOf('kubelet-serving')).filter(({ metadata }) => !before.includes(metadata.name));
    const { certificate, stop } = await serving(client);
    await eventually(async () => expect(await fresh()).toHaveLength(1));
    await decide((await fresh())[0] as SigningRequest, 'Denied');
    await eventually(async () => expect(await fresh()).toHaveLength(2));
    const open = (await fresh()).find(({ status }) => !status?.conditions) as SigningRequest;
    await decide(open, 'Approved');
    await eventually(() => expect(certificate.current).toBeDefined());
    await stop();
  });
});
