import type { KubeObject } from '../api/meta.ts';
import type { ObjectCache } from './object-cache.ts';
import { compareVersions } from './resource-version.ts';
import { keyOf } from './resource.ts';

/**
 * What a snapshot or an event means to a cache, decided by looking at nothing but the two. Whatever comes twice, late or
 * from the past, an object never goes back to an older state, and the changes told add up to what the cache holds.
 */

/** A change of a cache, as handlers see it. Objects are shared: handlers must not change them. */
export interface InformerChange<T extends KubeObject> {
  readonly type: 'added' | 'updated' | 'deleted';
  /** For `deleted` the last state that is known. */
  readonly object: T;
  /** What the cache held before; the very same object when nothing changed and it is only told again. */
  readonly old: T | undefined;
  /** Whether the object was there when the informer started. */
  readonly isInitial: boolean;
}

export interface ReplaceOptions {
  /** Whether this is the first snapshot. */
  readonly isInitial: boolean;
  /** Whether the server has gone back in time (restored from a backup), so that older states are the true ones. */
  readonly isRewound: boolean;
}

/** What became of an event: it was taken or known already, or it cannot be told which without a fresh snapshot. */
export type Applied = 'taken' | 'known' | 'unclear';

export class CacheChanges<T extends KubeObject> {
  readonly #cache: ObjectCache<T>;
  readonly #deliver: (change: InformerChange<T>) => void;

  /** Each change is delivered right after the cache has taken it. */
  constructor(cache: ObjectCache<T>, deliver: (change: InformerChange<T>) => void) {
    this.#cache = cache;
    this.#deliver = deliver;
  }

  /**
   * Makes the cache equal to a snapshot that is at least as new as everything it holds. A step is one object: the caller
   * may pause between steps, but must not apply events before the last one.
   */
  *replace(items: Iterable<T>, options: ReplaceOptions): Generator<undefined, void> {
    const seen = new Set<string>();
    for (const item of items) {
      seen.add(keyOf(item));
      this.#put(item, options);
      yield;
    }
    for (const key of this.#cache.keys()) {
      if (seen.has(key)) continue;
      const gone = this.#cache.get(key);
      if (gone !== undefined) this.#remove(gone, gone);
      yield;
    }
  }

  /**
   * Applies an event of a watch that has already come as far as `position`. An object that is not in the cache but lies
   * before that position is either one that has been deleted since, told again, or one that was left out: unclear.
   */
  apply(type: 'ADDED' | 'MODIFIED' | 'DELETED', object: T, position: string | undefined): Applied {
    const old = this.#cache.get(keyOf(object));
    if (type === 'DELETED') return this.#applyDeletion(object, old);
    if (old !== undefined) return this.#put(object, LIVE);
    const order = compareVersions(object.metadata.resourceVersion, position);
    return order !== undefined && order <= 0 ? 'unclear' : this.#put(object, LIVE);
  }

  #applyDeletion(object: T, old: T | undefined): Applied {
    if (old === undefined) return 'known';
    const order = compareVersions(object.metadata.resourceVersion, old.metadata.resourceVersion);
    if (order !== undefined && order < 0) return 'known';
    // What was deleted may be a successor that was never seen; then the one that is cached went before it.
    this.#remove(old, isSameObject(object, old) ? object : old);
    return 'taken';
  }

  #put(object: T, { isInitial, isRewound }: ReplaceOptions): Applied {
    const old = this.#cache.get(keyOf(object));
    if (old !== undefined && !isNewer(object, old, isRewound)) return 'known';
    if (old !== undefined && !isSameObject(object, old)) {
      this.#remove(old, old);
      return this.#put(object, { isInitial, isRewound });
    }
    this.#cache.set(object);
    this.#deliver({ type: old === undefined ? 'added' : 'updated', object, old, isInitial: isInitial && !old });
    return 'taken';
  }

  #remove(old: T, last: T): void {
    this.#cache.delete(keyOf(old));
    this.#deliver({ type: 'deleted', object: last, old, isInitial: false });
  }
}

const LIVE: ReplaceOptions = { isInitial: false, isRewound: false };

function isSameObject(a: KubeObject, b: KubeObject): boolean {
  return a.metadata.uid === b.metadata.uid;
}

function isNewer(object: KubeObject, old: KubeObject, isRewound: boolean): boolean {
  const order = compareVersions(object.metadata.resourceVersion, old.metadata.resourceVersion);
  return order === undefined || (isRewound ? order !== 0 : order > 0);
}
