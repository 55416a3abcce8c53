import { nothing, type Selector } from '../../machinery/selectors.ts';

type Labels = { readonly [key: string]: string };

/**
 * Finds the selectors that may match some labels without trying them all. Each selector is filed under one of its
 * requirements, the one that fewest labels meet: a value it wants, else a key it wants, else nothing in particular.
 */
export class SelectorIndex<T> {
  readonly #values = new Map<string, Set<T>>();

  add(selector: Selector, value: T): void {
    for (const anchor of anchorsOf(selector)) {
      const values = this.#values.get(anchor);
      if (values) values.add(value);
      else this.#values.set(anchor, new Set([value]));
    }
  }

  /** Takes back an addition; the selector must be the same. */
  delete(selector: Selector, value: T): void {
    for (const anchor of anchorsOf(selector)) {
      const values = this.#values.get(anchor);
      values?.delete(value);
      if (values?.size === 0) this.#values.delete(anchor);
    }
  }

  /** What belongs to every selector that matches the labels, and some that do not; each of them once. */
  *candidates(labels: Labels): Generator<T> {
    yield* this.#values.get('') ?? [];
    for (const [key, value] of Object.entries(labels)) {
      yield* this.#values.get(keyAnchor(key)) ?? [];
      yield* this.#values.get(valueAnchor(key, value)) ?? [];
    }
  }
}

/** Where labels with this key are filed. */
export function keyAnchor(key: string): string {
  return `?${key}`;
}

/** Where labels with this key and value are filed. */
export function valueAnchor(key: string, value: string): string {
  return `${key}=${value}`;
}

function anchorsOf(selector: Selector): readonly string[] {
  if (selector === nothing) return [];
  const wanted = selector.requirements.find(({ operator }) => operator === 'In');
  // The values of a set are distinct, and an object has one value for a key: nothing is found twice.
  if (wanted) return [...new Set(wanted.values)].map((value) => valueAnchor(wanted.key, value));
  const present = selector.requirements.find(({ operator }) => operator !== 'NotIn' && operator !== 'DoesNotExist');
  return [present ? keyAnchor(present.key) : ''];
}
