import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type ApiServer, startApiServer } from '../../src/apiserver/api-server.ts';
import { NodeCertificates } from '../../src/control/node-certificates/node-certificates.ts';
import { realDiskFiles } from '../../src/env/real-disk-files.ts';
import { realHost } from '../../src/env/real-host.ts';
import { realProcesses } from '../../src/env/real-processes.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { silentLogger } from '../../src/env/test.ts';
import { queryCapabilities } from '../../src/hypervisor/qemu/capabilities.ts';
import { Client } from '../../src/kube/client.ts';
import type { ClusterAccess } from '../../src/kube/cluster-access.ts';
import { EventRecorder } from '../../src/kube/event-recorder.ts';
import { HttpsTransport } from '../../src/kube/https-transport.ts';
import { loadKubeconfig } from '../../src/kube/kubeconfig.ts';
import { systemKubeconfigPorts } from '../../src/kube/kubeconfig-system.ts';
import { leaseResource } from '../../src/kube/leader-lease.ts';
import { Manager } from '../../src/kube/manager.ts';
import { SharedInformers } from '../../src/kube/shared-informers.ts';
import { joinCluster, servingCertificate } from '../../src/node/identity/join.ts';
import { nodeResource, registrationServices } from '../../src/node/registration/node-registration.ts';
import { AgentServer } from '../../src/node/server/agent-server.ts';
import type { SerialLog } from '../../src/node/guests/guest-access.ts';
import type { NodeAddress } from '../../src/node/registration/node-object.ts';
import { eventually } from '../support/eventually.ts';
import { HttpClient } from '../support/http-client.ts';

/** All of a node but its guests, wired as the agent wires it, against the API server as `godwit up` runs it. */

const env = { clock: realClock, random: realRandom, log: silentLogger };
const ports = systemKubeconfigPorts(realClock, {});
const NODE = 'n1';
const ADDRESSES: NodeAddress[] = [
  { type: 'InternalIP', address: '127.0.0.1' },
  { type: 'Hostname', address: NODE },
];
const halt = new AbortController();

let directory: string;
let server: ApiServer;
let admin: Client;
let http: HttpClient;
let running: Promise<unknown>;
const transports: HttpsTransport[] = [];
const logs: SerialLog[] = [];

function connect(access: ClusterAccess): Client {
  const transport = new HttpsTransport({ access, env });
  transports.push(transport);
  return new Client(transport, 'test');
}

async function accessFrom(name: string, kubeconfig: string): Promise<ClusterAccess> {
  const path = join(directory, name);
  writeFileSync(path, kubeconfig, { mode: 0o600 });
  return loadKubeconfig({ ports, path });
}

const unwanted = async (): Promise<never> => {
  throw new Error('nobody asked for this');
};

async function startNode(): Promise<void> {
  const { url } = server;
  const access = await accessFrom('admin', server.kubeconfig);
  const bootstrap: ClusterAccess = {
    ...access,
    credentials: async () => ({ authorization: 'Bearer abcdef.0123456789abcdef' }),
  };
  expect(bootstrap.server).toBe(url);
  const files = realDiskFiles;
  const pki = join(directory, 'pki');
  const identity = await joinCluster(
    {
      env,
      files,
      node: NODE,
      directory: pki,
      kubeconfigPath: join(directory, 'kubeconfig'),
      ownAccess: async () => undefined,
      bootstrap: { kind: 'access', access: bootstrap },
      connect,
    },
    halt.signal,
  );
  const { client } = identity;
  let agentServer: AgentServer | undefined;
  const { registration, services } = registrationServices({
    env,
    client,
    host: realHost,
    profile: {
      name: NODE,
      version: '0.0.0',
      accelerator: 'tcg',
      capabilities: await queryCapabilities(realProcesses, 'qemu-system-x86_64', 'tcg'),
      localStoragePath: directory,
      addresses: ADDRESSES,
    },
    dataDirectory: directory,
    port: () => agentServer?.port,
  });
  const certificate = await servingCertificate({
    env,
    files,
    node: NODE,
    directory: pki,
    addresses: ['127.0.0.1'],
    server: server.url,
    client,
    after: registration.registered,
  });
  agentServer = await AgentServer.listen({
    env,
    client,
    node: NODE,
    guests: {
      pause: unwanted,
      unpause: unwanted,
      softReboot: unwanted,
      reset: unwanted,
      guestInfo: unwanted,
      openConsole: unwanted,
      serialLogs: async () => logs,
      runs: unwanted,
    },
    certificate,
    clientAuthorities: () => identity.access.authorities(),
    metrics: async () => 'up 1\n',
    host: '127.0.0.1',
    port: 0,
  });
  const all = [
    ...services,
    certificate,
    agentServer,
    ...(identity.clientCertificate ? [identity.clientCertificate] : []),
  ];
  running = new Manager({ env, name: 'node' }).add(...all).run(halt.signal);
}

