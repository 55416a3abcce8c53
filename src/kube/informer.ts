import type { KubeObject } from '../api/meta.ts';
import { type Env, sleep } from '../env/ports.ts';
import { CacheChanges, type InformerChange } from './cache-changes.ts';
import type { Client } from './client.ts';
import { type Indexes, ObjectCache } from './object-cache.ts';
import { Reflector, type ReflectorScope, type ReflectorSink } from './reflector.ts';
import { keyOf, type Resource } from './resource.ts';
import type { Service } from './service.ts';

export type { InformerChange } from './cache-changes.ts';

export interface InformerOptions<T extends KubeObject> extends ReflectorScope {
  readonly client: Client;
  readonly resource: Resource<T>;
  readonly env: Env;
  /** Pure functions that say under which values an object is found by `byIndex`. */
  readonly indexes?: Indexes<T>;
  /** How often all objects are told again as updated; never where absent. */
  readonly resyncMs?: number;
  /** What is kept of an object; must leave its name, namespace, UID and resourceVersion alone. */
  readonly transform?: (object: T) => T;
}

/** Objects handed over in one go: larger snapshots are cut up, so that a process can do other things in between. */
const PORTION = 1_000;

/**
 * A copy of a server's objects that follows every change, with indexes, and tells handlers what changed. Handlers are
 * called synchronously and in order, when the cache has taken the change; one that throws ends the informer.
 */
export class Informer<T extends KubeObject> implements Service {
  readonly name: string;
  /** Resolves when all that was there at the start has been told to the handlers. Stays pending if that never happens. */
  readonly synced: Promise<void>;
  readonly #options: InformerOptions<T>;
  readonly #cache: ObjectCache<T>;
  readonly #handlers: ((change: InformerChange<T>) => void)[] = [];
  readonly #changes: CacheChanges<T>;
  readonly #reflector: Reflector<T>;
  #resolveSynced: () => void = () => undefined;
  #hasSynced = false;
  #isRunning = false;

  constructor(options: InformerOptions<T>) {
    const { client, resource, env, namespace, labelSelector, fieldSelector, indexes } = options;
    this.name = `informer of ${resource.plural}${resource.group === '' ? '' : `.${resource.group}`}`;
    this.#options = options;
    this.#cache = new ObjectCache(indexes);
    this.#changes = new CacheChanges(this.#cache, (change) => this.#deliver(change));
    this.synced = new Promise((resolve) => (this.#resolveSynced = resolve));
    const scope = { namespace, labelSelector, fieldSelector };
    this.#reflector = new Reflector({ client, resource, env, scope, sink: this.#sink() });
  }

  /** Whether it follows all objects of its resource, or only what its scope lets through. */
  get isWhole(): boolean {
    const { namespace = '', labelSelector = '', fieldSelector = '' } = this.#options;
    return namespace === '' && labelSelector === '' && fieldSelector === '';
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  get size(): number {
    return this.#cache.size;
  }

  get(key: string): T | undefined {
    return this.#cache.get(key);
  }

  list(): Iterable<T> {
    return this.#cache.list();
  }

  /** The objects that the index has under the value; costs what it finds. Throws for an index that was not declared. */
  byIndex(name: string, value: string): readonly T[] {
    return this.#cache.byIndex(name, value);
  }

  /** How many objects the index has under the value, at no cost. Throws for an index that was not declared. */
  countByIndex(name: string, value: string): number {
    return this.#cache.countByIndex(name, value);
  }

  /** The resourceVersion up to which everything is known; undefined before the first snapshot. */
  get position(): string | undefined {
    return this.#reflector.position;
  }

  /**
   * Asks the server instead of the cache, for a state at least as new as the given resourceVersion, which may be another
   * resource's. For decisions that must not be made on the past.
   */
  async listNotOlderThan(
    resourceVersion: string,
    scope: Pick<ReflectorScope, 'namespace' | 'labelSelector' | 'fieldSelector'>,
    signal: AbortSignal,
  ): Promise<readonly T[]> {
    const { client, resource, transform = (object: T) => object } = this.#options;
    const version = { resourceVersion, resourceVersionMatch: 'NotOlderThan' } as const;
    const { items } = await client.list(resource, { ...scope, ...version }, signal);
    return items.map(transform);
  }

  /** Asks the server instead of the cache, for all that was stored by now. */
  async listNow(scope: Pick<ReflectorScope, 'namespace'>, signal: AbortSignal): Promise<readonly T[]> {
    const { client, resource, transform = (object: T) => object } = this.#options;
    return (await client.list(resource, scope, signal)).items.map(transform);
  }

  /** Adds indexes, at any time; a name that is there already must have the same function. */
  addIndexes(indexes: Indexes<T>): void {
    this.#cache.addIndexes(indexes);
  }

  /**
   * Takes in what a write was answered, of an object that is known: whoever looks before the watch tells of it would write on
   * top of the version of before, and be refused.
   */
  wrote(object: T): void {
    const { transform = (each: T) => each } = this.#options;
    if (this.get(keyOf(object))?.metadata.uid === object.metadata.uid)
      this.#changes.apply('MODIFIED', transform(object), undefined);
  }

  /** Calls the handler with every change from now on, after what is there already, as initial additions. */
  onChange(handler: (change: InformerChange<T>) => void): void {
    for (const object of this.#cache.list()) handler({ type: 'added', object, old: undefined, isInitial: true });
    this.#handlers.push(handler);
  }

  async run(signal: AbortSignal): Promise<void> {
    if (this.#isRunning) throw new Error(`the ${this.name} runs already`);
    this.#isRunning = true;
    const stop = new AbortController();
    const onAbort = (): void => stop.abort(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    const ending = <V>(part: Promise<V>): Promise<V> => part.finally(() => stop.abort());
    try {
      await Promise.all([ending(this.#reflector.run(stop.signal)), ending(this.#resync(stop.signal))]);
    } finally {
      signal.removeEventListener('abort', onAbort);
      this.#isRunning = false;
    }
  }

  #sink(): ReflectorSink<T> {
    const { transform = (object: T) => object, env } = this.#options;
    return {
      replace: async (items, isRewound, signal) => {
        const options = { isInitial: !this.#hasSynced, isRewound };
        const steps = this.#changes.replace(transformed(items, transform), options);
        for (let count = 1; !steps.next().done; count++) {
          if (count % PORTION === 0) await sleep(env.clock, 0, signal);
          if (signal.aborted) return;
        }
        this.#hasSynced = true;
        this.#resolveSynced();
      },
      apply: (type, object, position) => this.#changes.apply(type, transform(object), position),
    };
  }

  #deliver(change: InformerChange<T>): void {
    for (const handler of this.#handlers) handler(change);
  }

  /** Tells everything again from time to time, for handlers whose state may have drifted from it. */
  async #resync(signal: AbortSignal): Promise<void> {
    const { resyncMs, env } = this.#options;
    while (!signal.aborted) {
      if (resyncMs === undefined) return untilAborted(signal);
      // A tenth more or less, or all informers of all replicas would do it at once.
      await sleep(env.clock, resyncMs * (0.9 + env.random.number() / 5), signal);
      let count = 0;
      for (const object of this.#cache.list()) {
        if (signal.aborted) return;
        this.#deliver({ type: 'updated', object, old: object, isInitial: false });
        if (++count % PORTION === 0) await sleep(env.clock, 0, signal);
      }
    }
  }
}

function* transformed<T>(items: Iterable<T>, transform: (object: T) => T): Generator<T> {
  for (const item of items) yield transform(item);
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
