import { setImmediate as turn } from 'node:timers/promises';
import { clusterServices } from '../../src/cluster/cluster.ts';
import { controlServices } from '../../src/control/control.ts';
import { install, installation } from '../../src/control/installation/install.ts';
import { CONTROLLER_IDENTITY } from '../../src/control/installation/rights.ts';
import type { VirtualMachine } from '../../src/api/kubevirt/virtual-machine.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { ModelHost } from '../../src/hypervisor/model/model-host.ts';
import type { KubeObject } from '../../src/api/meta.ts';
import { Informer } from '../../src/kube/informer.ts';
import type { Node } from '../../src/migration/fit/objects.ts';
import { Client } from '../../src/kube/client.ts';
import { InProcessTransport, type LocalIdentity } from '../../src/kube/in-process-transport.ts';
import { virtualMachineInstances, virtualMachines } from '../../src/kube/kubevirt-resources.ts';
import { Manager } from '../../src/kube/manager.ts';
import { KubeMetrics } from '../../src/kube/metrics.ts';
import type { Service } from '../../src/kube/service.ts';
import type { Transport } from '../../src/kube/transport.ts';
import { nodes } from '../../src/cluster/resources.ts';
import { ModelDisk } from '../../src/simulation/model-disk.ts';
import { agentServices, type ModelNode, nodeIdentity } from '../../src/simulation/model-node.ts';
import { InProcessApi } from '../../test/support/in-process.ts';
import { report, rounded } from '../figures.ts';

/**
 * Ten thousand machines on a thousand nodes: the API server (its disk in memory), the cluster's loops, the controllers and
 * all agents are the real ones, in this one process; the machines are models, which cost nothing and boot at once. So
 * this is what everything but QEMU costs, on one core. A commit takes a turn of the event loop, as on any disk: on one
 * that took none, whoever is at work would stay at work, and leases would not be renewed in time.
 */

const NODE_COUNT = 1000;
const MACHINE_COUNT = 10_000;
const APPLIED_AT_ONCE = 100;
const ADMIN: LocalIdentity = { user: 'kubernetes-admin', groups: ['system:masters'] };
/** Written whether or not anything happens. */
const HEARTBEAT = /\/coordination\.k8s\.io\//;

export async function models(nodeCount = NODE_COUNT, machineCount = MACHINE_COUNT): Promise<void> {
  const api = await InProcessApi.start({ hasDefaultAccounts: true, engine: { delay: () => turn() } });
  const stopping = new AbortController();
  const writes = new Map<string, number>();
  const clientOf = (identity: LocalIdentity): Client =>
    new Client(counted(new InProcessTransport((request) => api.core.handle(request), identity), writes), 'bench');
  const admin = clientOf(ADMIN);
  await install(admin, realClock, installation({ ours: [], initial: [] }), stopping.signal);
  const { env } = api;
  const metrics = new KubeMetrics(env.clock);
  const running: Promise<void>[] = [];
  const run = (services: readonly Service[]): void =>
    void running.push(new Manager({ env }).add(...services).run(stopping.signal));
  run(clusterServices({ env, clientOf, metrics }));
  run(controlServices({ env, metrics, client: clientOf(CONTROLLER_IDENTITY), launcherImage: 'model/launcher' }));
  const all = Array.from({ length: nodeCount }, (_, index) => modelNode(`node-${index}`));
  const registeredMs = performance.now();
  const nodeInformer = new Informer({ env, client: admin, resource: nodes });
  const guestInformer = new Informer({ env, client: admin, resource: virtualMachineInstances });
  const allReady = reached(nodeInformer, nodeCount, isReady);
  const allRun = reached(guestInformer, machineCount, ({ status }) => status?.phase === 'Running');
  run([nodeInformer, guestInformer]);
  for (const node of all) run(agentServices(node, env, clientOf(nodeIdentity(node.name))));
  await allReady;
  const of = `${machineCount} model VMs on ${nodeCount} nodes`;
  report('vm', { figure: `${nodeCount} agents, all nodes Ready`, value: secondsSince(registeredMs), unit: 's' });
  writes.clear();
  const before = process.cpuUsage();
  const startedMs = performance.now();
  await applyAll(admin, machineCount, stopping.signal);
  report('vm', { figure: `${of}, all applied`, value: secondsSince(startedMs), unit: 's' });
  await allRun;
  const seconds = secondsSince(startedMs);
  const { user, system } = process.cpuUsage(before);
  const executing = all.flatMap(({ host }) => [...host.alive]).filter(({ isExecuting }) => isExecuting).length;
  report('vm', { figure: `${of}, all Running`, value: seconds, unit: 's', executing });
  report('vm', { figure: `${of}, processor time per VM`, value: (user + system) / 1000 / machineCount, unit: 'ms' });
  reportWrites(of, writes, machineCount);
  stopping.abort();
  await Promise.allSettled(running);
  await api.stop();
}

function modelNode(name: string): ModelNode {
  const env = { clock: realClock, random: realRandom };
  return {
    name,
    host: new ModelHost({ env, traits: { bootMs: 0 } }),
    disk: new ModelDisk({ ...env, delayMs: () => 0, fault: () => undefined }),
  };
}

/** Counts what is written, by what it is. */
function counted(inner: Transport, writes: Map<string, number>): Transport {
  return {
    send(request) {
      if (request.method !== 'GET' && !HEARTBEAT.test(request.path)) {
        const [, resource = '', subresource = ''] =
          /^\/apis?\/(?:[^/]+\/)?v[^/]+\/(?:namespaces\/[^/]+\/)?([^/?]+)(?:\/[^/?]+(\/[^/?]+)?)?/.exec(request.path) ??
          [];
        const what = `${request.method} ${resource}${subresource}`;
        writes.set(what, (writes.get(what) ?? 0) + 1);
      }
      return inner.send(request);
    },
    close: () => inner.close(),
  };
}

async function applyAll(client: Client, count: number, signal: AbortSignal): Promise<void> {
  let next = 0;
  const apply = async (): Promise<void> => {
    while (next < count) {
      const name = `model-${next++}`;
      const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
      const machine = {
        apiVersion: 'kubevirt.io/v1',
        kind: 'VirtualMachine',
        metadata: { name, namespace: 'default' },
        spec: { runStrategy: 'Always', template },
      };
      await client.create(virtualMachines, machine as VirtualMachine, signal);
    }
  };
  await Promise.all(Array.from({ length: APPLIED_AT_ONCE }, apply));
}

/** Resolves when so many objects are as they should be. */
function reached<T extends KubeObject>(informer: Informer<T>, count: number, isThere: (object: T) => boolean) {
  const there = new Set<string>();
  return new Promise<void>((resolve) => {
    informer.onChange(({ object }) => {
      if (isThere(object)) there.add(object.metadata.uid ?? '');
      if (there.size === count) resolve();
    });
  });
}

function isReady(node: Node): boolean {
  const { conditions = [] } = (node.status ?? {}) as { conditions?: { type: string; status: string }[] };
  return conditions.some(({ type, status }) => type === 'Ready' && status === 'True');
}

function reportWrites(of: string, writes: ReadonlyMap<string, number>, machines: number): void {
  const sorted = [...writes].sort(([, a], [, b]) => b - a);
  const total = sorted.reduce((sum, [, count]) => sum + count, 0);
  const each = Object.fromEntries(sorted.map(([what, count]) => [what, rounded(count / machines)]));
  report('vm', { figure: `${of}, API writes per VM`, value: total / machines, unit: 'writes', ...each });
}

const secondsSince = (ms: number): number => (performance.now() - ms) / 1000;
