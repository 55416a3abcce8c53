import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { AGENT_KEYS_ANNOTATION, agentKeysOf } from '../../src/api/kubevirt/agent-keys.ts';
import { nodeLifecycleLoop } from '../../src/cluster/node-lifecycle/loop.ts';
import { Client } from '../../src/kube/client.ts';
import { InProcessTransport } from '../../src/kube/in-process-transport.ts';
import { leaseResource } from '../../src/kube/leader-lease.ts';
import { Manager } from '../../src/kube/manager.ts';
import type { NodeProfile } from '../../src/node/registration/node-object.ts';
import {
  type NodeRegistration,
  nodeResource,
  registrationServices,
} from '../../src/node/registration/node-registration.ts';
import { LoopsInTime } from '../support/loops-in-time.ts';
import { PLENTY, PROFILE, TestHost } from './host.ts';

/** How an agent keeps its Node, beside the cluster's own loop that watches over nodes. */

const GIBIBYTE = 2 ** 30;

let cluster: LoopsInTime;
let host: TestHost;
let port: number | undefined;
let keys: readonly string[];
let registration: NodeRegistration;
let writes: string[];
let stopAgent: () => Promise<void> = async () => undefined;

beforeEach(async () => {
  cluster = await LoopsInTime.start(nodeLifecycleLoop);
  host = new TestHost();
  [port, keys] = [undefined, []];
  writes = [];
});
afterEach(async () => {
  await stopAgent();
  await cluster.stop();
});

async function startAgent(profile: Partial<NodeProfile> = {}): Promise<void> {
  const identity = { user: 'system:node:n1', groups: ['system:nodes'] };
  const transport = new InProcessTransport(cluster.api.core.handle.bind(cluster.api.core), identity);
  const recording = {
    send: (request: Parameters<typeof transport.send>[0]) => {
      if (request.method !== 'GET') writes.push(`${request.method} ${request.path.split('?')[0]}`);
      return transport.send(request);
    },
    close: () => transport.close(),
  };
  const made = registrationServices({
    env: cluster.env,
    client: new Client(recording, 'agent'),
    host,
    profile: { ...PROFILE, ...profile },
    dataDirectory: '/data',
    port: () => port,
    agentKeys: () => keys,
  });
  registration = made.registration;
  const halt = new AbortController();
  const ended = new Manager({ env: cluster.env, name: 'agent' }).add(...made.services).run(halt.signal);
  // Who waits for its end hears of its failure.
  ended.catch(() => undefined);
  stopAgent = async () => {
    halt.abort();
    await ended;
    stopAgent = async () => undefined;
  };
  await cluster.pass(3000, 500);
}

const readNode = () => cluster.client.get(nodeResource, '', 'n1', cluster.signal);
const readLease = () => cluster.client.get(leaseResource, 'kube-node-lease', 'n1', cluster.signal);
async function condition(type: string) {
  return (await readNode()).status?.conditions?.find((each) => each.type === type);
}

