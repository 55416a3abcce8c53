import { InProcessApi } from '../../../test/support/in-process.ts';
import type { KubeObject, OwnerReference } from '../../api/meta.ts';
import { ManualClock, seededRandom } from '../../env/test.ts';
import { Client } from '../../kube/client.ts';
import type { FaultPlan } from '../../kube/faults.ts';
import { FaultyTransport } from '../../kube/faulty-transport.ts';
import { InProcessTransport, type LocalIdentity } from '../../kube/in-process-transport.ts';
import { Manager } from '../../kube/manager.ts';
import { KubeMetrics } from '../../kube/metrics.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Transport, TransportRequest } from '../../kube/transport.ts';
import { clusterServices } from '../cluster.ts';
import { namespaces } from '../resources.ts';
import { isDeletingDependents, referencesOf } from './graph.ts';
import { garbageCollectionLoop } from './loop.ts';

const core = (plural: string, kind: string): Resource => ({ group: '', version: 'v1', plural, kind, namespaced: true });

/** Kinds that own each other here. */
export const KINDS: readonly Resource[] = [core('configmaps', 'ConfigMap'), core('secrets', 'Secret')];

const ROOM = 'room';

/** A garbage collector that all sorts of things happen to, and whose every deletion is judged by what is true then. */
export class FaultyWorld {
  readonly clock = new ManualClock();
  readonly signal = new AbortController().signal;
  /** What it has deleted though an owner lived. */
  readonly wrongs: string[] = [];
  deletions = 0;
  crashes = 0;
  readonly #seed: number;
  readonly #plan: Partial<FaultPlan>;
  readonly #transports: FaultyTransport[] = [];
  #api!: InProcessApi;
  #running: { readonly stop: AbortController; readonly ended: Promise<void> } | undefined;
  #restarting: Promise<void> = Promise.resolve();

  constructor(seed: number, plan: Partial<FaultPlan>) {
    this.#seed = seed;
    this.#plan = plan;
  }

  get client(): Client {
    return new Client(this.#transport({ user: 'admin', groups: ['system:masters'] }), 'test');
  }

  async start(): Promise<void> {
    this.#api = await InProcessApi.start({ env: { clock: this.clock, random: seededRandom(this.#seed) } });
    await this.client.create(
      namespaces,
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: ROOM } },
      this.signal,
    );
    this.#startLoop(this.#plan);
  }

  async stop(): Promise<void> {
    await this.#stopLoop();
    await this.#api.stop();
  }

  /** From now on nothing goes wrong. */
  async calm(): Promise<void> {
    for (const transport of this.#transports) transport.calm();
    await this.#restarting;
  }

  async make(kind: Resource, name: string, ownerReferences: OwnerReference[]): Promise<KubeObject> {
    const object = { apiVersion: 'v1', kind: kind.kind, metadata: { name, namespace: ROOM, ownerReferences } };
    return this.client.create(kind, object, this.signal);
  }

  async all(): Promise<readonly { readonly kind: Resource; readonly object: KubeObject }[]> {
    const lists = await Promise.all(KINDS.map((kind) => this.client.list(kind, { namespace: ROOM }, this.signal)));
    return lists.flatMap(({ items }, index) => items.map((object) => ({ kind: KINDS[index] as Resource, object })));
  }

  /** The owner that a reference leads to, if it exists. */
  ownerOf(reference: OwnerReference): KubeObject | undefined {
    const kind = KINDS.find((each) => each.kind === reference.kind);
    const stored = kind && this.#api.store.get(kind.plural, `${ROOM}/${reference.name}`);
    const owner = stored && (JSON.parse(stored.text) as KubeObject);
    return owner?.metadata.uid === reference.uid ? owner : undefined;
  }

  /** Lets time pass, in steps in which everything can react. */
  async pass(durationMs: number, stepMs = 500): Promise<void> {
    for (let leftMs = durationMs; leftMs > 0; leftMs -= stepMs) {
      this.clock.advance(Math.min(stepMs, leftMs));
      await this.settle();
    }
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 10; turn++) {
      await new Promise((resolve) => setImmediate(resolve));
      this.clock.advance(0);
    }
  }

  #startLoop(plan: Partial<FaultPlan>): void {
    const { env } = this.#api;
    const stop = new AbortController();
    const clientOf = (identity: LocalIdentity): Client => {
      const transport = new FaultyTransport(this.#judging(this.#transport(identity)), {
        clock: this.clock,
        random: env.random,
        plan,
        readsAreConsistent: true,
        onCrash: () => this.#crash(),
      });
      this.#transports.push(transport);
      return new Client(transport, 'gc');
    };
    const manager = new Manager({ env, name: 'gc' });
    const metrics = new KubeMetrics(env.clock);
    manager.add(...clusterServices({ env, clientOf, metrics, loops: [garbageCollectionLoop] }));
    this.#running = { stop, ended: manager.run(stop.signal) };
  }

  async #stopLoop(): Promise<void> {
    this.#running?.stop.abort();
    await this.#running?.ended;
  }

  #crash(): void {
    if (this.#running?.stop.signal.aborted) return;
    this.crashes++;
    this.#running?.stop.abort();
    const plan = this.#transports.at(-1)?.plan ?? {};
    this.#restarting = (async () => {
      await this.#running?.ended;
      this.#transports.length = 0;
      this.#startLoop(plan);
    })();
  }

  #transport(identity: LocalIdentity): Transport {
    return new InProcessTransport((request) => this.#api.core.handle(request), identity);
  }

  /** Looks at what is true in the moment in which a deletion reaches the server. */
  #judging(inner: Transport): Transport {
    const send = async (request: TransportRequest) => {
      const wrong = request.method === 'DELETE' ? this.#wrongOf(request) : undefined;
      const response = await inner.send(request);
      if (request.method !== 'DELETE' || response.status !== 200) return response;
      this.deletions++;
      if (wrong !== undefined) this.wrongs.push(wrong);
      return response;
    };
    return { send, close: () => inner.close() };
  }

  #wrongOf({ path }: TransportRequest): string | undefined {
    const [, plural = '', name = ''] = /\/namespaces\/room\/([a-z]+)\/([^?]+)/.exec(path) ?? [];
    const stored = this.#api.store.get(plural, `${ROOM}/${name}`);
    if (!stored) return undefined;
    const { metadata } = JSON.parse(stored.text) as KubeObject;
    const references = referencesOf(metadata);
    const living = references
      .map((reference) => this.ownerOf(reference))
      .find((owner) => owner !== undefined && !isDeletingDependents(owner.metadata));
    if (references.length > 0 && living === undefined) return undefined;
    return `${name} was deleted though ${living?.metadata.name ?? 'nobody ever'} owned it`;
  }
}
