import type { Service } from '../kube/service.ts';
import { SharedInformers } from '../kube/shared-informers.ts';
import type { ChannelListener, Dialer } from '../sync/channel.ts';
import { Synchronizations } from '../sync/controller/synchronizations.ts';
import { SYNCHRONIZATION_IDENTITY } from '../sync/rights.ts';
import { Switchboard } from '../sync/wire/switchboard.ts';
import type { Program } from './component.ts';
import { managedProgram, type ManagedProgramOptions } from './managed-program.ts';
import type { SimulatedProcess } from './process.ts';
import type { SyncNetwork } from './sync-network.ts';

export interface SyncProgramOptions extends ManagedProgramOptions {
  /** Of which cluster it is; empty where there is only one. */
  readonly cluster: string;
  /** The way to others, where there are any. */
  readonly network: SyncNetwork | undefined;
}

const ALONE = 'home';

/** Where the synchronization controller of a cluster is reached. */
export function addressOf(cluster: string): string {
  return `sync.${cluster === '' ? ALONE : cluster}:9185`;
}

/** There is nobody else. */
const NOBODY: Dialer = { dial: () => undefined, hangUp: () => undefined, channel: () => undefined };

/** A process of the synchronization controller, with the rights that it is installed with. */
export function syncProgram({ cluster, network, ...options }: SyncProgramOptions): Program {
  return managedProgram(options, ({ env, process, clientOf, metrics }) => {
    const client = clientOf(SYNCHRONIZATION_IDENTITY);
    const informers = new SharedInformers({ client, env });
    const exchange = network && new SimulatedExchange(cluster, process, network);
    const synchronizations = new Synchronizations({
      env,
      client,
      informers,
      metrics,
      clusterId: cluster === '' ? ALONE : cluster,
      addresses: () => [addressOf(cluster)],
      trust: { isRevoked: () => false, release: () => Promise.resolve() },
      connect: (listener) => exchange?.connect(listener) ?? NOBODY,
    });
    return [...informers.all(), ...(exchange ? [exchange] : []), synchronizations];
  });
}

/** The way of one process to other clusters: the real streams, over a network that is made up. Whoever leads is reached. */
class SimulatedExchange implements Service {
  readonly name = 'exchange with other clusters';
  readonly needsLeadership = true;
  readonly #cluster: string;
  readonly #process: SimulatedProcess;
  readonly #network: SyncNetwork;
  #switchboard: Switchboard | undefined;

  constructor(cluster: string, process: SimulatedProcess, network: SyncNetwork) {
    this.#cluster = cluster;
    this.#process = process;
    this.#network = network;
  }

  connect(listener: ChannelListener): Dialer {
    const { env } = this.#process;
    this.#switchboard = new Switchboard({
      env,
      listener,
      network: this.#network.of({ cluster: this.#cluster, speaker: this.#process }),
      clusterId: this.#cluster,
      incarnation: env.random.uuid(),
      bundle: () => '',
      renewed: () => undefined,
    });
    return this.#switchboard;
  }

  async run(signal: AbortSignal): Promise<void> {
    const switchboard = this.#switchboard;
    if (!switchboard) throw new Error('nobody listens to other clusters');
    const [address, end] = [addressOf(this.#cluster), { cluster: this.#cluster, speaker: this.#process }];
    this.#network.listen(address, { ...end, accept: (link) => switchboard.accept(link) });
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#network.stopListening(address, end);
    switchboard.stop();
  }
}
