import { join, resolve } from 'node:path';
import type { Env } from '../env/ports.ts';
import { realDiskFiles } from '../env/real-disk-files.ts';
import { Client } from '../kube/client.ts';
import { HttpsTransport } from '../kube/https-transport.ts';
import { systemKubeconfigPorts } from '../kube/kubeconfig-system.ts';
import { loadKubeconfig, podAccess } from '../kube/kubeconfig.ts';
import { Manager } from '../kube/manager.ts';
import { KubeMetrics } from '../kube/metrics.ts';
import type { Taint } from '../migration/fit/objects.ts';
import { JournalDamagedError } from '../migration/right-to-run/journal.ts';
import { type Bootstrap, joinCluster, type NodeIdentity } from '../node/identity/join.ts';
import { NodeTakenError } from '../node/registration/node-registration.ts';
import { UserError } from './failure.ts';
import { checkKubeletNode } from './kubelet-node.ts';
import { migrationHostOf } from './migration-host.ts';
import { nodeServices } from './node-services.ts';
import { ownAddress } from './own-address.ts';
import { addProcessMetrics } from './process-metrics.ts';
import { takeDirectory } from './take-directory.ts';

/** `godwit agent`: the agent of one node, until a signal. Its guests go on without it. */

export interface AgentOptions {
  readonly name: string;
  readonly dataDir: string;
  /** The node's own kubeconfig; written where there is none. */
  readonly kubeconfig?: string;
  /** One with a bootstrap token, for a node that has none of its own yet. */
  readonly bootstrapKubeconfig?: string;
  /** Whether the account of the pod that this runs in may ask for it instead. */
  readonly bootstrapPod?: boolean;
  /** What `godwit token create` prints. */
  readonly server?: string;
  readonly token?: string;
  readonly caHash?: string;
  /** Where images are; below the data directory unless several nodes share them. */
  readonly images?: string;
  /** Where volumes are that all nodes of this machine share, if there are any. */
  readonly shared?: string;
  /** By what others reach the node; how it reaches the API server where absent. */
  readonly address?: string;
  /** The address at which migrations arrive, or a network in which the node has one; that of the node where absent. */
  readonly migrationAddress?: string;
  /** The bridges of this machine that guests may be put on. */
  readonly bridge?: readonly string[];
  /** How much memory pods may have; all of the machine's where absent. */
  readonly memory?: number;
  /** Taints that the node has when it is registered first; those of a kubelet's node are not ours to say. */
  readonly registerWithTaints?: readonly Taint[];
  /** Whether the node is that of the machine's kubelet, which runs its launcher pods. */
  readonly kubelet?: boolean;
}

/** As KubeVirt's node agent signs what it writes. */
const FIELD_MANAGER = 'virt-handler';

/** Joins the cluster, runs what is bound to the node, and ends at SIGTERM or SIGINT; at SIGUSR2 once its guests have. */
export async function agent(options: AgentOptions, env: Env, print: (line: string) => void): Promise<void> {
  const directory = resolve(options.dataDir);
  if (options.kubelet === true) checkKubeletNode(options, directory, process.pid);
  const stopping = new AbortController();
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.once(signal, () => stopping.abort());
  const isLeaving = new Promise<void>((resolve) => process.once('SIGUSR2', () => resolve()));
  const migrationHost =
    options.migrationAddress === undefined ? undefined : await migrationHostOf(options.migrationAddress);
  // Only now: whoever sees that the directory is held may send signals.
  const lock = takeDirectory(directory, env.clock.now(), 'agent');
  // Waiting for a machine, which outlives this process, does not keep it from ending.
  const alive = env.clock.setTimer(() => undefined, Number.MAX_SAFE_INTEGER);
  try {
    const metrics = new KubeMetrics(env.clock);
    addProcessMetrics(metrics, 'agent');
    const identity = await joined({ options, directory, env, metrics }, stopping.signal);
    const address = options.address ?? (await ownAddress(identity.access.server));
    const { services, leave } = await nodeServices({
      options,
      directory,
      env,
      metrics,
      identity,
      address,
      migrationHost,
    });
    void isLeaving.then(leave).then(() => stopping.abort());
    print(`Node ${options.name} works for ${identity.access.server}.`);
    await new Manager({ env, name: `agent of ${options.name}` }).add(...services).run(stopping.signal);
  } catch (error) {
    if (stopping.signal.aborted) return;
    const { cause } = error as Error;
    const isClear = cause instanceof NodeTakenError || cause instanceof JournalDamagedError;
    throw isClear ? new UserError(cause.message, { cause: error }) : error;
  } finally {
    alive.cancel();
    lock.release();
  }
}

interface Joining {
  readonly options: AgentOptions;
  readonly directory: string;
  readonly env: Env;
  readonly metrics: KubeMetrics;
}

async function joined({ options, directory, env, metrics }: Joining, signal: AbortSignal): Promise<NodeIdentity> {
  const kubeconfigPath = resolve(options.kubeconfig ?? join(directory, 'kubeconfig'));
  try {
    return await joinCluster(
      {
        env,
        files: realDiskFiles,
        node: options.name,
        directory: join(directory, 'pki'),
        kubeconfigPath,
        ownAccess: async () =>
          (await realDiskFiles.describe(kubeconfigPath)) ? await accessIn(kubeconfigPath, env) : undefined,
        bootstrap: await bootstrapOf(options, env),
        connect: (access) => {
          const transport = new HttpsTransport({ access, env });
          return new Client(metrics.metered(transport, new URL(access.server).host), FIELD_MANAGER);
        },
      },
      signal,
    );
  } catch (error) {
    if (signal.aborted) throw error;
    throw new UserError(`${options.name} cannot join: ${(error as Error).message}`, { cause: error });
  }
}

async function bootstrapOf(options: AgentOptions, env: Env): Promise<Bootstrap | undefined> {
  const { bootstrapKubeconfig, bootstrapPod, server, token, caHash } = options;
  if (bootstrapPod)
    return { kind: 'access', access: await podAccess({ ports: systemKubeconfigPorts(env.clock, process.env) }) };
  if (bootstrapKubeconfig !== undefined) return { kind: 'access', access: await accessIn(bootstrapKubeconfig, env) };
  if (server === undefined && token === undefined && caHash === undefined) return undefined;
  if (server === undefined || token === undefined || caHash === undefined)
    throw new UserError('--server, --token and --ca-hash go together: `godwit token create` prints all three', {
      exitCode: 2,
    });
  return { kind: 'pinned', server, token, authorityFingerprint: caHash };
}

function accessIn(path: string, env: Env): ReturnType<typeof loadKubeconfig> {
  return loadKubeconfig({ path, ports: systemKubeconfigPorts(env.clock, process.env) });
}
