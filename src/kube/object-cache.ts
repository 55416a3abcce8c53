import { DISRUPTION_TARGET, disruptionEntries } from '../api/disruption-target.ts';
import type { KubeObject } from '../api/meta.ts';
import { keyOf } from './resource.ts';

/** Under which values an object is to be found. Pure; called again with the same object when that leaves the cache. */
export type IndexFunction<T extends KubeObject> = (object: T) => readonly string[];

/** The secondary indexes of a cache by name. */
export interface Indexes<T extends KubeObject> {
  readonly [name: string]: IndexFunction<T>;
}

/**
 * Objects by key, and the keys by whatever else is asked for. Every look-up costs what it finds, however much there is;
 * a write costs as many steps as the object has index values. Objects are kept as they came and must not be changed.
 */
export class ObjectCache<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string, Index<T>>();

  constructor(indexes: Indexes<T> = {}) {
    this.addIndexes(indexes);
  }

  /** Adds indexes over what is there and what comes. A name can be declared again only with the same function. */
  addIndexes(indexes: Indexes<T>): void {
    for (const [name, valuesOf] of Object.entries(indexes)) {
      const existing = this.#indexes.get(name);
      if (existing?.valuesOf === valuesOf) continue;
      if (existing) throw new Error(`there is another index ${name} already`);
      const index = new Index(valuesOf);
      for (const [key, object] of this.#objects) index.move(key, NONE, valuesOf(object));
      this.#indexes.set(name, index);
    }
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  /** In no order that means anything, but the same for the same history. */
  list(): Iterable<T> {
    return this.#objects.values();
  }

  keys(): Iterable<string> {
    return this.#objects.keys();
  }

  /** The objects that the index has under the value. Throws for an index that was not declared. */
  byIndex(name: string, value: string): readonly T[] {
    const found: T[] = [];
    for (const key of this.#index(name).keys(value)) {
      const object = this.#objects.get(key);
      if (object === undefined) throw new Error(`index ${name} has ${key}, which the cache has not`);
      found.push(object);
    }
    return found;
  }

  /** How many objects the index has under the value, at no cost. Throws for an index that was not declared. */
  countByIndex(name: string, value: string): number {
    return this.#index(name).count(value);
  }

  /** Puts an object in, in place of the one of the same key. When an index function throws, nothing has changed. */
  set(object: T): void {
    const key = keyOf(object);
    const old = this.#objects.get(key);
    const moves = this.#moves(old, object);
    this.#objects.set(key, object);
    for (const { index, before, after } of moves) index.move(key, before, after);
  }

  delete(key: string): void {
    const old = this.#objects.get(key);
    if (old === undefined) return;
    const moves = this.#moves(old, undefined);
    this.#objects.delete(key);
    for (const { index, before, after } of moves) index.move(key, before, after);
  }

  #index(name: string): Index<T> {
    const index = this.#indexes.get(name);
    if (index) return index;
    throw new Error(`there is no index ${name}; there are ${[...this.#indexes.keys()].join(', ') || 'none'}`);
  }

  #moves(old: T | undefined, object: T | undefined): Move<T>[] {
    const moves: Move<T>[] = [];
    for (const index of this.#indexes.values()) {
      const before = old === undefined ? NONE : index.valuesOf(old);
      const after = object === undefined ? NONE : index.valuesOf(object);
      if (!areSame(before, after)) moves.push({ index, before, after });
    }
    return moves;
  }
}

interface Move<T extends KubeObject> {
  readonly index: Index<T>;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

const NONE: readonly string[] = [];

function areSame(before: readonly string[], after: readonly string[]): boolean {
  return before.length === after.length && before.every((value, position) => value === after[position]);
}

/** The keys of each value. Most values have one key (an owner's, a UID's): a set for it would weigh more than the key. */
class Index<T extends KubeObject> {
  readonly valuesOf: IndexFunction<T>;
  readonly #keys = new Map<string, string | Set<string>>();

  constructor(valuesOf: IndexFunction<T>) {
    this.valuesOf = valuesOf;
  }

  keys(value: string): Iterable<string> {
    const keys = this.#keys.get(value);
    return typeof keys === 'string' ? [keys] : (keys ?? NONE);
  }

  count(value: string): number {
    const keys = this.#keys.get(value);
    return typeof keys === 'string' ? 1 : (keys?.size ?? 0);
  }

  move(key: string, before: readonly string[], after: readonly string[]): void {
    for (const value of before) this.#remove(value, key);
    for (const value of after) this.#add(value, key);
  }

  #add(value: string, key: string): void {
    const keys = this.#keys.get(value);
    if (keys === undefined) this.#keys.set(value, key);
    else if (typeof keys !== 'string') keys.add(key);
    else if (keys !== key) this.#keys.set(value, new Set([keys, key]));
  }

  #remove(value: string, key: string): void {
    const keys = this.#keys.get(value);
    if (keys === key) this.#keys.delete(value);
    else if (keys instanceof Set && keys.delete(key) && keys.size === 0) this.#keys.delete(value);
  }
}

/**
 * A transform that drops who wrote which field: often half of an object, and of use to its writers alone. What is kept is who
 * told a pod that it is about to be disrupted: nothing else says when.
 */
export function withoutManagedFields<T extends KubeObject>(object: T): T {
  if (object.metadata.managedFields === undefined) return object;
  const { managedFields: _dropped, ...metadata } = object.metadata;
  const { conditions } = (object['status'] ?? {}) as { conditions?: readonly { readonly type?: string }[] };
  const isDisrupted = Array.isArray(conditions) && conditions.some(({ type }) => type === DISRUPTION_TARGET);
  const kept = isDisrupted ? disruptionEntries(object.metadata) : [];
  return { ...object, metadata: kept.length > 0 ? { ...metadata, managedFields: kept } : metadata };
}
