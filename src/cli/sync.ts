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
import { LeaderElector } from '../kube/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import { KubeMetrics } from '../kube/metrics.ts';
import type { Resource } from '../kube/resource.ts';
import { SYNCHRONIZATION_LEASE } from '../sync/rights.ts';
import { synchronizationServices } from '../sync/synchronization.ts';
import { StreamMetrics } from '../sync/wire/stream-metrics.ts';
import { followPort } from './configured-port.ts';
import { HealthServer } from './health-server.ts';
import { ownAddress } from './own-address.ts';
import { addProcessMetrics } from './process-metrics.ts';
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

async function work(job: Work, signal: AbortSignal): Promise<void> {
  const { options, env, access, print } = job;
  const metrics = new KubeMetrics(env.clock);
  addProcessMetrics(metrics, 'synchronization');
  const transport = metrics.metered(new HttpsTransport({ access, env }), new URL(access.server).host);
  const client = new Client(transport, FIELD_MANAGER);
  const clusterId = await persistently(env, signal, () => clusterIdOf(client, signal));
  const tools = { ...job, client, metrics, streamMetrics: new StreamMetrics(metrics.registry), clusterId };
  print(`Synchronizing migrations of ${access.server}, which is the cluster ${clusterId}.`);
  if (options.listen) return synchronize(tools, options.listen, signal);
  await followPort(client, env, signal, (port, until) => synchronize(tools, { host: '0.0.0.0', port }, until));
}

interface Tools extends Work {
  readonly client: Client;
  readonly metrics: KubeMetrics;
  readonly streamMetrics: StreamMetrics;
  readonly clusterId: string;
}

/** Stands for the lease, and works while it has it, reached at this address. */
async function synchronize(tools: Tools, { host, port }: ListenAddress, signal: AbortSignal): Promise<void> {
  const { options, env, access, identity, client, metrics } = tools;
  const reached = WILDCARDS.has(host) ? await ownAddress(access.server) : host;
  const addresses = (bound: number): readonly string[] =>
    options.advertise ?? [isIPv6(reached) ? `[${reached}]:${bound}` : `${reached}:${bound}`];
  const lease = { namespace: SYSTEM_NAMESPACE, name: SYNCHRONIZATION_LEASE };
  const elector = new LeaderElector({ client, env, ...lease, identity, metrics });
  const services = synchronizationServices({ ...tools, listen: { host, port }, addresses });
  const health = options.metrics ? [new HealthServer({ ...options.metrics, metrics: () => metrics.render() })] : [];
  await new Manager({ env, name: 'synchronization', elector }).add(...health, ...services).run(signal);
}

/**
 * Nobody else has it. Who holds a directory is alone in having it, and need not wait for a lease that its former self has left
 * behind; others cannot know.
 */
function identityOf(directory: string | undefined, env: Env): string {
  return `${hostname()}_${directory ?? env.random.uuid()}`;
}

/** What others know a cluster by. */
async function clusterIdOf(client: Client, signal: AbortSignal): Promise<string> {
  const { metadata }: KubeObject = await client.get(namespaces, '', 'kube-system', signal);
  return metadata.uid ?? '';
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
