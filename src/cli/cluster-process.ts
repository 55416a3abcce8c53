import { hostname } from 'node:os';
import { resolve } from 'node:path';
import type { Env } from '../env/ports.ts';
import { Client } from '../kube/client.ts';
import type { ClusterAccess } from '../kube/cluster-access.ts';
import { HttpsTransport } from '../kube/https-transport.ts';
import { systemKubeconfigPorts } from '../kube/kubeconfig-system.ts';
import { loadKubeconfig } from '../kube/kubeconfig.ts';
import { type LeaderElector, LeadershipLostError } from '../kube/leader-election.ts';
import { Manager } from '../kube/manager.ts';
import { KubeMetrics } from '../kube/metrics.ts';
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
  /** Nobody else has it, and without a directory not even the same process in its next term. */
  readonly identity: string;
  /** Says from now on what keeps it from being ready; undefined where nothing does. */
  readonly readyUnless: (notReady: () => string | undefined) => void;
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
    let metrics = new KubeMetrics(env.clock);
    let notReady: () => string | undefined = () => 'it has begun to look for its cluster';
    const inTerms = async (signal: AbortSignal): Promise<void> => {
      for (;;) {
        metrics = new KubeMetrics(env.clock);
        addProcessMetrics(metrics, name);
        const transport = metrics.metered(new HttpsTransport({ access, env }), new URL(access.server).host);
        const client = new Client(transport, fieldManager);
        const readyUnless: ClusterProcess['readyUnless'] = (reason) => (notReady = reason);
        const self = { env, access, client, metrics, identity: identityOf(directory, env), readyUnless };
        const isLost = await losesLeadership(work(self, signal), signal);
        transport.close();
        if (!isLost) return;
        // An API server that was slow for a moment is no reason to end, where nobody may be there who would start it again.
        env.log.warn('everything was put down: standing for leadership again');
      }
    };
    const told = { metrics: () => metrics.render(), notReady: () => notReady() };
    // It goes on between terms: whoever watches over the process hears why it does not work.
    const health = options.metrics ? [new HealthServer({ ...options.metrics, ...told })] : [];
    await new Manager({ env, name }).add(...health, { name, run: inTerms }).run(stopping.signal);
  } catch (error) {
    if (!stopping.signal.aborted) throw error;
  } finally {
    alive.cancel();
    lock?.release();
  }
}

/** What keeps one from being ready that stands for a lease. */
export function outOfTouch(elector: LeaderElector): string | undefined {
  return elector.isInTouch
    ? undefined
    : 'for as long as the lease lasts nobody was seen to hold it, and it could not be taken';
}

/** Whether the work ends because another may have the lease by now. What fails once it is to end has come to its end. */
async function losesLeadership(work: Promise<void>, signal: AbortSignal): Promise<boolean> {
  try {
    await work;
    return false;
  } catch (error) {
    if (signal.aborted) return false;
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
