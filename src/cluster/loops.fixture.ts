import { InProcessApi } from '../../test/support/in-process.ts';
import type { JsonObject, KubeObject } from '../api/meta.ts';
import { ManualClock } from '../env/test.ts';
import { Client } from '../kube/client.ts';
import type { CoreEvent } from '../kube/event-correlator.ts';
import { InProcessTransport, type LocalIdentity } from '../kube/in-process-transport.ts';
import { Manager } from '../kube/manager.ts';
import { KubeMetrics } from '../kube/metrics.ts';
import type { Resource } from '../kube/resource.ts';
import { type Transport, TransportError, type TransportRequest, type TransportResponse } from '../kube/transport.ts';
import { clusterServices } from './cluster.ts';
import type { ClusterLoop } from './loop.ts';
import { namespaces } from './resources.ts';

/** Some loops at work on a server in this process, in time that the test moves. What they hear of can be held up. */
export class LoopScene {
  readonly clock = new ManualClock();
  /** Requests of the loops that were no reads: `METHOD path`. */
  readonly writes: string[] = [];
  /** Requests of the loops that were no watches: `GET path`. */
  readonly reads: string[] = [];
  readonly signal = new AbortController().signal;
  /** Requests of the loops, as `METHOD path`, that never arrive. */
  lost: RegExp | undefined;
  /** What the loops are answered, given the request as `METHOD path` and the true answer; watches are left alone. */
  altered: ((request: string, body: string) => string) | undefined;
  readonly #loops: readonly ClusterLoop[];
  readonly #held = new Map<string, Gate>();
  #api: InProcessApi | undefined;
  #stopLoops: () => Promise<void> = async () => undefined;

  constructor(...loops: readonly ClusterLoop[]) {
    this.#loops = loops;
  }

  async start(): Promise<void> {
    this.#api = await InProcessApi.start({ env: { clock: this.clock } });
    await this.startLoops();
  }

  async stop(): Promise<void> {
    await this.stopLoops();
    await this.#api?.stop();
  }

  /** Starts the loops, which remember nothing of their former life. */
  async startLoops(): Promise<void> {
    const { env } = this.#server();
    const stopping = new AbortController();
    const manager = new Manager({ env, name: 'loops' });
    const metrics = new KubeMetrics(env.clock);
    manager.add(...clusterServices({ env, clientOf: (who) => this.#clientOf(who), metrics, loops: this.#loops }));
    const running = manager.run(stopping.signal);
    this.#stopLoops = async () => {
      stopping.abort();
      for (const gate of this.#held.values()) gate.open();
      this.#held.clear();
      await running;
    };
    await this.settle();
  }

  async stopLoops(): Promise<void> {
    await this.#stopLoops();
    this.#stopLoops = async () => undefined;
  }

  /** Whoever the tests act as: may do everything. */
  get client(): Client {
    return new Client(this.#transport({ user: 'admin', groups: ['system:masters'] }), 'test');
  }

  async namespace(name: string): Promise<void> {
    await this.client.create(namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, this.signal);
  }

  create<T extends KubeObject>(resource: Resource<T>, object: Partial<T> & Pick<T, 'metadata'>): Promise<T> {
    return this.client.create(resource, object as T, this.signal);
  }

  get<T extends KubeObject>(resource: Resource<T>, namespace: string, name: string): Promise<T> {
    return this.client.get(resource, namespace, name, this.signal);
  }

  async patchStatus(resource: Resource, namespace: string, name: string, status: JsonObject): Promise<void> {
    const patch = { type: 'merge', body: { status } } as const;
    await this.client.patch(resource, namespace, name, patch, this.signal, { subresource: 'status' });
  }

  /** What people were told in a namespace: `name type reason: message`. */
  async events(namespace: string): Promise<readonly string[]> {
    const events: Resource<CoreEvent> = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };
    const { items } = await this.client.list(events, { namespace }, this.signal);
    return items.map(
      ({ involvedObject, type, reason, message }) => `${involvedObject.name} ${type} ${reason}: ${message}`,
    );
  }

  /** From now on the loops hear nothing of changes to this resource. */
  hold(plural: string): void {
    if (!this.#held.has(plural)) this.#held.set(plural, new Gate());
  }

  /** Lets them hear of all that was held up. */
  async release(plural: string): Promise<void> {
    this.#held.get(plural)?.open();
    this.#held.delete(plural);
    await this.settle();
  }

  /** Lets everything happen that does not wait for time to pass. */
  async settle(): Promise<void> {
    for (let turn = 0; turn < 20; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      this.clock.advance(0);
    }
  }

  /** Lets time pass, in steps in which everything can react. */
  async pass(durationMs: number, stepMs = 1000): Promise<void> {
    for (let leftMs = durationMs; leftMs > 0; leftMs -= stepMs) {
      this.clock.advance(Math.min(stepMs, leftMs));
      await this.settle();
    }
  }

  /** Waits, in next to no virtual time, until the check does not throw. */
  async until<T>(check: () => T | Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      await this.settle();
      try {
        return await check();
      } catch (error) {
        if (tries === 50) throw error;
        this.clock.advance(20);
      }
    }
  }

  #server(): InProcessApi {
    if (!this.#api) throw new Error('the server was not started');
    return this.#api;
  }

  #transport(identity: LocalIdentity): Transport {
    return new InProcessTransport((request) => this.#server().core.handle(request), identity);
  }

  #clientOf(identity: LocalIdentity): Client {
    const real = this.#transport(identity);
    const send = async (request: TransportRequest): Promise<TransportResponse> => {
      const plural = /\/([a-z]+)\?(?:.*&)?watch=true/.exec(request.path)?.[1];
      if (plural === undefined && !request.path.includes('/events'))
        (request.method === 'GET' ? this.reads : this.writes).push(
          `${request.method} ${request.path.replace(/\?fieldManager.*/, '')}`,
        );
      if (this.lost?.test(`${request.method} ${request.path}`)) throw new TransportError('lost on the way');
      const response = await real.send(request);
      if (plural !== undefined) return { ...response, body: this.#gated(plural, response.body) };
      return this.altered ? { ...response, body: this.#altered(request, response.body) } : response;
    };
    return new Client({ send, close: () => undefined }, 'kube-controller-manager');
  }

  async *#altered({ method, path }: TransportRequest, body: AsyncIterable<string>): AsyncGenerator<string> {
    let text = '';
    for await (const piece of body) text += piece;
    yield this.altered?.(`${method} ${path}`, text) ?? text;
  }

  async *#gated(plural: string, body: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const piece of body) {
      await this.#held.get(plural)?.opened;
      yield piece;
    }
  }
}

class Gate {
  readonly opened: Promise<void>;
  open: () => void = () => undefined;

  constructor() {
    this.opened = new Promise((resolve) => (this.open = resolve));
  }
}
