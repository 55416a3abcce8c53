import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import type { KubeObject } from '../../src/api/meta.ts';
import { ApiError } from '../../src/api/status.ts';
import { type ApiServer, startApiServer } from '../../src/apiserver/api-server.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { silentLogger } from '../../src/env/test.ts';
import { Client } from '../../src/kube/client.ts';
import { HttpsTransport } from '../../src/kube/https-transport.ts';
import { Informer } from '../../src/kube/informer.ts';
import { loadKubeconfig } from '../../src/kube/kubeconfig.ts';
import { systemKubeconfigPorts } from '../../src/kube/kubeconfig-system.ts';
import type { Resource } from '../../src/kube/resource.ts';
import { eventually } from '../support/eventually.ts';

/** The whole way, from a kubeconfig to an informer, against the API server as `godwit up` runs it. */

const env = { clock: realClock, random: realRandom, log: silentLogger };
const CONFIG_MAPS: Resource = { group: '', version: 'v1', plural: 'configmaps', kind: 'ConfigMap', namespaced: true };
const SERVICE_ACCOUNTS: Resource = { ...CONFIG_MAPS, plural: 'serviceaccounts', kind: 'ServiceAccount' };
const BINDINGS: Resource = {
  group: 'rbac.authorization.k8s.io',
  version: 'v1',
  plural: 'clusterrolebindings',
  kind: 'ClusterRoleBinding',
  namespaced: false,
};
const { signal } = new AbortController();

let directory: string;
let server: ApiServer;
let transport: HttpsTransport;
let client: Client;

async function connect(kubeconfig: string): Promise<HttpsTransport> {
  const path = join(directory, 'kubeconfig');
  await writeFile(path, kubeconfig, { mode: 0o600 });
  const access = await loadKubeconfig({ ports: systemKubeconfigPorts(realClock, {}), path });
  return new HttpsTransport({ access, env });
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'godwit-https-'));
  server = await startApiServer({ env, directory, host: '127.0.0.1', port: 0 });
  transport = await connect(server.kubeconfig);
  client = new Client(transport, 'test');
});

afterAll(async () => {
  transport.close();
  await server.stop();
  await rm(directory, { recursive: true });
});

function configMap(name: string, data: Record<string, string> = {}): KubeObject {
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data };
}

async function failure(promise: Promise<unknown>): Promise<ApiError> {
  const error: unknown = await promise.catch((reason: unknown) => reason);
  if (!(error instanceof ApiError)) throw new Error(`expected an ApiError, not ${String(error)}`);
  return error;
}

describe('a client', () => {
  it('creates, reads, changes and deletes, and is told why not', async () => {
    const created = await client.create(CONFIG_MAPS, configMap('one', { a: 'größer' }), signal);
    expect(created.metadata.managedFields?.[0]?.manager).toBe('test');
    expect((await failure(client.create(CONFIG_MAPS, configMap('one'), signal))).reason).toBe('AlreadyExists');
    const patch = { type: 'merge', body: { data: { b: '2' } } } as const;
    const patched = await client.patch(CONFIG_MAPS, 'default', 'one', patch, signal);
    expect(patched['data']).toEqual({ a: 'größer', b: '2' });
    expect((await failure(client.update(CONFIG_MAPS, created, signal))).reason).toBe('Conflict');
    const updated = await client.update(CONFIG_MAPS, { ...patched, data: { c: '3' } }, signal);
    expect(await client.get(CONFIG_MAPS, 'default', 'one', signal)).toEqual(updated);
    await client.delete(CONFIG_MAPS, 'default', 'one', signal, { preconditions: { uid: created.metadata.uid } });
    expect(await failure(client.get(CONFIG_MAPS, 'default', 'one', signal))).toMatchObject({
      code: 404,
      reason: 'NotFound',
    });
  });

  it('reads what is no object', async () => {
    expect(await client.getPath('/version', signal)).toMatchObject({ gitVersion: expect.stringMatching(/^v1\./) });
  });
});

describe('a token', () => {
  it('is read again from its file when it has been rotated', async () => {
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'robot', namespace: 'default' } };
    await client.create(SERVICE_ACCOUNTS, account, signal);
    const role = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'view' };
    const subjects = [{ kind: 'ServiceAccount', name: 'robot', namespace: 'default' }];
    const binding = { apiVersion: '', kind: '', metadata: { name: 'robot' }, roleRef: role, subjects };
    await client.create(BINDINGS, binding, signal);
    const request = {
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      metadata: {},
      spec: { audiences: [] },
    };
    const { status } = await client.post<{ status: { token: string } }>(
      SERVICE_ACCOUNTS,
      'default',
      'robot',
      'token',
      request,
      signal,
    );
    const tokenFile = join(directory, 'token');
    await writeFile(tokenFile, 'not-a-token', { mode: 0o600 });
    const kubeconfig = stringify({
      'current-context': 'robot',
      contexts: [{ name: 'robot', context: { cluster: 'here', user: 'robot' } }],
      clusters: [{ name: 'here', cluster: { server: server.url, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'robot', user: { tokenFile: 'token' } }],
    });
    const robotTransport = await connect(kubeconfig);
    const robot = new Client(robotTransport, 'robot');
    try {
      expect((await failure(robot.list(CONFIG_MAPS, { namespace: 'default' }, signal))).code).toBe(401);
      await writeFile(tokenFile, status.token, { mode: 0o600 });
      expect((await robot.list(CONFIG_MAPS, { namespace: 'default' }, signal)).kind).toBe('ConfigMapList');
      expect((await failure(robot.create(CONFIG_MAPS, configMap('no'), signal))).reason).toBe('Forbidden');
    } finally {
      robotTransport.close();
    }
  });
});

describe('an informer', () => {
  it('follows the server, also over its restart', async () => {
    const informer = new Informer({ client, resource: CONFIG_MAPS, env, namespace: 'default' });
    const stop = new AbortController();
    const running = informer.run(stop.signal);
    await informer.synced;
    await client.create(CONFIG_MAPS, configMap('before', { step: '1' }), signal);
    await eventually(() => expect(informer.get('default/before')).toBeDefined());
    const { port } = server;
    await server.stop();
    server = await startApiServer({ env, directory, host: '127.0.0.1', port });
    // The client's own connection is gone too; the request waits for the next one.
    await client.patch(CONFIG_MAPS, 'default', 'before', { type: 'merge', body: { data: { step: '2' } } }, signal);
    await client.create(CONFIG_MAPS, configMap('after'), signal);
    await eventually(() => {
      expect(informer.get('default/before')?.['data']).toEqual({ step: '2' });
      expect(informer.get('default/after')).toBeDefined();
    });
    await client.delete(CONFIG_MAPS, 'default', 'before', signal);
    await eventually(() => expect(informer.get('default/before')).toBeUndefined());
    const { items } = await client.list(CONFIG_MAPS, { namespace: 'default' }, signal);
    expect([...informer.list()].sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))).toEqual(
      items,
    );
    stop.abort();
    await running;
  });
});
