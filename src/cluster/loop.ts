import type { Env } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { LocalIdentity } from '../kube/in-process-transport.ts';
import type { KubeMetrics } from '../kube/metrics.ts';
import type { Service } from '../kube/service.ts';
import type { SharedInformers } from '../kube/shared-informers.ts';

/** What a loop is given: the world, a client that speaks as itself, and what it shares with the other loops. */
export interface LoopContext {
  readonly env: Env;
  readonly client: Client;
  readonly informers: SharedInformers;
  readonly recorder: EventRecorder;
  readonly metrics: KubeMetrics;
}

/** One of Kubernetes' own controllers. */
export interface ClusterLoop {
  /** As its upstream counterpart is called. */
  readonly name: string;
  /** Whom it acts as; its rights are those of that identity. */
  readonly identity: LocalIdentity;
  /** Whom its events come from. */
  readonly component: string;
  /** Makes it, and asks the informers for what it needs. It runs once those have synced. */
  make(context: LoopContext): Service;
}

/** A controller's own service account, as the controller manager gives each of its controllers. */
export function controllerIdentity(account: string): LocalIdentity {
  return {
    user: `system:serviceaccount:kube-system:${account}`,
    groups: ['system:serviceaccounts', 'system:serviceaccounts:kube-system'],
  };
}
