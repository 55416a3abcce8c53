import type { KubeObject } from '../../api/meta.ts';
import { keyOf } from '../../kube/resource.ts';
import { compareVersions } from '../../kube/resource-version.ts';

/** What was written and not yet heard of: whoever decides again meanwhile must know of it. */
export class Written<T extends KubeObject> {
  readonly #objects = new Map<string, T>();

  add(object: T): void {
    this.#objects.set(keyOf(object), object);
  }

  /** Takes what was heard of, and forgets what is no newer. */
  heard(object: T, isGone: boolean): void {
    const key = keyOf(object);
    const written = this.#objects.get(key);
    if (!written || (isGone && written.metadata.uid !== object.metadata.uid)) return;
    const order = compareVersions(object.metadata.resourceVersion, written.metadata.resourceVersion);
    if (isGone || order === undefined || order >= 0) this.#objects.delete(key);
  }

  /** The newer of the two: what was written, or what is known; undefined where nothing is known. */
  newest(known: T | undefined): T | undefined {
    return known && (this.#objects.get(keyOf(known)) ?? known);
  }

  values(): Iterable<T> {
    return this.#objects.values();
  }
}
