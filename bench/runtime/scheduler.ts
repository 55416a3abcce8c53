import { clusterServices } from '../../src/cluster/cluster.ts';
import { pods } from '../../src/cluster/resources.ts';
import { Budgets } from '../../src/cluster/scheduler/budgets.ts';
import { decide } from '../../src/cluster/scheduler/decide.ts';
import { schedulerLoop } from '../../src/cluster/scheduler/loop.ts';
import { Nominations } from '../../src/cluster/scheduler/nominations.ts';
import { seededRandom } from '../../src/env/test.ts';
import { Client } from '../../src/kube/client.ts';
import { InProcessTransport, type LocalIdentity } from '../../src/kube/in-process-transport.ts';
import { Manager } from '../../src/kube/manager.ts';
import { KubeMetrics } from '../../src/kube/metrics.ts';
import { ClusterState } from '../../src/migration/fit/cluster-state.ts';
import { nodeInfoOf } from '../../src/migration/fit/node-state.ts';
import type { Container, Node, Pod, PodSpec } from '../../src/migration/fit/objects.ts';
import { podInfoOf } from '../../src/migration/fit/pod-info.ts';
import { InProcessApi } from '../../test/support/in-process.ts';
import { median, report } from '../figures.ts';

const NODE_COUNT = 1000;
const POD_COUNT = 2000;
const ROUNDS = 3;
const ZONE_COUNT = 10;
const IDENTITY = { user: 'system:kube-scheduler', groups: [] };

const labelSelector = { matchLabels: { app: 'web' } };

/** Kinds of pods, by what they ask for beside cpu and memory. */
const KINDS: { readonly [kind: string]: PodSpec } = {
  'plain pods': {},
  'pods spread over zones and nodes': {
    topologySpreadConstraints: [
      { maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'DoNotSchedule', labelSelector },
      { maxSkew: 1, topologyKey: 'kubernetes.io/hostname', whenUnsatisfiable: 'ScheduleAnyway', labelSelector },
    ],
  },
  'pods with preferred anti-affinity': {
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          { weight: 100, podAffinityTerm: { topologyKey: 'kubernetes.io/hostname', labelSelector } },
        ],
      },
    },
  },
};

/** Pods scheduled per second on a thousand nodes, in processor time: the deciding alone, then with all that is written. */
export async function measureScheduler(): Promise<void> {
  for (const [kind, spec] of Object.entries(KINDS)) {
    const perSecond = median(Array.from({ length: ROUNDS }, () => decisionsPerSecond(spec)));
    const figure = `scheduling decisions for ${kind} on ${NODE_COUNT} nodes`;
    report('runtime', { figure, value: perSecond, unit: 'per second' });
  }
  const perSecond = await boundPerSecond();
  const figure = `pods scheduled on ${NODE_COUNT} nodes, API server and informers included`;
  report('runtime', { figure, value: perSecond, unit: 'per second' });
}

/** Pods that wait when the scheduler starts, until the last of them is seen to be bound. */
async function boundPerSecond(): Promise<number> {
  const api = await InProcessApi.start();
  for (let index = 0; index < NODE_COUNT; index++) {
    const { status, ...rest } = node(index);
    (await api.request('POST', '/api/v1/nodes', { body: rest })).expect(201);
    const path = `/api/v1/nodes/${rest.metadata.name}`;
    const headers = { 'content-type': 'application/merge-patch+json' };
    (await api.request('PATCH', `${path}/status`, { body: { status }, headers })).expect(200);
    // Nodes are taken for not ready when they are new, and nobody is there to say otherwise.
    (await api.request('PATCH', path, { body: { spec: { taints: null } }, headers })).expect(200);
  }
  for (let index = 0; index < POD_COUNT; index++) {
    (await api.request('POST', '/api/v1/namespaces/default/pods', { body: pod(index, {}) })).expect(201);
  }
  const clientOf = (identity: LocalIdentity) =>
    new Client(new InProcessTransport((request) => api.core.handle(request), identity), identity.user);
  const { env } = api;
  const metrics = new KubeMetrics(env.clock);
  const services = clusterServices({ env, clientOf, metrics, loops: [schedulerLoop] });
  const stopping = new AbortController();
  const before = process.cpuUsage();
  const running = new Manager({ env }).add(...services).run(stopping.signal);
  await allBound(clientOf(IDENTITY), stopping.signal);
  const { user, system } = process.cpuUsage(before);
  stopping.abort();
  await running;
  await api.stop();
  return POD_COUNT / ((user + system) / 1e6);
}

async function allBound(client: Client, signal: AbortSignal): Promise<void> {
  const bound = new Set<string>();
  for await (const { type, object } of await client.watch(pods, {}, signal)) {
    if (type !== 'ADDED' && type !== 'MODIFIED') continue;
    if (object.spec?.nodeName) bound.add(object.metadata.name ?? '');
    if (bound.size === POD_COUNT) return;
  }
  throw new Error('the watch ended');
}

function decisionsPerSecond(spec: PodSpec): number {
  const none = () => undefined;
  const cluster = new ClusterState({
    namespaceLabels: none,
    claim: none,
    volume: none,
    storageClass: none,
    unboundVolumes: () => [],
  });
  for (let index = 0; index < NODE_COUNT; index++) cluster.setNode(nodeInfoOf(node(index)));
  const view = { cluster, nominations: new Nominations(), budgets: new Budgets() };
  const random = seededRandom(1);
  const before = process.cpuUsage();
  for (let index = 0; index < POD_COUNT; index++) {
    const info = podInfoOf(pod(index, spec));
    const decision = decide(info, view, random);
    if (decision.type !== 'bind') throw new Error(decision.message);
    cluster.addPod(info, decision.node);
  }
  const { user, system } = process.cpuUsage(before);
  return POD_COUNT / ((user + system) / 1e6);
}

function node(index: number): Node {
  const name = `node-${index}`;
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: { 'kubernetes.io/hostname': name, zone: `zone-${index % ZONE_COUNT}` } },
    spec: {},
    status: { allocatable: { cpu: '32', memory: '64Gi', pods: '110' } },
  };
}

function pod(index: number, spec: PodSpec): Pod {
  const requests = { cpu: '100m', memory: '256Mi' };
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: `pod-${index}`, namespace: 'default', uid: `uid-${index}`, labels: { app: 'web' } },
    spec: { containers: [{ name: 'main', image: 'none', resources: { requests } } as Container], ...spec },
  };
}
