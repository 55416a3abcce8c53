import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../src/api/meta.ts';
import { clusterServices, inProcessClients } from '../../src/cluster/cluster.ts';
import { agentRights } from '../../src/control/installation/agent-rights.ts';
import { CONTROLLER_IDENTITY, controllerRights } from '../../src/control/installation/rights.ts';
import { storageClasses } from '../../src/control/storage/classes.ts';
import { DirectoryVolumes } from '../../src/control/storage/directory-volumes.ts';
import { realDiskFiles } from '../../src/env/real-disk-files.ts';
import { Client } from '../../src/kube/client.ts';
import { InProcessTransport, type LocalIdentity } from '../../src/kube/in-process-transport.ts';
import { Manager } from '../../src/kube/manager.ts';
import { KubeMetrics } from '../../src/kube/metrics.ts';
import type { Resource } from '../../src/kube/resource.ts';
import { SharedInformers } from '../../src/kube/shared-informers.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim } from '../../src/migration/fit/objects.ts';
import { DirectoryRemoval } from '../../src/node/storage/directory-removal.ts';
import { resource } from '../support/cluster-under-test.ts';
import { eventually } from '../support/eventually.ts';
import { InProcessApi } from '../support/in-process.ts';

/** From a claim to a directory and back: the cluster's loops, our controller and an agent, each with its own rights. */

const claims = resource<PersistentVolumeClaim>('persistentvolumeclaims', 'PersistentVolumeClaim');
const volumes = resource<PersistentVolume>('persistentvolumes', 'PersistentVolume', '', false);
const nodes = resource<Node>('nodes', 'Node', '', false);
const pods = resource('pods', 'Pod');

const stopping = new AbortController();
const { signal } = stopping;
const directory = mkdtempSync(join(tmpdir(), 'godwit-storage-'));
const [sharedPath, localPath] = [join(directory, 'shared'), join(directory, 'local')];

let api: InProcessApi;
let admin: Client;
let running: Promise<unknown>;

function clientOf(identity: LocalIdentity): Client {
  return new Client(new InProcessTransport((request) => api.core.handle(request), identity), 'test');
}

function resourceOf({ apiVersion, kind, metadata }: KubeObject): Resource {
  const [version = '', group = ''] = apiVersion.split('/').reverse();
  const plural = kind.endsWith('s') ? `${kind.toLowerCase()}es` : `${kind.toLowerCase()}s`;
  return { group, version, kind, plural, namespaced: metadata.namespace !== undefined };
}

beforeAll(async () => {
  api = await InProcessApi.start({ hasDefaultAccounts: true });
  const { env } = api;
  admin = clientOf({ user: 'admin', groups: ['system:masters'] });
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'kubevirt' } };
  for (const object of [namespace, ...controllerRights(), ...agentRights(), ...storageClasses(sharedPath)])
    await admin.create(resourceOf(object), object, signal);
  const annotations = { 'godwit.dev/local-storage-path': localPath };
  const metadata = { name: 'a', labels: { 'kubernetes.io/hostname': 'a' }, annotations };
  await admin.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata }, signal);
  const amounts = { cpu: '4', memory: '8Gi', pods: '20' };
  const status = { allocatable: amounts, capacity: amounts, conditions: [{ type: 'Ready', status: 'True' }] };
  await admin.patch(nodes, '', 'a', { type: 'merge', body: { status } }, signal, { subresource: 'status' });

  const metrics = new KubeMetrics(env.clock);
  const loops = inProcessClients(api.core.handle.bind(api.core));
  const client = clientOf(CONTROLLER_IDENTITY);
  const informers = new SharedInformers({ client, env });
  const controller = new DirectoryVolumes({ env, client, informers });
  const manager = new Manager({ env, name: 'test' });
  manager.add(...clusterServices({ env, clientOf: loops, metrics }), ...informers.all(), controller);
  const agent = clientOf({ user: 'system:node:a', groups: ['system:nodes', 'system:authenticated'] });
  const removal = new DirectoryRemoval({
    env,
    client: agent,
    nodeName: 'a',
    localPath,
    sharedPath,
    files: realDiskFiles,
  });
  running = Promise.all([manager.run(signal), removal.run(signal)]);
});
afterAll(async () => {
  stopping.abort();
  await running;
  await api.stop();
  rmSync(directory, { recursive: true });
});

async function makeClaim(name: string, storageClassName: string): Promise<void> {
  const spec = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } }, storageClassName };
  const metadata = { name, namespace: 'default' };
  await admin.create(claims, { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata, spec }, signal);
}

async function volumeOf(name: string): Promise<PersistentVolume> {
  return eventually(async () => {
    const { spec, status } = await admin.get(claims, 'default', name, signal);
    expect(status?.phase).toBe('Bound');
    return admin.get(volumes, '', spec?.volumeName ?? '', signal);
  });
}

/** What the agent makes when a pod first uses the volume. */
function use(path: string): void {
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, 'disk.img'), 'data');
}

async function goes(name: string, path: string): Promise<void> {
  await admin.delete(claims, 'default', name, signal);
  await eventually(async () => expect((await admin.list(volumes, {}, signal)).items).toEqual([]));
  expect(existsSync(path)).toBe(false);
  await eventually(async () => {
    const { metadata } = await admin.get(nodes, '', 'a', signal);
    expect(metadata.annotations?.['godwit.dev/removed-volumes']).toBeUndefined();
  });
}

describe('volumes of directories', () => {
  it('of the host come with the claim and go with it', async () => {
    await makeClaim('data', 'shared');
    const { metadata, spec } = await volumeOf('data');
    const path = spec?.hostPath?.path ?? '';
    expect(path).toBe(join(sharedPath, metadata.name ?? ''));
    use(path);
    await goes('data', path);
  });

  it('of a node come with the first pod', async () => {
    await makeClaim('disk', 'local');
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'p', namespace: 'default' },
      spec: {
        containers: [{ name: 'main', image: 'none' }],
        tolerations: [{ operator: 'Exists' }],
        volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'disk' } }],
      },
    };
    await admin.create(pods, pod, signal);
    const { metadata, spec } = await volumeOf('disk');
    const path = spec?.local?.path ?? '';
    expect(path).toBe(join(localPath, metadata.name ?? ''));
    await eventually(async () => {
      const { spec: placed } = (await admin.get(pods, 'default', 'p', signal)) as { spec?: { nodeName?: string } };
      expect(placed?.nodeName).toBe('a');
    });
    use(path);
    await admin.delete(pods, 'default', 'p', signal, { gracePeriodSeconds: 0 });
    await goes('disk', path);
  });
});
