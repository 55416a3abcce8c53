import { apiVersionOf, type KubeObject } from '../../api/meta.ts';
import { type Env, sleep, type Timer } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { discover, type DiscoveredResource, type Discovery, preferredResources } from '../../kube/discovery.ts';
import { errorText } from '../../kube/error-text.ts';
import { Informer } from '../../kube/informer.ts';
import type { Resource } from '../../kube/resource.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import type { NodeMetadata, OwnerGraph } from './graph.ts';
import type { Kinds } from './owners.ts';

export interface MonitorsOptions {
  readonly env: Env;
  /** Needs the metadata alone. */
  readonly client: Client;
  readonly graph: Pick<OwnerGraph, 'observe' | 'remove'>;
  /** What others watch already need not be watched again. */
  readonly shared: Pick<SharedInformers, 'find'>;
}

/** How often discovery is asked without a reason, as upstream does: aggregated APIs change without an event. */
const PERIOD_MS = 30_000;
/** Many definitions are often made in a row. */
const INTERVAL_MS_MIN = 500;
/** How long discovery is trusted when somebody refers to a kind that it does not know: references can be nonsense. */
const TRUSTED_MS = 5000;
/** How long the first snapshots are waited for: one resource that cannot be read must not stop everything. */
const SYNC_MS_MAX = 30_000;

/** What can be deleted but is never collected, as upstream has it: there are too many, and they end by themselves. */
const IGNORED: ReadonlySet<string> = new Set(['events.', 'events.events.k8s.io']);

interface Monitor {
  readonly resource: Resource;
  readonly informer: Informer<KubeObject>;
  /** Tells the graph nothing any more; resolves when it has ended. */
  readonly end: () => Promise<void>;
}

/** Watches all that can be deleted, of whatever kind, for as long as it is served, and tells a graph of it. */
export class Monitors implements Kinds {
  readonly #options: MonitorsOptions;
  readonly #monitors = new Map<string, Monitor>();
  #kinds = new Map<string, Resource>();
  #askedMs = Number.NEGATIVE_INFINITY;
  #isStale = false;
  #wake: () => void = () => undefined;
  #fail: (error: unknown) => void = () => undefined;
  /** Resolves when discovery has answered for the first time. */
  readonly #begun: Promise<void>;
  #resolveBegun: () => void = () => undefined;

  constructor(options: MonitorsOptions) {
    this.#options = options;
    this.#begun = new Promise((resolve) => (this.#resolveBegun = resolve));
  }

  resourceOf(apiVersion: string, kind: string): Resource | undefined {
    return this.#kinds.get(keyOfKind(apiVersion, kind));
  }

