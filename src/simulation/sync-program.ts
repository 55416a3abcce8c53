import { unlessAborted } from '../kube/abort.ts';
import type { Client } from '../kube/client.ts';
import type { Service } from '../kube/service.ts';
import { SharedInformers } from '../kube/shared-informers.ts';
import { type ChannelListener, type Dialer, SyncError } from '../sync/channel.ts';
import { Synchronizations, type SynchronizationsOptions } from '../sync/controller/synchronizations.ts';
import { SYNCHRONIZATION_IDENTITY } from '../sync/rights.ts';
import { Switchboard } from '../sync/wire/switchboard.ts';
import type { Program } from './component.ts';
import { managedProgram, type ManagedProgramOptions } from './managed-program.ts';
import type { SimulatedProcess } from './process.ts';
import type { SyncEnd, SyncNetwork } from './sync-network.ts';
import { SimulatedTrust } from './sync-trust.ts';

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

/** Who is alone trusts itself. */
const NOBODY_ELSE: SynchronizationsOptions['trust'] = { isRevoked: () => false, release: () => Promise.resolve() };

/** A process of the synchronization controller, with the rights that it is installed with. */
export function syncProgram({ cluster, network, ...options }: SyncProgramOptions): Program {
  return managedProgram(options, ({ env, process, clientOf, metrics }) => {
    const client = clientOf(SYNCHRONIZATION_IDENTITY);
    const informers = new SharedInformers({ client, env });
    const exchange = network && new SimulatedExchange({ cluster, process, network, client });
    const synchronizations = new Synchronizations({
      env,
      client,
      informers,
      metrics,
      clusterId: cluster === '' ? ALONE : cluster,
      addresses: () => [addressOf(cluster)],
      trust: exchange?.trust ?? NOBODY_ELSE,
      connect: (listener) => exchange?.connect(listener) ?? NOBODY,
      ...(exchange ? { ready: exchange.listening } : {}),
    });
    if (exchange) exchange.onRevoked = (peer) => synchronizations.revoked(peer);
    return [...informers.all(), ...(exchange ? [exchange] : []), synchronizations];
  });
}

interface SimulatedExchangeOptions {
  readonly cluster: string;
  readonly process: SimulatedProcess;
  readonly network: SyncNetwork;
  readonly client: Client;
}

/** The way of one process to other clusters: the real streams, over a network that is made up. Whoever leads is reached. */
class SimulatedExchange implements Service {
  readonly name = 'exchange with other clusters';
  readonly needsLeadership = true;
  readonly trust: SimulatedTrust;
  /** Resolves once others reach it. */
  readonly listening: Promise<void>;
  onRevoked: (peer: string) => void = () => undefined;
  readonly #options: SimulatedExchangeOptions;
  readonly #end: SyncEnd;
  #noteListening: () => void = () => undefined;
  #switchboard: Switchboard | undefined;

  constructor(options: SimulatedExchangeOptions) {
    const { cluster, process, client } = options;
    this.#options = options;
    this.listening = new Promise((resolve) => (this.#noteListening = resolve));
    this.trust = new SimulatedTrust({
      env: process.env,
      client,
      listener: {
        changed: () => this.#switchboard?.trustChanged(),
        revoked: (peer) => this.onRevoked(peer),
        removed: (peer) =>
          this.#switchboard?.drop(peer, new SyncError('NotTrusted', 'the trust in this cluster was revoked')),
      },
    });
    this.#end = { cluster, speaker: process, isKnown: (peer) => this.trust.isKnown(peer) };
  }

  connect(listener: ChannelListener): Dialer {
    const { cluster, process, network } = this.#options;
    const { env } = process;
    const reachable = network.of(this.#end);
    this.#switchboard = new Switchboard({
      env,
      listener,
      network: {
        connect: async (connectURL, signal) => {
          await unlessAborted(this.listening, signal);
          return reachable.connect(connectURL, signal);
        },
      },
      clusterId: cluster,
      incarnation: env.random.uuid(),
      bundle: () => '',
      renewed: () => undefined,
    });
    return this.#switchboard;
  }

  async run(signal: AbortSignal): Promise<void> {
    const switchboard = this.#switchboard;
    if (!switchboard) throw new Error('nobody listens to other clusters');
    const { cluster, network } = this.#options;
    const trusting = this.trust.run(signal);
    await unlessAborted(this.trust.synced, signal);
    const address = addressOf(cluster);
    network.listen(address, { ...this.#end, accept: (link) => switchboard.accept(link) });
    this.#noteListening();
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    network.stopListening(address, this.#end);
    switchboard.stop();
    await trusting;
  }
}
