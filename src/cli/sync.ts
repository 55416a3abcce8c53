import { isIPv6 } from 'node:net';
import { hostname } from 'node:os';
import { resolve } from 'node:path';
import { SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import type { KubeObject } from '../api/meta.ts';
import { type Env, sleep } from '../env/ports.ts';
import { Client } from '../kube/client.ts';
import type { ClusterAccess } from '../kube/cluster-access.ts';
import { errorText } from '../kube/error-text.ts';
import { HttpsTransport } from '../kube/https-transport.ts';
import { systemKubeconfigPorts } from '../kube/kubeconfig-system.ts';
import { loadKubeconfig } from '../kube/kubeconfig.ts';
import { kubeVirts } from '../kube/kubevirt-resources.ts';
import { LeaderElector } from '../kube/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import { KubeMetrics } from '../kube/metrics.ts';
import type { Resource } from '../kube/resource.ts';
import { SYNCHRONIZATION_LEASE } from '../sync/rights.ts';
import { synchronizationServices } from '../sync/synchronization.ts';
import { SYNCHRONIZATION_PORT } from '../sync/wire/address.ts';
import { HealthServer } from './health-server.ts';
import { ownAddress } from './own-address.ts';
import { takeDirectory } from './take-directory.ts';
import type { ListenAddress } from './up.ts';

/** `godwit sync`: the synchronization controller of a cluster, until a signal. Of several one works, and the others wait. */

export interface SyncOptions {
  readonly kubeconfig: string;
  /** Which it holds while it runs, so that there is one of it on this machine. */
  readonly dataDir?: string;
  /** Where other clusters dial in; all addresses where absent, on the port that the configuration says. */
  readonly listen?: ListenAddress;
  /** Where they reach it, as host and port; the address that the API server sees where absent. */
  readonly advertise?: readonly string[];
  /** Where health and metrics are served; nowhere where absent. */
  readonly metrics?: ListenAddress;
}

/** As KubeVirt's signs what it writes. */
const FIELD_MANAGER = 'virt-synchronization-controller';
const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::']);
const RETRY_MS = 1000;

const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };

/** Connects to the cluster, stands for its lease, and works while it has it; ends at SIGTERM or SIGINT. */
export async function sync(options: SyncOptions, env: Env, print: (line: string) => void): Promise<void> {
  const stopping = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stopping.abort());
  const directory = options.dataDir === undefined ? undefined : resolve(options.dataDir);
  const lock = directory === undefined ? undefined : takeDirectory(directory, env.clock.now());
  // Waiting for others does not keep a process from ending.
  const alive = env.clock.setTimer(() => undefined, Number.MAX_SAFE_INTEGER);
  try {
    const ports = systemKubeconfigPorts(env.clock, process.env);
    const access = await loadKubeconfig({ path: resolve(options.kubeconfig), ports });
    await work({ options, env, access, identity: identityOf(directory, env), print }, stopping.signal);
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  } finally {
    alive.cancel();
    lock?.release();
  }
}

interface Work {
  readonly options: SyncOptions;
  readonly env: Env;
  readonly access: ClusterAccess;
  readonly identity: string;
  readonly print: (line: string) => void;
}

async function work({ options, env, access, identity, print }: Work, signal: AbortSignal): Promise<void> {
  const metrics = new KubeMetrics(env.clock);
  const transport = metrics.metered(new HttpsTransport({ access, env }), new URL(access.server).host);
  const client = new Client(transport, FIELD_MANAGER);
  const cluster = await persistently(env, signal, () => factsOf(client, signal));
  const { host, port } = options.listen ?? { host: '0.0.0.0', port: cluster.port };
  const reached = WILDCARDS.has(host) ? await ownAddress(access.server) : host;
  const addresses = (bound: number): readonly string[] =>
    options.advertise ?? [isIPv6(reached) ? `[${reached}]:${bound}` : `${reached}:${bound}`];
  const lease = { namespace: SYSTEM_NAMESPACE, name: SYNCHRONIZATION_LEASE };
  const elector = new LeaderElector({ client, env, ...lease, identity, metrics });
  const services = synchronizationServices({
    env,
    client,
    metrics,
    clusterId: cluster.id,
    listen: { host, port },
    addresses,
  });
  const health = options.metrics ? [new HealthServer({ ...options.metrics, metrics: () => metrics.render() })] : [];
  print(`Synchronizing migrations of ${access.server}, which is the cluster ${cluster.id}.`);
  await new Manager({ env, name: 'synchronization', elector }).add(...health, ...services).run(signal);
}

/**
 * Nobody else has it. Who holds a directory is alone in having it, and need not wait for a lease that its former self has left
 * behind; others cannot know.
 */
function identityOf(directory: string | undefined, env: Env): string {
  return `${hostname()}_${directory ?? env.random.uuid()}`;
}

/** What has to be known of a cluster before anything: what others know it by, and on which port they expect us. */
async function factsOf(client: Client, signal: AbortSignal): Promise<{ readonly id: string; readonly port: number }> {
  const { metadata }: KubeObject = await client.get(namespaces, '', 'kube-system', signal);
  const [configuration] = (await client.list(kubeVirts, {}, signal)).items;
  return { id: metadata.uid ?? '', port: Number(configuration?.spec.synchronizationPort ?? SYNCHRONIZATION_PORT) };
}

/** The API server may come up later than we do. */
async function persistently<T>(env: Env, signal: AbortSignal, ask: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      signal.throwIfAborted();
      env.log.warn('the cluster does not answer', { error: errorText(error) });
      await sleep(env.clock, RETRY_MS, signal);
    }
  }
}