  doubt(): void {
    if (this.#options.env.clock.now() - this.#askedMs >= TRUSTED_MS) this.refresh();
  }

  /** Asks discovery again, soon. */
  refresh(): void {
    this.#isStale = true;
    this.#wake();
  }

  /** Follows what is served until the signal aborts; rejects with what the graph throws. */
  async run(signal: AbortSignal): Promise<void> {
    const failed = new Promise<never>((_, reject) => (this.#fail = reject));
    try {
      await Promise.race([this.#follow(signal), failed]);
    } finally {
      await Promise.all([...this.#monitors.values()].map(({ end }) => end()));
    }
  }

  /** Resolves when all that is watched has been seen once, or when that takes too long. */
  async synced(signal: AbortSignal): Promise<void> {
    const isOver = sleep(this.#options.env.clock, SYNC_MS_MAX, signal);
    await Promise.race([isOver, this.#begun]);
    await Promise.race([isOver, Promise.all([...this.#monitors.values()].map(({ informer }) => informer.synced))]);
  }

  async #follow(signal: AbortSignal): Promise<void> {
    const { env, client } = this.#options;
    while (!signal.aborted) {
      this.#isStale = false;
      this.#askedMs = env.clock.now();
      try {
        await this.#apply(await discover(client, signal), signal);
        this.#resolveBegun();
      } catch (error) {
        if (!signal.aborted) env.log.warn('what is served cannot be told', { error: errorText(error) });
      }
      await sleep(env.clock, INTERVAL_MS_MIN, signal);
      await this.#wait(PERIOD_MS - INTERVAL_MS_MIN, signal);
    }
  }

  /** Until somebody asks for it, or for a while. */
  #wait(delayMs: number, signal: AbortSignal): Promise<void> {
    if (this.#isStale || signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      let timer: Timer | undefined;
      const done = (): void => {
        timer?.cancel();
        signal.removeEventListener('abort', done);
        this.#wake = () => undefined;
        resolve();
      };
      timer = this.#options.env.clock.setTimer(done, delayMs);
      signal.addEventListener('abort', done, { once: true });
      this.#wake = done;
    });
  }

  async #apply(discovery: Discovery, signal: AbortSignal): Promise<void> {
    // No server serves nothing.
    if (discovery.resources.length === 0) return;
    this.#learnKinds(discovery);
    const wanted = new Map(
      preferredResources(discovery)
        .filter(isCollectable)
        .map((each) => [idOf(each), each]),
    );
    for (const [id, { verbs: _verbs, ...resource }] of wanted) {
      if (!this.#monitors.has(id)) this.#monitors.set(id, this.#watch(resource));
    }
    for (const [id, monitor] of this.#monitors) {
      const { group, version } = monitor.resource;
      // What a server that does not answer serves is served again once it does.
      if (wanted.has(id) || discovery.failures.has(apiVersionOf(group, version))) continue;
      await this.#succession(monitor, signal);
      await this.#abandon(id, monitor);
    }
  }

  /** Where another version takes over, nothing may seem to be gone in between. */
  async #succession({ resource }: Monitor, signal: AbortSignal): Promise<void> {
    const heirs = [...this.#monitors.values()].filter(
      ({ resource: each }) =>
        each.group === resource.group && each.plural === resource.plural && each.version !== resource.version,
    );
    if (heirs.length === 0) return;
    const isOver = sleep(this.#options.env.clock, SYNC_MS_MAX, signal);
    await Promise.race([isOver, Promise.all(heirs.map(({ informer }) => informer.synced))]);
  }

  #learnKinds({ resources, failures }: Discovery): void {
    const kinds = new Map<string, Resource>();
    for (const [key, resource] of this.#kinds) {
      if (failures.has(apiVersionOf(resource.group, resource.version))) kinds.set(key, resource);
    }
    for (const { verbs, ...resource } of resources) {
      const key = keyOfKind(apiVersionOf(resource.group, resource.version), resource.kind);
      // A kind may be that of more than one resource; the one that can be read is meant.
      if (verbs.includes('get') && !kinds.has(key)) kinds.set(key, resource);
    }
    this.#kinds = kinds;
  }

  #watch(resource: Resource): Monitor {
    const { env, client, shared } = this.#options;
    const known = shared.find(resource);
    // A shared informer goes on when nobody here listens any more.
    if (known) return this.#listen(resource, known, async () => undefined);
    const own = new Informer<KubeObject>({ client, env, resource, transform: metadataOf });
    const stopping = new AbortController();
    const running = own.run(stopping.signal).catch((error: unknown) => this.#fail(error));
    return this.#listen(resource, own, async () => {
      stopping.abort();
      await running;
    });
  }

  #listen(resource: Resource, informer: Informer<KubeObject>, end: () => Promise<void>): Monitor {
    const { graph } = this.#options;
    let isListening = true;
    informer.onChange(({ type, object }) => {
      if (!isListening) return;
      if (type === 'deleted') graph.remove(resource, object.metadata, 'deleted');
      else graph.observe(resource, object.metadata);
    });
    return {
      resource,
      informer,
      end: async () => {
        isListening = false;
        await end();
      },
    };
  }

  /** Ends the watch of what is not served any more. What it showed may or may not be there. */
  async #abandon(id: string, { resource, informer, end }: Monitor): Promise<void> {
    this.#monitors.delete(id);
    await end();
    for (const { metadata } of informer.list()) this.#options.graph.remove(resource, metadata, 'unwatched');
  }
}

/** Whether a resource is one that garbage is collected of. */
export function isCollectable({ group, plural, verbs }: DiscoveredResource): boolean {
  return !IGNORED.has(`${plural}.${group}`) && ['delete', 'list', 'watch'].every((verb) => verbs.includes(verb));
}

/** All that is kept of an object; millions may be. */
function metadataOf({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion, ownerReferences, finalizers, deletionTimestamp } = metadata;
  const kept: NodeMetadata & { resourceVersion?: string } = {
    ...(name === undefined ? {} : { name }),
    ...(namespace === undefined ? {} : { namespace }),
    ...(uid === undefined ? {} : { uid }),
    ...(resourceVersion === undefined ? {} : { resourceVersion }),
    ...(ownerReferences === undefined ? {} : { ownerReferences }),
    ...(finalizers === undefined ? {} : { finalizers }),
    ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
  };
  return { apiVersion, kind, metadata: kept };
}

function idOf({ group, version, plural }: Resource): string {
  return `${plural}.${version}.${group}`;
}

function keyOfKind(apiVersion: string, kind: string): string {
  return `${apiVersion} ${kind}`;
}
