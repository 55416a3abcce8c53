import { errorMessage } from '../api/error-message.ts';
import { type Env, sleep } from '../env/ports.ts';
import { unlessAborted } from '../kube/abort.ts';
import type { Client } from '../kube/client.ts';
import type { Service } from '../kube/service.ts';
import { type ChannelListener, type Dialer, SyncError } from './channel.ts';
import { Trust } from './trust/trust.ts';
import { GrpcNetwork } from './wire/grpc-client.ts';
import { GrpcServer } from './wire/grpc-server.ts';
import { GuardedNetwork } from './wire/guarded-network.ts';
import type { Network } from './wire/link.ts';
import type { StreamMetrics } from './wire/stream-metrics.ts';
import { Switchboard } from './wire/switchboard.ts';

/** The way to other clusters as a whole: trust, the port on which they dial in, and the streams. Only a leader runs one. */

export interface ExchangeOptions {
  readonly env: Env;
  /** Speaks as the synchronization controller. */
  readonly client: Client;
  /** The UID of the namespace kube-system. */
  readonly clusterId: string;
  /** Where other clusters dial in; port 0 takes a free one. */
  readonly listen: { readonly host: string; readonly port: number };
  readonly metrics?: StreamMetrics | undefined;
}

/** How soon it is tried again to get an identity. */
const RETRY_MS = 5_000;

export class Exchange implements Service {
  readonly name = 'exchange with other clusters';
  readonly needsLeadership = true;
  readonly trust: Trust;
  /** The port on which it listens, once it does. */
  readonly listening: Promise<number>;
  /** Told that trust in a peer was revoked: once nothing with it is on the way any more, it is to be released. */
  onRevoked: (peer: string) => void = () => undefined;
  readonly #options: ExchangeOptions;
  #noteListening: (port: number) => void = () => undefined;
  #switchboard: Switchboard | undefined;
  #server: GrpcServer | undefined;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    this.listening = new Promise((resolve) => (this.#noteListening = resolve));
    this.trust = new Trust({
      ...options,
      listener: {
        materialChanged: () => {
          this.#server?.renew();
          this.#switchboard?.trustChanged();
        },
        bundleChanged: () => this.#switchboard?.bundleChanged(),
        revoked: (peer) => this.onRevoked(peer),
        removed: (peer) =>
          this.#switchboard?.drop(peer, new SyncError('NotTrusted', 'the trust in this cluster was revoked')),
      },
    });
  }

  /** The way to other clusters for whoever listens to them; once only. What is dialed before it runs waits. */
  connect(listener: ChannelListener): Dialer {
    if (this.#switchboard) throw new Error('somebody listens to other clusters already');
    const { env, clusterId, metrics } = this.#options;
    this.#switchboard = new Switchboard({
      env,
      metrics,
      listener,
      clusterId,
      network: this.#network(),
      incarnation: env.random.uuid(),
      bundle: () => this.trust.bundle(),
      renewed: (peer, bundle) => this.trust.renewed(peer, bundle),
    });
    return this.#switchboard;
  }

  async run(signal: AbortSignal): Promise<void> {
    const switchboard = this.#switchboard;
    if (!switchboard) throw new Error('nobody listens to other clusters');
    await this.#prepare(signal);
    if (signal.aborted) return switchboard.stop();
    const trusting = this.trust.run(signal);
    try {
      await unlessAborted(this.trust.synced, signal);
      await this.#serve(switchboard, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    } finally {
      switchboard.stop();
      await this.#server?.stop();
    }
    await trusting;
  }

  async #prepare(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        return await this.trust.prepare(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#options.env.log.warn('this cluster has no identity for others yet', { reason: errorMessage(error) });
        await sleep(this.#options.env.clock, RETRY_MS, signal);
      }
    }
  }

  async #serve(switchboard: Switchboard, signal: AbortSignal): Promise<void> {
    const { env, listen } = this.#options;
    const { clock, log } = env;
    const server = new GrpcServer({ clock, log, trust: this.trust, accept: (link) => switchboard.accept(link) });
    this.#server = server;
    this.#noteListening(await server.listen(listen.host, listen.port));
    await new Promise<void>((resolve) => {
      if (signal.aborted) resolve();
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
  }

  /** Nobody is dialed before this cluster can say who it is, and knows whom it trusts. */
  #network(): Network {
    const { clock } = this.#options.env;
    const network = new GuardedNetwork({
      network: new GrpcNetwork({ clock, trust: this.trust }),
      rules: () => this.trust.addressRules,
    });
    return {
      connect: async (connectURL, signal) => {
        await unlessAborted(this.listening, signal);
        return network.connect(connectURL, signal);
      },
    };
  }
}
