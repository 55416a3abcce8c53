import type { KubeVirtConfiguration } from '../api/kubevirt/kube-virt.ts';
import type { Env } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import type { EventRecorder } from '../kube/event-recorder.ts';
import type { KubeMetrics } from '../kube/metrics.ts';
import type { SharedInformers } from '../kube/shared-informers.ts';
import { kubeVirts } from '../kube/kubevirt-resources.ts';

/** What a controller is given: the world, a client that speaks as itself, and what it shares with the others. */
export interface ControlContext {
  readonly env: Env;
  readonly client: Client;
  readonly informers: SharedInformers;
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly metrics?: KubeMetrics;
}

/** The cluster's configuration as it is whenever it is asked for; there is one object of it, wherever that is. */
export function configurationOf(informers: SharedInformers): () => KubeVirtConfiguration {
  const informer = informers.of(kubeVirts);
  return () => {
    for (const { spec } of informer.list()) return spec.configuration ?? {};
    return {};
  };
}
