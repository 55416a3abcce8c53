import { InProcessApi } from '../../test/support/in-process.ts';
import type { KubeObject } from '../api/meta.ts';
import { ManualClock, seededRandom } from '../env/test.ts';
import { Client } from '../kube/client.ts';
import { type FaultPlan, NO_FAULTS } from '../kube/faults.ts';
import { FaultyTransport } from '../kube/faulty-transport.ts';
import { InProcessTransport, type LocalIdentity } from '../kube/in-process-transport.ts';
import { Manager } from '../kube/manager.ts';
import { KubeMetrics } from '../kube/metrics.ts';
import type { Transport, TransportRequest } from '../kube/transport.ts';
import { clusterServices } from './cluster.ts';
import type { ClusterLoop } from './loop.ts';

/** A bit of everything that can go wrong; more often than in any cluster, but so that work gets done in between. */
export const TROUBLE: Partial<FaultPlan> = {
  requestLost: 0.03,
  answerLost: 0.03,
  timeoutMs: 3000,
  conflict: 0.05,
  unavailable: 0.03,
  slow: 0.1,
  slowMsMax: 2000,
  crash: 0.1,
  stale: 0.03,
  staleMsMax: 20_000,
  watchCut: 0.02,
  watchExpired: 0.02,
  watchDelay: 0.3,
  watchDelayMsMax: 8000,
  watchDuplicate: 0.05,
};

export interface FaultyWorldOptions {
  readonly seed: number;
  readonly loop: ClusterLoop;
  /**
   * Says what is wrong with a write, by what is true in the moment in which it reaches the server; it counts if the
   * server then does it.
   */
  readonly judge: (request: TransportRequest, world: FaultyWorld) => string | undefined;
}

/** A loop that all sorts of things happen to, and whose every write is judged. Time moves when told. */
export class FaultyWorld {
  readonly clock = new ManualClock();
  readonly signal = new AbortController().signal;
  /** What it has done that it should not have. */
  readonly wrongs: string[] = [];
  /** How many of its writes the server has done. */
  writes = 0;
  crashes = 0;
  readonly #options: FaultyWorldOptions;
  readonly #transports = new Set<FaultyTransport>();
  #plan: Partial<FaultPlan> = TROUBLE;
  #api!: InProcessApi;
  #running: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;
  #restarting: Promise<void> = Promise.resolve();

  constructor(options: FaultyWorldOptions) {
    this.#options = options;
  }

  /** Whoever the tests act as: may do everything, and nothing happens to its requests. */
  get client(): Client {
    return new Client(this.#transport({ user: 'admin', groups: ['system:masters'] }), 'test');
  }

  async start(): Promise<void> {
    this.#api = await InProcessApi.start({ env: { clock: this.clock, random: seededRandom(this.#options.seed) } });
    this.#startLoop();
  }

  async stop(): Promise<void> {
    await this.#passUntil(this.#restarting);
    this.#running?.stop.abort();
    await this.#passUntil(this.#running?.ended);
    await this.#api.stop();
  }

  /** From now on nothing goes wrong. */
  async calm(): Promise<void> {
    this.#plan = NO_FAULTS;
    for (const transport of this.#transports) transport.calm();
    await this.#passUntil(this.#restarting);
  }

  /** What the server has stored under a key. */
  stored(bucket: string, key: string): KubeObject | undefined {
    const stored = this.#api.store.get(bucket, key);
    return stored && (JSON.parse(stored.text) as KubeObject);
  }

  /** The keys that begin so. */
  keys(bucket: string, prefix: string): string[] {
    return [...this.#api.store.list(bucket).items].map(({ key }) => key).filter((key) => key.startsWith(prefix));
  }

  /** Lets time pass, in steps in which everything can react. */
  async pass(durationMs: number, stepMs = 1000): Promise<void> {
    for (let leftMs = durationMs; leftMs > 0; leftMs -= stepMs) {
      this.clock.advance(Math.min(stepMs, leftMs));
      for (let turn = 0; turn < 10; turn++) {
        await new Promise((resolve) => setImmediate(resolve));
        this.clock.advance(0);
      }
    }
  }

  /** Ending may take time: what has been said goes out first. */
  async #passUntil(ended: Promise<void> = Promise.resolve()): Promise<void> {
    const waiting = { isOver: false };
    const over = ended.finally(() => (waiting.isOver = true));
    while (!waiting.isOver) await this.pass(1000);
    await over;
  }

  #startLoop(): void {
    const { env } = this.#api;
    const stop = new AbortController();
    const clientOf = (identity: LocalIdentity): Client => {
      const transport = new FaultyTransport(this.#judging(this.#transport(identity)), {
        clock: this.clock,
        random: env.random,
        plan: this.#plan,
        readsAreConsistent: true,
        onCrash: () => this.#crash(),
      });
      this.#transports.add(transport);
      return new Client(transport, 'loop');
    };
    const manager = new Manager({ env, name: 'loop' });
    const metrics = new KubeMetrics(env.clock);
    manager.add(...clusterServices({ env, clientOf, metrics, loops: [this.#options.loop] }));
    this.#running = { stop, ended: manager.run(stop.signal) };
  }

  /** All that was in memory is lost. */
  #crash(): void {
    const { stop, ended } = this.#running ?? {};
    if (!stop || stop.signal.aborted) return;
    this.crashes++;
    stop.abort();
    this.#restarting = (async () => {
      await ended;
      this.#transports.clear();
      this.#startLoop();
    })();
  }

  #transport(identity: LocalIdentity): Transport {
    return new InProcessTransport((request) => this.#api.core.handle(request), identity);
  }

  #judging(inner: Transport): Transport {
    const send = async (request: TransportRequest) => {
      if (request.method === 'GET') return inner.send(request);
      const wrong = this.#options.judge(request, this);
      const response = await inner.send(request);
      if (response.status >= 300) return response;
      this.writes++;
      if (wrong !== undefined) this.wrongs.push(wrong);
      return response;
    };
    return { send, close: () => inner.close() };
  }
}
