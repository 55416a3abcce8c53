import { isIPv6 } from 'node:net';
import { SYSTEM_NAMESPACE } from '../api/kubevirt/well-known.ts';
import type { KubeObject } from '../api/meta.ts';
import { type Env, sleep } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import { errorText } from '../kube/error-text.ts';
import { LeaderElector } from '../kube/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import type { Resource } from '../kube/resource.ts';
import { SYNCHRONIZATION_LEASE } from '../sync/rights.ts';
import { synchronizationServices } from '../sync/synchronization.ts';
import { StreamMetrics } from '../sync/wire/stream-metrics.ts';
import { type ClusterProcess, type ClusterProcessOptions, outOfTouch, runForCluster } from './cluster-process.ts';
import { followPort } from './configured-port.ts';
import { ownAddress } from './own-address.ts';
import type { ListenAddress } from './up.ts';

/** `godwit sync`: the synchronization controller of a cluster, until a signal. Of several one works, and the others wait. */

export interface SyncOptions extends ClusterProcessOptions {
  /** Where other clusters dial in; all addresses where absent, on the port that the configuration says. */
  readonly listen?: ListenAddress;
  /** Where they reach it, as host and port; the address that the API server sees where absent. */
  readonly advertise?: readonly string[];
}

/** As KubeVirt's signs what it writes. */
const FIELD_MANAGER = 'virt-synchronization-controller';
const WILDCARDS: ReadonlySet<string> = new Set(['0.0.0.0', '::']);
const RETRY_MS = 1000;

const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };

/** Connects to the cluster, stands for its lease, and works while it has it; ends at SIGTERM or SIGINT. */
export async function sync(options: SyncOptions, env: Env, print: (line: string) => void): Promise<void> {
  await runForCluster({ name: 'synchronization', options, fieldManager: FIELD_MANAGER }, env, async (self, signal) => {
    const { access, client, metrics } = self;
    const clusterId = await persistently(env, signal, () => clusterIdOf(client, signal));
    const tools = { ...self, options, streamMetrics: new StreamMetrics(metrics.registry), clusterId };
    print(`Synchronizing migrations of ${access.server}, which is the cluster ${clusterId}.`);
    if (options.listen) return synchronize(tools, options.listen, signal);
    await followPort(client, env, signal, (port, until) => synchronize(tools, { host: '0.0.0.0', port }, until));
  });
}

interface Tools extends ClusterProcess {
  readonly options: SyncOptions;
  readonly streamMetrics: StreamMetrics;
  readonly clusterId: string;
}

/** Stands for the lease, and works while it has it, reached at this address. */
async function synchronize(tools: Tools, { host, port }: ListenAddress, signal: AbortSignal): Promise<void> {
  const { options, env, access, identity, client, metrics, readyUnless } = tools;
  const reached = WILDCARDS.has(host) ? await persistently(env, signal, () => ownAddress(access.server)) : host;
  const addresses = (bound: number): readonly string[] =>
    options.advertise ?? [isIPv6(reached) ? `[${reached}]:${bound}` : `${reached}:${bound}`];
  const lease = { namespace: SYSTEM_NAMESPACE, name: SYNCHRONIZATION_LEASE };
  const elector = new LeaderElector({ client, env, ...lease, identity, metrics });
  readyUnless(() => outOfTouch(elector));
  const services = synchronizationServices({ ...tools, listen: { host, port }, addresses });
  await new Manager({ env, name: 'synchronization', elector }).add(...services).run(signal);
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
