import type { Env } from '../env/ports.ts';
import type { Client } from '../kube/client.ts';
import type { KubeMetrics } from '../kube/metrics.ts';
import type { Service } from '../kube/service.ts';
import { SharedInformers } from '../kube/shared-informers.ts';
import { Advertisement } from './controller/advertisement.ts';
import { Synchronizations } from './controller/synchronizations.ts';
import { Exchange } from './exchange.ts';
import type { StreamMetrics } from './wire/stream-metrics.ts';

export interface SynchronizationOptions {
  readonly env: Env;
  /** Speaks as the synchronization controller. */
  readonly client: Client;
  readonly metrics: KubeMetrics;
  readonly streamMetrics: StreamMetrics;
  /** The UID of the namespace kube-system. */
  readonly clusterId: string;
  /** Where other clusters dial in; port 0 takes a free one. */
  readonly listen: { readonly host: string; readonly port: number };
  /** Where they reach that, given the port, as host and port. */
  readonly addresses: (port: number) => readonly string[];
}

/** All that carries halves of migrations between clusters and guests, to be added to one manager that leads. */
export function synchronizationServices(options: SynchronizationOptions): readonly Service[] {
  const { env, client, metrics, streamMetrics, clusterId, listen } = options;
  const informers = new SharedInformers({ client, env });
  const exchange = new Exchange({ env, client, clusterId, listen, metrics: streamMetrics });
  let addresses: readonly string[] = [];
  const ready = exchange.listening.then((port) => void (addresses = options.addresses(port)));
  const synchronizations = new Synchronizations({
    env,
    client,
    informers,
    metrics,
    clusterId,
    ready,
    addresses: () => addresses,
    connect: (listener) => exchange.connect(listener),
    trust: exchange.trust,
  });
  metrics.certificates('synchronization', () => exchange.trust.certificateEnds());
  exchange.onRevoked = (peer) => synchronizations.revoked(peer);
  const advertisement = new Advertisement({ env, client, informers, ready, addresses: () => addresses });
  return [...informers.all(), exchange, synchronizations, advertisement];
}
