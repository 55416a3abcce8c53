import type { KubeObject } from '../../api/meta.ts';
import { qualified, type ResourceRef } from '../../api/status.ts';
import { type Env, sleep } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { discover, preferredResources } from '../../kube/discovery.ts';
import { errorText } from '../../kube/error-text.ts';
import { Informer, type InformerChange } from '../../kube/informer.ts';
import { withoutManagedFields } from '../../kube/object-cache.ts';
import type { Resource } from '../../kube/resource.ts';
import { byNamespace } from '../indexes.ts';

export interface TrackedObjectsOptions {
  readonly env: Env;
  readonly client: Client;
  /** Watched anyway. */
  readonly pods: Informer<KubeObject>;
  readonly onChange: (resource: ResourceRef, change: InformerChange<KubeObject>) => void;
}

/** Of these it matters what they say; of all others, how many there are. */
const READ_WHOLE: ReadonlySet<string> = new Set(['services', 'persistentvolumeclaims']);
/** How long the first snapshot of a resource is waited for. */
const SYNC_MS_MAX = 10_000;
/** How long discovery is trusted when it does not know a resource. */
const TRUSTED_MS = 5000;

interface Tracked {
  readonly informer: Informer<KubeObject>;
  readonly stop: () => Promise<void>;
}

/** Watches what quotas count, from when one does: most resources are counted by none. */
export class TrackedObjects {
  readonly #options: TrackedObjectsOptions;
  readonly #tracked = new Map<string, Tracked>();
  #served = new Map<string, Resource>();
  #askedMs = Number.NEGATIVE_INFINITY;

  constructor(options: TrackedObjectsOptions) {
    this.#options = options;
    const { pods, onChange } = options;
    pods.onChange((change) => onChange({ group: '', plural: 'pods' }, change));
  }

  /** The informer of a resource, once it knows everything; undefined where the resource is not served, or not yet told. */
  async informerOf(resource: ResourceRef, signal: AbortSignal): Promise<Informer<KubeObject> | undefined> {
    const { pods, env } = this.#options;
    if (qualified(resource) === 'pods') return pods;
    const informer = await this.#watched(resource, signal);
    if (!informer) return undefined;
    if (!informer.hasSynced) await Promise.race([informer.synced, sleep(env.clock, SYNC_MS_MAX, signal)]);
    return informer.hasSynced ? informer : undefined;
  }

  /** Says that other resources may be served than before. */
  doubt(): void {
    this.#askedMs = Number.NEGATIVE_INFINITY;
  }

  /** Ends the watches of all but these. */
  async keep(resources: Iterable<ResourceRef>): Promise<void> {
    const kept = new Set([...resources].map(qualified));
    const ending = [...this.#tracked].filter(([id]) => !kept.has(id));
    for (const [id] of ending) this.#tracked.delete(id);
    await Promise.all(ending.map(([, { stop }]) => stop()));
  }

  async #watched(ref: ResourceRef, signal: AbortSignal): Promise<Informer<KubeObject> | undefined> {
    const known = this.#tracked.get(qualified(ref));
    if (known) return known.informer;
    const resource = await this.#resolve(ref, signal);
    if (!resource) return undefined;
    const started = this.#tracked.get(qualified(ref)) ?? this.#start(ref, resource);
    this.#tracked.set(qualified(ref), started);
    return started.informer;
  }

  #start(ref: ResourceRef, resource: Resource): Tracked {
    const { env, client, onChange } = this.#options;
    const isWhole = ref.group === '' && READ_WHOLE.has(ref.plural);
    const informer = new Informer<KubeObject>({
      env,
      client: isWhole ? client : client.metadataOnly(),
      resource,
      indexes: byNamespace,
      transform: isWhole ? withoutManagedFields : bare,
    });
    informer.onChange((change) => onChange(ref, change));
    const stopping = new AbortController();
    const running = informer.run(stopping.signal).catch((error: unknown) => {
      env.log.error('what a quota counts is watched no more', { resource: qualified(ref), error: errorText(error) });
    });
    return {
      informer,
      stop: async () => {
        stopping.abort();
        await running;
      },
    };
  }

  async #resolve(ref: ResourceRef, signal: AbortSignal): Promise<Resource | undefined> {
    const known = this.#served.get(qualified(ref));
    const nowMs = this.#options.env.clock.now();
    if (known || nowMs - this.#askedMs < TRUSTED_MS) return known;
    const discovery = await discover(this.#options.client, signal);
    this.#askedMs = nowMs;
    const served = preferredResources(discovery).filter(
      ({ namespaced, verbs }) =>
        namespaced && ['create', 'list', 'watch', 'delete'].every((verb) => verbs.includes(verb)),
    );
    this.#served = new Map(served.map((each) => [qualified(each), each]));
    return this.#served.get(qualified(ref));
  }
}

/** Enough to count an object. */
function bare({ apiVersion, kind, metadata }: KubeObject): KubeObject {
  const { name, namespace, uid, resourceVersion } = metadata;
  return { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } };
}
