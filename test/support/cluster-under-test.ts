import type { KubeObject } from '../../src/api/meta.ts';
import { Scheduler } from '../../src/cluster/scheduler/scheduler.ts';
import type { Env } from '../../src/env/ports.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { Client } from '../../src/kube/client.ts';
import { EventRecorder } from '../../src/kube/event-recorder.ts';
import { InProcessTransport } from '../../src/kube/in-process-transport.ts';
import { HttpsTransport } from '../../src/kube/https-transport.ts';
import { Informer } from '../../src/kube/informer.ts';
import { systemKubeconfigPorts } from '../../src/kube/kubeconfig-system.ts';
import { loadKubeconfig } from '../../src/kube/kubeconfig.ts';
import type { Resource } from '../../src/kube/resource.ts';
import type { Service } from '../../src/kube/service.ts';
import { InProcessApi } from './in-process.ts';

/** The kubeconfig of some other cluster to test instead: shows that the suites ask for what Kubernetes does. */
const REFERENCE = process.env['GODWIT_TEST_KUBECONFIG'];

/**
 * A cluster with its loops running: a fresh one in this process, unless another is asked for. Suites speak to it through
 * its API alone, and leave room for what else may be in it.
 */
export class ClusterUnderTest {
  readonly client: Client;
  /** Aborted when the cluster is stopped. */
  readonly signal: AbortSignal;
  readonly #stop: () => Promise<void>;

  private constructor(client: Client, signal: AbortSignal, stop: () => Promise<void>) {
    this.client = client;
    this.signal = signal;
    this.#stop = stop;
  }

  static async start(): Promise<ClusterUnderTest> {
    return REFERENCE === undefined ? ClusterUnderTest.#startHere() : ClusterUnderTest.#reach(REFERENCE);
  }

  static async #reach(path: string): Promise<ClusterUnderTest> {
    const access = await loadKubeconfig({ ports: systemKubeconfigPorts(realClock, process.env), path });
    const transport = new HttpsTransport({ access, env: { clock: realClock, random: realRandom } });
    const stopping = new AbortController();
    return new ClusterUnderTest(new Client(transport, 'godwit-test'), stopping.signal, async () => {
      stopping.abort();
      transport.close();
    });
  }

  static async #startHere(): Promise<ClusterUnderTest> {
    const api = await InProcessApi.start();
    const clientOf = (user: string, ...groups: string[]) =>
      new Client(new InProcessTransport((request) => api.core.handle(request), { user, groups }), user);
    const stopping = new AbortController();
    const { signal } = stopping;
    const services = schedulerServices(api.env, clientOf('system:kube-scheduler'));
    const running = Promise.all(services.map((service) => service.run(signal)));
    const admin = clientOf('kubernetes-admin', 'system:masters');
    return new ClusterUnderTest(admin, signal, async () => {
      stopping.abort();
      await running;
      await api.stop();
    });
  }

  async stop(): Promise<void> {
    await this.#stop();
  }
}

/** The scheduler and what it needs, to be run together. */
export function schedulerServices(env: Env, client: Client): Service[] {
  const informer = (plural: string, kind: string, group = '', namespaced = true) =>
    new Informer({ client, env, resource: resource(plural, kind, group, namespaced) });
  const informers = {
    pods: informer('pods', 'Pod'),
    nodes: informer('nodes', 'Node', '', false),
    namespaces: informer('namespaces', 'Namespace', '', false),
    persistentVolumeClaims: informer('persistentvolumeclaims', 'PersistentVolumeClaim'),
    persistentVolumes: informer('persistentvolumes', 'PersistentVolume', '', false),
    storageClasses: informer('storageclasses', 'StorageClass', 'storage.k8s.io', false),
    podDisruptionBudgets: informer('poddisruptionbudgets', 'PodDisruptionBudget', 'policy'),
  };
  const recorder = new EventRecorder({ client, env, component: 'default-scheduler' });
  return [...Object.values(informers), recorder, new Scheduler({ env, client, recorder, informers })];
}

/** A resource of version v1. */
export function resource<T extends KubeObject>(
  plural: string,
  kind: string,
  group = '',
  namespaced = true,
): Resource<T> {
  return { group, version: 'v1', plural, kind, namespaced };
}
