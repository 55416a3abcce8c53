import type { KubeObject } from '../../api/meta.ts';
import type { Store, Stored } from '../storage/store.ts';
import type { View } from './contract.ts';

type Listener<T> = (object: T | undefined, old: T | undefined) => void;

/**
 * One bucket as objects: parsed when first looked at, and kept for as long as that state is the newest. A view of many
 * objects of which one is asked for now and then costs next to nothing.
 */
export class BucketView<T extends KubeObject = KubeObject> implements View<T> {
  readonly #store: Store;
  readonly #bucket: string;
  readonly #listeners: Listener<T>[] = [];

  constructor(store: Store, bucket: string) {
    this.#store = store;
    this.#bucket = bucket;
  }

  get(namespace: string, name: string): T | undefined {
    return this.#show(this.#store.get(this.#bucket, namespace === '' ? name : `${namespace}/${name}`));
  }

  list(namespace?: string): readonly T[] {
    const prefix = namespace ? `${namespace}/` : '';
    const { items } = this.#store.list(this.#bucket, { prefix });
    // Nothing that is in a namespace is in the one without a name.
    const found = namespace === '' ? items.filter(({ key }) => !key.includes('/')) : items;
    return found.map((stored) => objectOf(stored) as T);
  }

  onChange(listener: Listener<T>): void {
    if (this.#listeners.length === 0) {
      this.#store.subscribe(this.#bucket, (change) => {
        const object = change.type === 'put' ? this.#show(change.stored) : undefined;
        const old = this.#show(change.previous());
        for (const each of this.#listeners) each(object, old);
      });
    }
    this.#listeners.push(listener);
  }

  #show(stored: Stored | undefined): T | undefined {
    return stored && (objectOf(stored) as T);
  }
}

const objects = new WeakMap<Stored, KubeObject>();

function objectOf(stored: Stored): KubeObject {
  let object = objects.get(stored);
  if (!object) objects.set(stored, (object = JSON.parse(stored.text) as KubeObject));
  return object;
}
