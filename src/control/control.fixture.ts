import { InProcessApi } from '../../test/support/in-process.ts';
import type { JsonObject, KubeObject } from '../api/meta.ts';
import { ManualClock } from '../env/test.ts';
import { Client } from '../kube/client.ts';
import type { CoreEvent } from '../kube/event-correlator.ts';
import { EventRecorder } from '../kube/event-recorder.ts';
import { InProcessTransport, type LocalIdentity } from '../kube/in-process-transport.ts';
import { Manager } from '../kube/manager.ts';
import type { Resource } from '../kube/resource.ts';
import type { Service } from '../kube/service.ts';
import { SharedInformers } from '../kube/shared-informers.ts';
import { TransportError, type TransportRequest, type TransportResponse } from '../kube/transport.ts';
import type { ControlContext } from './context.ts';
import { install, installation } from './installation/install.ts';
import { CONTROLLER_IDENTITY } from './installation/rights.ts';

const namespaces: Resource = { group: '', version: 'v1', plural: 'namespaces', kind: 'Namespace', namespaced: false };
const events: Resource<CoreEvent> = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };

const ADMIN: LocalIdentity = { user: 'admin', groups: ['system:masters'] };

/** The namespace of all that a scene is about. */
export const NAMESPACE = 'shop';

/** Made once: it takes longer than most tests. */
let installed: Promise<InProcessApi> | undefined;

/** Some controllers at work, with no more rights than they get, on a server in this process, in time that the test moves. */
export class ControlScene {
  readonly clock = new ManualClock();
  readonly signal = new AbortController().signal;
  /** What the controllers wrote: `METHOD path`. */
  readonly writes: string[] = [];
  /** After so many more writes the controllers are as good as dead: they hear no answer, and nothing of theirs arrives. */
  writesLeft = Number.POSITIVE_INFINITY;
  /** Whether the next write of the controllers that matches gets lost on its way back. */
  loseAnswerOf: RegExp | undefined;
  /** Opens what is held up, by resource. */
  readonly #held = new Map<string, { readonly opened: Promise<void>; readonly open: () => void }>();
  readonly #makers: readonly ((context: ControlContext) => Service)[];
  #api: InProcessApi | undefined;
  #stopControllers: () => Promise<void> = async () => undefined;

  constructor(...makers: readonly ((context: ControlContext) => Service)[]) {
    this.#makers = makers;
  }

  async start(): Promise<void> {
    installed ??= new ControlScene().#install();
    this.#api = await InProcessApi.start({ env: { clock: this.clock }, from: await installed });
    await this.startControllers();
  }