/** What approves nodes' certificates. */
function startControl(): Promise<unknown> {
  const informers = new SharedInformers({ client: admin, env });
  const recorder = new EventRecorder({ client: admin, env, component: 'test' });
  const approver = new NodeCertificates({ env, client: admin, informers, recorder });
  return new Manager({ env, name: 'control' }).add(...informers.all(), recorder, approver).run(halt.signal);
}

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'godwit-life-'));
  server = await startApiServer({ env, directory: join(directory, 'server'), host: '127.0.0.1', port: 0 });
  const access = await accessFrom('admin', server.kubeconfig);
  admin = connect(access);
  const { certificate = '', key = '' } = await access.credentials(halt.signal);
  http = new HttpClient({ url: server.url, ca: (await access.authorities()) ?? '', certificate, key });
  const stringData = {
    'token-id': 'abcdef',
    'token-secret': '0123456789abcdef',
    'usage-bootstrap-authentication': 'true',
  };
  const body = { metadata: { name: 'bootstrap-token-abcdef' }, type: 'bootstrap.kubernetes.io/token', stringData };
  (await http.request('POST', '/api/v1/namespaces/kube-system/secrets', { body })).expect(201);
  const control = startControl();
  await startNode();
  running = Promise.all([running, control]);
});

afterAll(async () => {
  halt.abort();
  await running;
  http.close();
  for (const transport of transports) transport.close();
  await server.stop();
  rmSync(directory, { recursive: true });
});

describe('a node', () => {
  it('joins with nothing but a token, and is ready, with all that QEMU can do', async () => {
    const node = await eventually(async () => {
      const found = await admin.get(nodeResource, '', NODE, halt.signal);
      expect(found.status?.conditions).toContainEqual(expect.objectContaining({ type: 'Ready', status: 'True' }));
      return found;
    });
    expect(node.metadata.labels).toMatchObject({
      'kubevirt.io/schedulable': 'true',
      'cpu-model.node.kubevirt.io/qemu64': 'true',
      'machine-type.node.kubevirt.io/q35': 'true',
    });
    await eventually(async () =>
      expect((await admin.get(leaseResource, 'kube-node-lease', NODE, halt.signal)).spec?.holderIdentity).toBe(NODE),
    );
  });

  it('serves what the API server asks for on behalf of people', async () => {
    const owner = {
      apiVersion: 'kubevirt.io/v1',
      kind: 'VirtualMachineInstance',
      name: 'web',
      uid: 'u',
      controller: true,
    };
    const body = {
      metadata: { name: 'launcher', ownerReferences: [owner] },
      spec: { nodeName: NODE, containers: [{ name: 'compute', image: 'i' }] },
    };
    const pod = (await http.request('POST', '/api/v1/namespaces/default/pods', { body })).expect(201).json;
    const path = join(directory, 'serial.log');
    writeFileSync(path, 'one\ntwo\n');
    logs.push({ podUID: pod.metadata.uid as string, path, isLive: false });
    const of = (query: string) => http.request('GET', `/api/v1/namespaces/default/pods/launcher/log${query}`);
    await eventually(async () => expect((await of('')).expect(200).text).toBe('one\ntwo\n'));
    expect((await of('?tailLines=1')).expect(200).text).toBe('two\n');
    expect((await of('?timestamps=true')).expect(400).json.message).toMatch(/^timestamps cannot be had/);
    const metrics = await http.request('GET', `/api/v1/nodes/${NODE}/proxy/metrics`);
    expect(metrics.expect(200).text).toBe('up 1\n');
  });
});