describe('a node', () => {
  it('says what it is and what it has', async () => {
    port = 10250;
    await startAgent();
    const node = await readNode();
    expect(node.metadata).toMatchObject({
      labels: {
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        'kubernetes.io/hostname': 'n1',
        'godwit.dev/guests-only': 'true',
        'kubevirt.io/schedulable': 'true',
        'godwit.dev/accelerator': 'tcg',
        'cpu-model.node.kubevirt.io/Nehalem': 'true',
        'cpu-model-migration.node.kubevirt.io/Nehalem': 'true',
        'cpu-feature.node.kubevirt.io/sse4.1': 'true',
        'cpu-vendor.node.kubevirt.io/AMD': 'true',
        'host-model-cpu.node.kubevirt.io/Nehalem': 'true',
        'host-model-required-features.node.kubevirt.io/aes': 'true',
        'machine-type.node.kubevirt.io/q35': 'true',
      },
      annotations: {
        'godwit.dev/local-storage-path': '/data/volumes',
        'kubevirt.io/heartbeat': expect.stringMatching(/Z$/),
      },
    });
    expect(Object.keys(node.metadata.labels ?? {})).not.toContain('cpu-feature.node.kubevirt.io/-odd-');
    expect(node.status).toMatchObject({
      capacity: {
        cpu: '4',
        memory: '8Gi',
        pods: '110',
        'devices.kubevirt.io/kvm': '0',
        'devices.kubevirt.io/tun': '1k',
        'devices.kubevirt.io/vhost-net': '0',
      },
      allocatable: { memory: '8092Mi', 'ephemeral-storage': '90Gi' },
      addresses: PROFILE.addresses,
      nodeInfo: { kubeletVersion: 'v0.1.0+godwit', containerRuntimeVersion: 'qemu://7.2.1', bootID: 'boot' },
      daemonEndpoints: { kubeletEndpoint: { Port: 10250 } },
    });
    expect(node.status?.conditions?.map(({ type, status }) => `${type}=${status}`).toSorted()).toEqual([
      'DiskPressure=False',
      'MemoryPressure=False',
      'PIDPressure=False',
      'Ready=True',
    ]);
    expect(node.spec?.taints ?? []).toEqual([]);
    expect(registration.uid).toBe(node.metadata.uid);
    // The first one may have come before the Node.
    await cluster.pass(10_000, 5_000);
    const { metadata, spec } = await readLease();
    expect(metadata.ownerReferences).toEqual([{ apiVersion: 'v1', kind: 'Node', name: 'n1', uid: node.metadata.uid }]);
    expect(spec).toMatchObject({ holderIdentity: 'n1', leaseDurationSeconds: 40 });
  });

  it('of a kubelet is not made, and only told that it takes guests', async () => {
    port = 9186;
    await startAgent({ hasKubelet: true });
    expect(writes).toEqual([]);
    const metadata = { name: 'n1', labels: { 'kubernetes.io/os': 'linux' } };
    await cluster.client.create(nodeResource, { apiVersion: 'v1', kind: 'Node', metadata }, cluster.signal);
    await cluster.pass(20_000, 1000);
    const node = await readNode();
    expect(node.metadata).toMatchObject({
      labels: { 'kubevirt.io/schedulable': 'true', 'godwit.dev/accelerator': 'tcg' },
      annotations: { 'godwit.dev/agent-port': '9186', 'kubevirt.io/heartbeat': expect.stringMatching(/Z$/) as string },
    });
    expect(Object.keys(node.metadata.labels ?? {})).not.toContain('godwit.dev/guests-only');
    await registration.registered;
    // Its status and its lease are the kubelet's.
    expect([...new Set(writes)]).toEqual(['PATCH /api/v1/nodes/n1']);
    expect(node.status?.capacity).toBeUndefined();
  });

  it('has the taints that it is to be registered with, which are others’ from then on', async () => {
    const taints = [{ key: 'godwit.dev/guests-only', value: 'true', effect: 'NoSchedule' }];
    await startAgent({ taints });
    expect((await readNode()).spec?.taints).toEqual(taints);
    await cluster.client.patch(
      nodeResource,
      '',
      'n1',
      { type: 'merge', body: { spec: { taints: null } } },
      cluster.signal,
    );
    await cluster.pass(20_000, 1000);
    expect((await readNode()).spec?.taints ?? []).toEqual([]);
  });

  it('may promise less than its host has, and has KVM where that works', async () => {
    await startAgent({ accelerator: 'kvm', share: { cpus: 1.5, memoryBytes: GIBIBYTE } });
    expect((await readNode()).status?.capacity).toMatchObject({
      cpu: '1500m',
      memory: '1Gi',
      'devices.kubevirt.io/kvm': '1k',
    });
  });

  it('is alive by its lease, and writes little else', async () => {
    // Amounts that servers write in other words: they are no change.
    await startAgent({ share: { cpus: 0.5, memoryBytes: 1024 * GIBIBYTE, pods: 1000 } });
    writes.length = 0;
    await cluster.pass(230_000, 5_000);
    const others = writes.filter((write) => !write.includes('/leases/'));
    expect(writes.length - others.length).toBeGreaterThanOrEqual(22);
    expect(writes.length - others.length).toBeLessThanOrEqual(26);
    expect(others).toEqual([]);
    await cluster.pass(130_000, 5_000);
    // One heartbeat of KubeVirt's, one of Kubernetes'.
    expect(writes.filter((write) => !write.includes('/leases/'))).toEqual([
      'PATCH /api/v1/nodes/n1',
      'PATCH /api/v1/nodes/n1/status',
    ]);
  });

  it('tells its port as soon as it has one', async () => {
    await startAgent();
    expect((await readNode()).status?.daemonEndpoints?.kubeletEndpoint?.Port ?? 0).toBe(0);
    port = 4711;
    registration.refresh();
    await cluster.pass(1000);
    expect((await readNode()).status?.daemonEndpoints?.kubeletEndpoint?.Port).toBe(4711);
  });

  it('tells by which keys its agent is known, as soon as they change', async () => {
    await startAgent();
    expect((await readNode()).metadata.annotations).not.toHaveProperty(AGENT_KEYS_ANNOTATION);
    const [first, second] = ['a', 'b'].map((each) => `${each.repeat(43)}=`);
    for (const told of [[first], [second, first], [second]] as string[][]) {
      keys = told;
      registration.refresh();
      await cluster.pass(2000, 500);
      expect(agentKeysOf((await readNode()).metadata.annotations)).toEqual(told);
    }
    writes.length = 0;
    await cluster.pass(20_000, 1000);
    expect(writes.filter((write) => write.endsWith('/nodes/n1'))).toEqual([]);
  });

  it('leaves alone what others say of it', async () => {
    await startAgent();
    const taints = [{ key: 'team', value: 'red', effect: 'NoSchedule' }];
    const metadata = { labels: { team: 'red', 'kubevirt.io/schedulable': 'false' } };
    const body = { metadata, spec: { unschedulable: true, taints } };
    await cluster.client.patch(nodeResource, '', 'n1', { type: 'merge', body }, cluster.signal);
    const conditions = [{ type: 'DrainBlocked', status: 'True', reason: 'Test', message: '' }];
    await cluster.client.patch(
      nodeResource,
      '',
      'n1',
      { type: 'strategic', body: { status: { conditions, capacity: { 'example.com/gpu': '1' } } } },
      cluster.signal,
      { subresource: 'status' },
    );
    host.usageNow = { ...PLENTY, memoryAvailableBytes: 0 };
    await cluster.pass(15_000, 1000);
    const node = await readNode();
    expect(node.metadata.labels).toMatchObject({ team: 'red', 'kubevirt.io/schedulable': 'true' });
    expect(node.spec?.unschedulable).toBe(true);
    expect(node.spec?.taints?.map(({ key }) => key)).toEqual(expect.arrayContaining(['team']));
    expect(node.status?.capacity).toMatchObject({ 'example.com/gpu': '1' });
    expect(await condition('DrainBlocked')).toMatchObject({ status: 'True' });
    expect(await condition('MemoryPressure')).toMatchObject({ status: 'True', reason: 'InsufficientMemory' });
  });

  it('takes back labels that hold no more, and no others', async () => {
    await startAgent();
    await stopAgent();
    await startAgent({
      capabilities: { ...PROFILE.capabilities, cpuModels: ['Penryn'] } as NodeProfile['capabilities'],
    });
    const labels = (await readNode()).metadata.labels ?? {};
    expect(Object.keys(labels)).toContain('cpu-model.node.kubevirt.io/Penryn');
    expect(Object.keys(labels)).not.toContain('cpu-model.node.kubevirt.io/Nehalem');
    expect(Object.keys(labels)).toContain('beta.kubernetes.io/os');
  });

  it('is not ready while its data directory cannot be used, and is again afterwards', async () => {
    await startAgent();
    host.usageNow = new Error('EIO');
    await cluster.pass(15_000, 1000);
    expect(await condition('Ready')).toMatchObject({ status: 'False', message: expect.stringContaining('EIO') });
    expect((await readNode()).metadata.labels?.['kubevirt.io/schedulable']).toBe('false');
    host.usageNow = PLENTY;
    await cluster.pass(15_000, 1000);
    expect(await condition('Ready')).toMatchObject({ status: 'True' });
  });

  it('is not ready while its disk hangs, and does not pile up questions', async () => {
    await startAgent();
    let answer: (usage: typeof PLENTY) => void = () => undefined;
    host.usageNow = new Promise((resolve) => (answer = resolve));
    const before = host.asked;
    await cluster.pass(120_000, 1000);
    expect(host.asked).toBe(before + 1);
    expect(await condition('Ready')).toMatchObject({
      status: 'False',
      message: expect.stringMatching(/^the data directory cannot be used: .*longer than/),
    });
    host.usageNow = PLENTY;
    answer(PLENTY);
    await cluster.pass(15_000, 1000);
    expect(await condition('Ready')).toMatchObject({ status: 'True' });
  });

  it('comes back after it was given up for lost', async () => {
    await startAgent();
    const { uid } = (await readNode()).metadata;
    await stopAgent();
    await cluster.pass(120_000, 5_000);
    expect(await condition('Ready')).toMatchObject({ status: 'Unknown' });
    await startAgent();
    await cluster.pass(10_000, 1_000);
    expect(await condition('Ready')).toMatchObject({ status: 'True' });
    const node = await readNode();
    expect(node.metadata.uid).toBe(uid);
    expect(node.spec?.taints ?? []).toEqual([]);
  });

  it('registers again when its object was deleted, and its lease follows', async () => {
    await startAgent();
    const { uid } = (await readNode()).metadata;
    await cluster.client.delete(nodeResource, '', 'n1', cluster.signal);
    await cluster.pass(15_000, 1000);
    const node = await readNode();
    expect(node.metadata.uid).not.toBe(uid);
    expect(registration.uid).toBe(node.metadata.uid);
    expect((await readLease()).metadata.ownerReferences?.[0]?.uid).toBe(node.metadata.uid);
    expect(await condition('Ready')).toMatchObject({ status: 'True' });
  });

  it('is refused to a second agent of its name, and left as it is', async () => {
    await startAgent({ agentId: 'first' });
    await stopAgent();
    const { metadata } = await readNode();
    expect(metadata.annotations).toMatchObject({ 'godwit.dev/agent': 'first' });
    writes = [];
    await startAgent({ agentId: 'second', localStoragePath: '/elsewhere' });
    await expect(stopAgent()).rejects.toThrow(
      "node n1 is another agent's, with a data directory of its own: give this one another name, " +
        "or, when that one is gone for good and none of its guests runs, 'kubectl delete node n1'",
    );
    stopAgent = async () => undefined;
    // Neither its object nor its lease: a node that is gone must not seem to live.
    expect(writes).toEqual([]);
    expect((await readNode()).metadata).toEqual(metadata);
    await startAgent({ agentId: 'first' });
    expect(await condition('Ready')).toMatchObject({ status: 'True' });
  });

  it('becomes the own of an agent where none has said whose it is, and is not taken back', async () => {
    await startAgent();
    await stopAgent();
    await startAgent({ agentId: 'first' });
    const claimed = (await readNode()).metadata;
    expect(claimed.annotations).toMatchObject({ 'godwit.dev/agent': 'first' });
    const body = { metadata: { annotations: { 'godwit.dev/agent': 'second' } } };
    await cluster.client.patch(nodeResource, '', 'n1', { type: 'merge', body }, cluster.signal);
    await cluster.pass(15_000, 1000);
    // The first goes on with its guests, and takes nothing back.
    expect((await readNode()).metadata.annotations).toMatchObject({ 'godwit.dev/agent': 'second' });
  });
});
