import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { KubeObject } from '../../src/api/meta.ts';
import { clusterServices, inProcessClients } from '../../src/cluster/cluster.ts';
import { realClock, realRandom } from '../../src/env/real.ts';
import { Client } from '../../src/kube/client.ts';
import { InProcessTransport } from '../../src/kube/in-process-transport.ts';
import { HttpsTransport } from '../../src/kube/https-transport.ts';
import { systemKubeconfigPorts } from '../../src/kube/kubeconfig-system.ts';
import { loadKubeconfig } from '../../src/kube/kubeconfig.ts';
import { Manager } from '../../src/kube/manager.ts';
import { KubeMetrics } from '../../src/kube/metrics.ts';
import type { Resource } from '../../src/kube/resource.ts';
import { HERE } from './godwit.ts';
import { InProcessApi } from './in-process.ts';
import { ControlPlane } from './kubernetes/control-plane.ts';
import { givenCluster } from './kubernetes/foreign-cluster.ts';
import { FOREIGN_KUBECONFIG, IS_KUBERNETES } from './kubernetes/wanted.ts';

/**
 * A cluster with its loops running: a fresh one in this process, unless another is asked for; or a fresh Kubernetes. Suites speak to it through
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
    if ((await givenCluster()) !== undefined) return ClusterUnderTest.#reach(FOREIGN_KUBECONFIG ?? '');
    return IS_KUBERNETES ? ClusterUnderTest.#startKubernetes() : ClusterUnderTest.#startHere();
  }

  static async #startKubernetes(): Promise<ClusterUnderTest> {
    const directory = mkdtempSync(join(tmpdir(), 'godwit-test-'));
    const plane = await ControlPlane.startIn(directory, HERE);
    const path = join(directory, 'kubeconfig');
    writeFileSync(path, plane.kubeconfig);
    return ClusterUnderTest.#reach(path, () => plane.stop());
  }

  static async #reach(path: string, then = async (): Promise<void> => undefined): Promise<ClusterUnderTest> {
    const access = await loadKubeconfig({ ports: systemKubeconfigPorts(realClock, process.env), path });
    const transport = new HttpsTransport({ access, env: { clock: realClock, random: realRandom } });
    const stopping = new AbortController();
    return new ClusterUnderTest(new Client(transport, 'godwit-test'), stopping.signal, async () => {
      stopping.abort();
      transport.close();
      await then();
    });
  }

  static async #startHere(): Promise<ClusterUnderTest> {
    const api = await InProcessApi.start({ hasDefaultAccounts: true });
    const handle = api.core.handle.bind(api.core);
    const clientOf = inProcessClients(handle);
    const stopping = new AbortController();
    const { signal } = stopping;
    const { env } = api;
    const manager = new Manager({ env, name: 'cluster' });
    manager.add(...clusterServices({ env, clientOf, metrics: new KubeMetrics(env.clock) }));
    const running = manager.run(signal);
    const transport = new InProcessTransport(handle, { user: 'kubernetes-admin', groups: ['system:masters'] });
    const admin = new Client(transport, 'godwit-test');
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

/** A resource of version v1. */
export function resource<T extends KubeObject>(
  plural: string,
  kind: string,
  group = '',
  namespaced = true,
): Resource<T> {
  return { group, version: 'v1', plural, kind, namespaced };
}