  /** A server that has stopped, with all on its disk that a scene begins with. */
  async #install(): Promise<InProcessApi> {
    this.#api = await InProcessApi.start({ env: { clock: this.clock } });
    await this.#withTime(install(this.client, this.clock, installation({ ours: [], initial: [] }), this.signal));
    await this.client.create(
      namespaces,
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: NAMESPACE } },
      this.signal,
    );
    await this.stop();
    return this.#api;
  }

  async stop(): Promise<void> {
    await this.stopControllers();
    await this.#api?.stop();
  }

  /** Starts the controllers, which remember nothing of their former life. */
  async startControllers(): Promise<void> {
    const { env } = this.#server();
    const stopping = new AbortController();
    const client = this.#clientOf('controllers');
    const informers = new SharedInformers({ client, env });
    const recorder = new EventRecorder({ client, env, component: 'virt-controller' });
    const services = this.#makers.map((make) => make({ env, client, informers, recorder }));
    const manager = new Manager({ env, name: 'controllers' });
    manager.add(...informers.all(), recorder, ...services);
    const running = manager.run(stopping.signal);
    this.#stopControllers = async () => {
      stopping.abort();
      for (const { open } of this.#held.values()) open();
      this.#held.clear();
      await running;
    };
    await this.settle();
  }

  async stopControllers(): Promise<void> {
    await this.#stopControllers();
    this.#stopControllers = async () => undefined;
  }

  /** Whoever the tests act as: may do everything. */
  get client(): Client {
    return new Client(this.clientTransport(), 'test');
  }

  create<T extends KubeObject>(resource: Resource<T>, object: Partial<T>): Promise<T> {
    const { metadata = {} } = object;
    const namespace = resource.namespaced ? { namespace: NAMESPACE } : {};
    return this.client.create(resource, { ...object, metadata: { ...namespace, ...metadata } } as T, this.signal);
  }

  get<T extends KubeObject>(resource: Resource<T>, name: string): Promise<T> {
    return this.client.get(resource, resource.namespaced ? NAMESPACE : '', name, this.signal);
  }

  /** Undefined where it is gone. */
  async find<T extends KubeObject>(resource: Resource<T>, name: string): Promise<T | undefined> {
    const { items } = await this.client.list(resource, { namespace: NAMESPACE }, this.signal);
    return items.find(({ metadata }) => metadata.name === name);
  }

  async list<T extends KubeObject>(resource: Resource<T>): Promise<readonly T[]> {
    return (await this.client.list(resource, { namespace: NAMESPACE }, this.signal)).items;
  }

  async patch(resource: Resource, name: string, body: JsonObject, subresource?: string): Promise<void> {
    const options = subresource === undefined ? {} : { subresource };
    await this.client.patch(resource, NAMESPACE, name, { type: 'merge', body }, this.signal, options);
  }

  async delete(resource: Resource, name: string, gracePeriodSeconds?: number): Promise<void> {
    const options = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    await this.client.delete(resource, NAMESPACE, name, this.signal, options);
  }

  /** What people were told: `name type reason: message`. */
  async events(namespace = NAMESPACE): Promise<readonly string[]> {
    return (await this.client.list(events, { namespace }, this.signal)).items.map(
      ({ involvedObject, type, reason, message }) => `${involvedObject.name} ${type} ${reason}: ${message}`,
    );
  }

  /** From now on the controllers hear nothing of changes to this resource. */
  hold(plural: string): void {
    let open = (): void => undefined;
    const opened = new Promise<void>((resolve) => (open = resolve));
    this.#held.set(plural, { opened, open });
  }

  /** Lets them hear of all that was held up. */
  release(plural: string): void {
    this.#held.get(plural)?.open();
    this.#held.delete(plural);
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
        if (tries === 100) throw error;
        this.clock.advance(20);
      }
    }
  }

  #server(): InProcessApi {
    if (!this.#api) throw new Error('the server was not started');
    return this.#api;
  }

  /** The way to the server of somebody, who may do everything unless named. */
  clientTransport(identity: LocalIdentity = ADMIN): InProcessTransport {
    return new InProcessTransport((request) => this.#server().core.handle(request), identity);
  }

  /** Lets time pass until a promise is kept. */
  async #withTime<T>(promise: Promise<T>): Promise<T> {
    const kept = new AbortController();
    const done = promise.finally(() => kept.abort());
    // Whoever awaits `done` below hears of the failure.
    done.catch(() => undefined);
    while (!kept.signal.aborted) await this.pass(20, 20);
    return done;
  }

  #clientOf(manager: string): Client {
    const real = this.clientTransport(CONTROLLER_IDENTITY);
    const send = async (request: TransportRequest): Promise<TransportResponse> => {
      const what = `${request.method} ${request.path.replace(/\?.*/, '')}`;
      const isWrite = request.method !== 'GET' && !what.includes('/events');
      if (isWrite) this.#countWrite(what);
      const response = await real.send(request);
      const plural = /\/([a-z]+)\?(?:.*&)?watch=true/.exec(request.path)?.[1];
      if (plural !== undefined) return { ...response, body: this.#gated(plural, response.body) };
      const isLost = isWrite && (this.writesLeft <= 0 || this.loseAnswerOf?.test(what) === true);
      if (!isLost) return response;
      this.loseAnswerOf = undefined;
      throw new TransportError('the answer was lost');
    };
    return new Client({ send, close: () => undefined }, manager);
  }

  async *#gated(plural: string, body: AsyncIterable<string>): AsyncGenerator<string> {
    for await (const piece of body) {
      await this.#held.get(plural)?.opened;
      yield piece;
    }
  }

  #countWrite(what: string): void {
    if (this.writesLeft <= 0) throw new TransportError('nobody is there to send it');
    this.writesLeft--;
    this.writes.push(what);
  }
}
