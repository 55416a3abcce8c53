import type { KubeObject } from '../../api/meta.ts';
import type { Store, Stored } from '../storage/store.ts';
import type { View } from './contract.ts';

/** A parsed copy of one bucket, kept in step by the store's own notifications: no delay, no polling. */
export class BucketView<T extends KubeObject = KubeObject> implements View<T> {
  readonly #namespaces = new Map<string, Map<string, T>>();
  readonly #listeners: ((object: T | undefined, old: T | undefined) => void)[] = [];

  constructor(store: Store, bucket: string) {
    for (const stored of store.list(bucket, {}).items) this.#set(parse(stored));
    store.subscribe(bucket, (change) => {
      const object = parse<T>(change.stored);
      const old = this.get(object.metadata.namespace ?? '', object.metadata.name ?? '');
      if (change.type === 'put') this.#set(object);
      else this.#remove(object);
      for (const listener of this.#listeners) listener(change.type === 'put' ? object : undefined, old);
    });
  }

  get(namespace: string, name: string): T | undefined {
    return this.#namespaces.get(namespace)?.get(name);
  }

  list(namespace?: string): readonly T[] {
    if (namespace !== undefined) return sorted(this.#namespaces.get(namespace));
    return [...this.#namespaces.keys()].sort().flatMap((each) => sorted(this.#namespaces.get(each)));
  }

  onChange(listener: (object: T | undefined, old: T | undefined) => void): void {
    this.#listeners.push(listener);
  }

  #set(object: T): void {
    const namespace = object.metadata.namespace ?? '';
    let names = this.#namespaces.get(namespace);
    if (!names) this.#namespaces.set(namespace, (names = new Map()));
    names.set(object.metadata.name ?? '', object);
  }

  #remove(object: T): void {
    const namespace = object.metadata.namespace ?? '';
    const names = this.#namespaces.get(namespace);
    names?.delete(object.metadata.name ?? '');
    if (names?.size === 0) this.#namespaces.delete(namespace);
  }
}

function parse<T extends KubeObject>(stored: Stored): T {
  return JSON.parse(stored.text) as T;
}

function sorted<T>(names: ReadonlyMap<string, T> | undefined): T[] {
  if (!names) return [];
  return [...names].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, object]) => object);
}
