import type { KubeObject } from '../../src/api/meta.ts';
import { clusterServices, inProcessClients } from '../../src/cluster/cluster.ts';
import type { ClusterLoop } from '../../src/cluster/loop.ts';
import { testEnv } from '../../src/env/test.ts';
import { Client } from '../../src/kube/client.ts';
import { InProcessTransport } from '../../src/kube/in-process-transport.ts';
import { Manager } from '../../src/kube/manager.ts';
import { KubeMetrics } from '../../src/kube/metrics.ts';
import type { Resource } from '../../src/kube/resource.ts';
import { InProcessApi } from './in-process.ts';

/** Turns of the event loop without a write after which nothing more is expected to happen by itself. */
const QUIET_TURNS = 25;

interface RecordedEvent extends KubeObject {
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly involvedObject: { readonly name: string };
}

const events: Resource<RecordedEvent> = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

/** The embedded API and some of the cluster's loops, in a time that moves when the test says so. */
export class LoopsInTime {
  readonly env: ReturnType<typeof testEnv>;
  readonly api: InProcessApi;
  readonly client: Client;
  readonly signal: AbortSignal;
  readonly #loops: readonly ClusterLoop[];
  readonly #stopping = new AbortController();
  #halt = new AbortController();
  #running: Promise<void> = Promise.resolve();

  private constructor(api: InProcessApi, env: ReturnType<typeof testEnv>, loops: readonly ClusterLoop[]) {
    const admin = { user: 'kubernetes-admin', groups: ['system:masters'] };
    this.env = env;
    this.api = api;
    this.client = new Client(new InProcessTransport(api.core.handle.bind(api.core), admin), 'test');
    this.signal = this.#stopping.signal;
    this.#loops = loops;
  }

  static async start(...loops: ClusterLoop[]): Promise<LoopsInTime> {
    const env = testEnv();
    const started = new LoopsInTime(await InProcessApi.start({ env }), env, loops);
    started.#run();
    await started.settle();
    return started;
  }

  /** Ends the loops and what they remember, and begins them anew after a while. */
  async restart(afterMs = 0): Promise<void> {
    await this.#end();
    this.env.clock.advance(afterMs);
    this.#run();
    await this.settle();
  }

  /** Lets time pass, in steps that let everything react. */
  async pass(durationMs: number, stepMs = durationMs): Promise<void> {
    await this.settle();
    for (let leftMs = durationMs; leftMs > 0; leftMs -= stepMs) {
      this.env.clock.advance(Math.min(stepMs, leftMs));
      await this.settle();
    }
  }

  /** Lets everything happen that needs no time. */
  async settle(): Promise<void> {
    for (let quiet = 0, revision = -1; quiet < QUIET_TURNS; quiet++) {
      if (this.api.store.revision !== revision) [quiet, revision] = [0, this.api.store.revision];
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** What has been said about objects, as `name reason: message`, in order. */
  async events(): Promise<string[]> {
    const { items } = await this.client.list(events, {}, this.signal);
    return items
      .toSorted((a, b) => Number(a.metadata.resourceVersion) - Number(b.metadata.resourceVersion))
      .map(({ involvedObject, reason, message }) => `${involvedObject.name} ${reason}: ${message}`);
  }

  async stop(): Promise<void> {
    await this.#end();
    this.#stopping.abort();
    await this.api.stop();
  }

  #run(): void {
    this.#halt = new AbortController();
    const { env } = this;
    const clientOf = inProcessClients(this.api.core.handle.bind(this.api.core));
    const services = clusterServices({ env, clientOf, metrics: new KubeMetrics(env.clock), loops: this.#loops });
    this.#running = new Manager({ env, name: 'cluster' }).add(...services).run(this.#halt.signal);
  }

  async #end(): Promise<void> {
    this.#halt.abort();
    await this.#running;
  }
}
