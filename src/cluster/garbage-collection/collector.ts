import type { KubeObject, OwnerReference } from '../../api/meta.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import { discover, preferredResources } from '../../kube/discovery.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import type { Resource } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';
import type { SharedInformers } from '../../kube/shared-informers.ts';
import { Actions } from './actions.ts';
import { decide, type Judged } from './decide.ts';
import {
  coordinatesOf,
  FOREGROUND_FINALIZER,
  type GraphNode,
  isDeletingDependents,
  isObserved,
  isOrphaning,
  type Observed,
  ORPHAN_FINALIZER,
  OwnerGraph,
  referencesOf,
} from './graph.ts';
import { isCollectable, Monitors } from './monitors.ts';
import { Owners } from './owners.ts';

export interface GarbageCollectorOptions {
  readonly env: Env;
  readonly client: Client;
  readonly shared: Pick<SharedInformers, 'find'>;
  /** Resources whose changes change what is served. */
  readonly servings: readonly Pick<Informer<KubeObject>, 'onChange'>[];
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly metrics: KubeMetrics;
}

const WORKERS = 20;
/** An owner may have to let go of thousands of dependents. */
const RECONCILE_TIMEOUT_MS = 10 * 60_000;
/** How soon owners are looked for again that exist but that no watch shows; doubled each time. */
const SIGHTING_MS = 500;
const SIGHTING_MS_MAX = 1_000_000;
const PAGE_LIMIT = 500;
/** Dependents that are let go at once. */
const RELEASES_AT_ONCE = 10;

/**
 * Deletes what has no owner left. All that is watched only says where to look: before anything is deleted, the server
 * is asked for the object and for each of its owners, and it deletes nothing but that very state of the object.
 */
export class GarbageCollector implements Service {
  readonly name = 'garbage collector';
  readonly #options: GarbageCollectorOptions;
  /** Reads the metadata of objects alone. */
  readonly #client: Client;
  readonly #graph: OwnerGraph;
  readonly #monitors: Monitors;
  readonly #owners: Owners;
  readonly #actions: Actions;
  readonly #controller: Controller;

