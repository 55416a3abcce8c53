import type { KubeObject } from '../../api/meta.ts';
import type { Resource } from '../../kube/resource.ts';

/**
 * What a run of a move knows of what was made for it. Others may run the same move at the same time, and all is found by one
 * label: only by their UIDs are the objects of a run told from those of the next one.
 */
export class Traces {
  /** By kind and place. */
  readonly #uids = new Map<string, string>();
  readonly #own = new Set<string>();

  /** It was there, and is used. */
  found(resource: Resource, { metadata }: KubeObject): void {
    this.#uids.set(keyOf(resource, metadata), metadata.uid ?? '');
  }

  /** This very run has made it, or made of it what it is. */
  made(resource: Resource, object: KubeObject): void {
    this.found(resource, object);
    this.#own.add(object.metadata.uid ?? '');
  }

  /** The UID of what was made, or found; undefined where nothing was. */
  uidOf(resource: Resource, { metadata }: KubeObject): string | undefined {
    return this.#uids.get(keyOf(resource, metadata));
  }

  /** Whether this very run made it. */
  isOwn({ metadata }: KubeObject): boolean {
    return this.#own.has(metadata.uid ?? '');
  }
}

function keyOf({ plural }: Resource, { namespace = '', name = '' }: KubeObject['metadata']): string {
  return `${plural}/${namespace}/${name}`;
}
