import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Env } from '../env/ports.ts';
import { Client } from '../kube/client.ts';
import type { ClusterAccess } from '../kube/cluster-access.ts';
import { HttpsTransport } from '../kube/https-transport.ts';
import { systemKubeconfigPorts } from '../kube/kubeconfig-system.ts';
import { loadKubeconfig } from '../kube/kubeconfig.ts';
import { type LeaderElector, LeadershipLostError } from '../kube/leader-election.ts';
import { KubeMetrics } from '../kube/metrics.ts';
import type { Service } from '../kube/service.ts';
import { HealthServer } from './health-server.ts';
import { addProcessMetrics, type ProcessName } from './process-metrics.ts';
import { takeDirectory } from './take-directory.ts';
import type { ListenAddress } from './up.ts';

/** What all processes have in common that work for a cluster through its API alone. */

export interface ClusterProcessOptions {
  /** Where the cluster is, and who the process is; where absent, as kubectl finds it, or the pod's own. */
  readonly kubeconfig?: string;
  /** Which it holds while it runs, so that there is one of it on this machine. */
  readonly dataDir?: string;
  /** Where health and metrics are served; nowhere where absent. */
  readonly metrics?: ListenAddress;
}

/** A process that has found its cluster. */
export interface ClusterProcess {
  readonly env: Env;
  readonly access: ClusterAccess;
  readonly client: Client;
  readonly metrics: KubeMetrics;
  /** Nobody else has it, while this process runs. */
  readonly identity: string;
  /** What tells others that it is there, and whether it is ready, where it stands for a lease. */
  readonly health: (elector?: Pick<LeaderElector, 'isInTouch'>) => readonly Service[];
}

interface ClusterWork {
  readonly name: ProcessName;
  readonly options: ClusterProcessOptions;
  /** Signs what it writes. */
  readonly fieldManager: string;
}

/**
 * Finds the cluster, and works until SIGTERM or SIGINT, or until the work fails. Where it loses its lease it begins anew: nothing of
 * what it was is left by then.
 */
export async function runForCluster(
  { name, options, fieldManager }: ClusterWork,
  env: Env,
  work: (process: ClusterProcess, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const stopping = new AbortController();
  // Whoever stops a group of processes tells some of them twice: that is no reason to leave before all is put away.
  process.on('SIGTERM', () => stopping.abort());
  process.once('SIGINT', () => stopping.abort());
  const directory = options.dataDir === undefined ? undefined : resolve(options.dataDir);
  const lock = directory === undefined ? undefined : takeDirectory(directory, env.clock.now(), name);
  // Waiting for others does not keep a process from ending.
  const alive = env.clock.setTimer(() => undefined, Number.MAX_SAFE_INTEGER);
  try {
    const ports = systemKubeconfigPorts(env.clock, process.env);
    const path = options.kubeconfig === undefined ? {} : { path: resolve(options.kubeconfig) };
    const access = await loadKubeconfig({ ...path, ports });
    for (;;) {
      const metrics = new KubeMetrics(env.clock);
      addProcessMetrics(metrics, name);
      const transport = metrics.metered(new HttpsTransport({ access, env }), new URL(access.server).host);
      const client = new Client(transport, fieldManager);
      const health: ClusterProcess['health'] = (elector) =>
        options.metrics ? [new HealthServer({ ...options.metrics, metrics: () => metrics.render(), elector })] : [];
      const self = { env, access, client, metrics, identity: identityOf(directory, env), health };
      const isLost = await losesLeadership(work(self, stopping.signal));
      transport.close();
      if (!isLost) return;
      // An API server that was slow for a moment is no reason to end, where nobody may be there who would start it again.
      env.log.warn('everything was put down: standing for leadership again');
    }
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  } finally {
    alive.cancel();
    lock?.release();
  }
}

/** Whether the work ends because another may have the lease by now. */
async function losesLeadership(work: Promise<void>): Promise<boolean> {
  try {
    await work;
    return false;
  } catch (error) {
    if (error instanceof LeadershipLostError) return true;
    throw error;
  }
}

/**
 * Who holds a directory is alone in having it, and need not wait for a lease that its former self has left behind; others
 * cannot know.
 */
function identityOf(directory: string | undefined, env: Env): string {
  return `${hostname()}_${directory ?? env.random.uuid()}`;
}