  constructor(options: GarbageCollectorOptions) {
    const { env, metrics, shared } = options;
    this.#options = options;
    this.#client = options.client.metadataOnly();
    this.#controller = new Controller({
      name: 'garbage-collector',
      env,
      metrics,
      workers: WORKERS,
      reconcileTimeoutMs: RECONCILE_TIMEOUT_MS,
      reconcile: (uid, signal) => this.#reconcile(uid, signal),
    });
    this.#graph = new OwnerGraph({
      check: (uid) => this.#controller.enqueue(uid),
      onInvalidNamespace: (dependent, reference) => this.#reportNamespace(dependent, reference),
    });
    this.#monitors = new Monitors({ env, client: this.#client, graph: this.#graph, shared });
    this.#owners = new Owners({ client: this.#client, kinds: this.#monitors });
    this.#actions = new Actions(this.#client);
    for (const each of options.servings) each.onChange(() => this.#monitors.refresh());
  }

  async run(signal: AbortSignal): Promise<void> {
    const stop = new AbortController();
    const onAbort = (): void => stop.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    const ending = (part: Promise<void>): Promise<void> => part.finally(() => stop.abort());
    try {
      await Promise.all([ending(this.#monitors.run(stop.signal)), ending(this.#work(stop.signal))]);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  /** Not before all is known that there is: owners that have not been seen yet would all have to be asked for. */
  async #work(signal: AbortSignal): Promise<void> {
    await this.#monitors.synced(signal);
    await this.#controller.run(signal);
  }

  async #reconcile(uid: string, signal: AbortSignal): Promise<Result | void> {
    const node = this.#graph.get(uid);
    if (!node) return;
    const { state } = node;
    if (!isObserved(state)) return this.#verify(node, signal);
    if (isOrphaning(state.metadata)) return this.#orphan(state, signal);
    if (isDeletingDependents(state.metadata)) return this.#deleteDependents(node, state, signal);
    // It goes by itself, and its dependents are looked at when it has gone.
    if (state.metadata.deletionTimestamp !== undefined) return;
    if (this.#graph.isInDoubt(node)) return this.#collect(node, state, signal);
  }

  /** Asks for an owner that no watch shows, as one of its dependents says where it is. */
  async #verify(node: GraphNode, signal: AbortSignal): Promise<Result | void> {
    const { state, uid } = node;
    if (isObserved(state) || state.isAbsent) return;
    const { namespace, ...coordinates } = state.presumed;
    const verdict = await this.#owners.judge({ ...coordinates, uid }, namespace, state.wasDeleted, signal);
    // Those who refer to what cannot be have to be told so.
    if (verdict === 'unresolvable') {
      for (const dependent of node.dependents ?? []) this.#controller.enqueue(dependent.uid);
      return;
    }
    this.#graph.settle(node, verdict === 'dangling');
    if (verdict === 'dangling') return;
    // No watch may ever show it, nor its end.
    return { requeueAfterMs: Math.min(SIGHTING_MS * 2 ** state.sightings, SIGHTING_MS_MAX) };
  }

  /** Looks at the owners of an object, and does what follows. */
  async #collect(node: GraphNode, state: Observed, signal: AbortSignal): Promise<Result | void> {
    const live = await this.#actions.read(state, signal);
    // A watch will tell.
    if (!live || live.deletionTimestamp !== undefined) return;
    const references = referencesOf(live);
    // Of all that there may be, none is asked for where one cannot be.
    for (const each of references) this.#owners.expectKnown(each, this.#wasDeleted(each));
    const owners: Judged[] = [];
    let hasUnseen = false;
    for (const reference of references) {
      const owner = this.#graph.get(reference.uid)?.state;
      const isUnseen = owner === undefined || !isObserved(owner);
      const wasDeleted = this.#wasDeleted(reference);
      const verdict = await this.#owners.judge(reference, live.namespace ?? '', wasDeleted, signal);
      if (verdict === 'unresolvable') {
        if (live.namespace === undefined) this.#reportNamespace(state, reference);
        return;
      }
      owners.push({ reference, verdict });
      hasUnseen ||= isUnseen && verdict === 'solid';
    }
    const dependents = [...(node.dependents ?? [])];
    const action = decide(live, owners, {
      hasAny: dependents.length > 0,
      isAnyWaiting: dependents.some(({ state: each }) => isObserved(each) && isDeletingDependents(each.metadata)),
    });
    switch (action.kind) {
      case 'keep':
        return hasUnseen ? { requeueAfterMs: SIGHTING_MS_MAX } : undefined;
      case 'keepReferences':
        await this.#actions.setReferences(state, live, action.references, signal);
        return;
      case 'delete': {
        const { references: changed, propagationPolicy } = action;
        const seen = changed ? await this.#actions.setReferences(state, live, changed, signal) : live;
        if (seen) await this.#actions.delete(state, seen, propagationPolicy, signal);
      }
    }
  }

  /** Whether a watch has shown the end of an owner. */
  #wasDeleted({ uid }: OwnerReference): boolean {
    const state = this.#graph.get(uid)?.state;
    return state !== undefined && !isObserved(state) && state.wasDeleted;
  }

  /** Lets go of an owner when none is left that blocks it. All its dependents were looked at when it began to wait. */
  async #deleteDependents(node: GraphNode, state: Observed, signal: AbortSignal): Promise<void> {
    if (node.blockers === 0) await this.#actions.removeFinalizer(state, FOREGROUND_FINALIZER, signal);
  }

  /**
   * Takes an owner's name from all its dependents, then lets it go. Who was promised to be spared must not be missed:
   * the graph may be behind, so all that there is at the server is looked through.
   */
  async #orphan(state: Observed, signal: AbortSignal): Promise<void> {
    const { uid = '', namespace = '' } = state.metadata;
    const live = await this.#actions.read(state, signal);
    // Somebody may have asked for another kind of deletion since.
    if (!live || !isOrphaning(live)) return;
    const resources = preferredResources(await discover(this.#options.client, signal)).filter(isCollectable);
    for (const resource of resources) {
      if (namespace !== '' && !resource.namespaced) continue;
      await this.#release(resource, namespace, uid, signal);
    }
    await this.#actions.removeFinalizer(state, ORPHAN_FINALIZER, signal);
  }

  /** Takes an owner's name from all objects of one resource. */
  async #release(resource: Resource, namespace: string, ownerUid: string, signal: AbortSignal): Promise<void> {
    let token: string | undefined;
    do {
      const page = await this.#client.list(resource, { namespace, limit: PAGE_LIMIT, continue: token }, signal);
      const owned = page.items.filter(({ metadata }) => referencesOf(metadata).some(({ uid }) => uid === ownerUid));
      for (let start = 0; start < owned.length; start += RELEASES_AT_ONCE) {
        const releases = owned.slice(start, start + RELEASES_AT_ONCE).map(({ metadata }) => {
          const rest = referencesOf(metadata).filter(({ uid }) => uid !== ownerUid);
          return this.#actions.setReferences({ resource, metadata }, metadata, rest, signal);
        });
        await Promise.all(releases);
      }
      token = page.metadata.continue;
    } while (token !== undefined && token !== '');
  }

  #reportNamespace(dependent: Observed, reference: OwnerReference): void {
    const { apiVersion, kind, namespace } = coordinatesOf(dependent);
    const { name, uid } = reference;
    const owner = `[${reference.apiVersion}/${reference.kind}, namespace: ${namespace}, name: ${name}, uid: ${uid}]`;
    this.#options.recorder.event(
      { apiVersion, kind, metadata: dependent.metadata },
      'Warning',
      'OwnerRefInvalidNamespace',
      `ownerRef ${owner} does not exist in namespace "${namespace}"`,
    );
  }
}
