import type { Env } from '../env/ports.ts';
import { Client } from '../kube/client.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { InProcessTransport, type LocalHandler, type LocalIdentity } from '../kube/in-process-transport.ts';
import type { KubeMetrics } from '../kube/metrics.ts';
import type { Service } from '../kube/service.ts';
import { SharedInformers } from '../kube/shared-informers.ts';
import type { Transport } from '../kube/transport.ts';
import { tokenCleanerLoop } from './bootstrap-tokens/loop.ts';
import { disruptionLoop } from './disruption-budgets/loop.ts';
import { garbageCollectionLoop } from './garbage-collection/loop.ts';
import type { ClusterLoop } from './loop.ts';
import { namespaceLoop } from './namespaces/loop.ts';
import { nodeLifecycleLoop } from './node-lifecycle/loop.ts';
import { podGarbageLoop } from './pod-garbage/loop.ts';
import { quotaLoop } from './quota/loop.ts';
import { schedulerLoop } from './scheduler/loop.ts';
import { rootCertificateLoop, serviceAccountLoop, tokensLoop } from './service-accounts/loop.ts';
import { taintEvictionLoop } from './taint-eviction/loop.ts';
import { claimProtectionLoop, volumeBinderLoop, volumeProtectionLoop } from './volumes/loop.ts';

/** All that Kubernetes' own controllers do here. */
export const clusterLoops: readonly ClusterLoop[] = [
  schedulerLoop,
  disruptionLoop,
  namespaceLoop,
  garbageCollectionLoop,
  taintEvictionLoop,
  serviceAccountLoop,
  rootCertificateLoop,
  tokensLoop,
  tokenCleanerLoop,
  quotaLoop,
  podGarbageLoop,
  nodeLifecycleLoop,
  volumeBinderLoop,
  claimProtectionLoop,
  volumeProtectionLoop,
];

/** Whom the shared informers read as: who may read everything, and write next to nothing. */
const READER: LocalIdentity = { user: 'system:kube-controller-manager', groups: [] };

export interface ClusterOptions {
  readonly env: Env;
  readonly clientOf: (identity: LocalIdentity) => Client;
  readonly metrics: KubeMetrics;
  /** Which loops; all where absent. */
  readonly loops?: readonly ClusterLoop[];
}

/**
 * Clients of a server in this process, whose writes are recorded under the names that kubectl's users know. `metered`
 * may count what they send.
 */
export function inProcessClients(
  handle: LocalHandler,
  metered: (transport: Transport) => Transport = (transport) => transport,
): ClusterOptions['clientOf'] {
  return (identity) => {
    const isScheduler = identity.user === schedulerLoop.identity.user;
    const manager = isScheduler ? 'kube-scheduler' : 'kube-controller-manager';
    return new Client(metered(new InProcessTransport(handle, identity)), manager);
  };
}

/** The loops and what they need, to be added to one manager. */
export function clusterServices(options: ClusterOptions): readonly Service[] {
  const { env, clientOf, metrics, loops = clusterLoops } = options;
  const informers = new SharedInformers({ client: clientOf(READER), env });
  const recorders: EventRecorder[] = [];
  const services = loops.map((loop) => {
    const client = clientOf(loop.identity);
    const recorder = new EventRecorder({ client, env, component: loop.component });
    recorders.push(recorder);
    return loop.make({ env, client, informers, recorder, metrics });
  });
  return [...informers.all(), ...recorders, ...services];
}
