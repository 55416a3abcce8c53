import type { JsonObject, KubeObject, ObjectMeta, OwnerReference } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { Resource } from '../../kube/resource.ts';
import { isAboutObject, isNotFound } from './owners.ts';

/**
 * The writes of the garbage collector. Each holds for one object, by its UID, and only while that is as it was when it
 * was decided: an owner reference that is added in between is never overlooked.
 */

/** How often a write is tried again at once when somebody else has changed the object; then later. */
const TRIES_MAX = 5;

/** An object and where to find it. */
export interface Item {
  readonly resource: Resource;
  readonly metadata: Pick<ObjectMeta, 'name' | 'namespace' | 'uid'>;
}

export class Actions {
  readonly #client: Client;

  /** The client needs the metadata alone. */
  constructor(client: Client) {
    this.#client = client;
  }

  /** The object as it is now; undefined where it is gone, or another one has its name. */
  async read({ resource, metadata }: Item, signal: AbortSignal): Promise<ObjectMeta | undefined> {
    const { namespace = '', name = '', uid } = metadata;
    try {
      const object = await this.#client.get(resource, namespace, name, signal);
      return object.metadata.uid === uid ? object.metadata : undefined;
    } catch (error) {
      if (isNotFound(error) && isAboutObject(error, name)) return undefined;
      throw error;
    }
  }

  /**
   * Deletes an object that has been read so. Where it has changed since, it is deleted all the same if its owners are
   * still those: what is updated all the time would else live forever.
   */
  async delete(
    item: Item,
    seen: ObjectMeta,
    propagationPolicy: 'Orphan' | 'Background' | 'Foreground',
    signal: AbortSignal,
  ): Promise<void> {
    const { namespace = '', name = '', uid = '' } = item.metadata;
    let { resourceVersion = '' } = seen;
    for (let tries = 1; ; tries++) {
      const preconditions = { uid, resourceVersion };
      try {
        await this.#client.delete(item.resource, namespace, name, signal, { propagationPolicy, preconditions });
        return;
      } catch (error) {
        if (isNotFound(error)) return;
        if (!isConflict(error) || tries === TRIES_MAX) throw error;
        const now = await this.read(item, signal);
        if (!now) return;
        if (!deepEqual(now.ownerReferences, seen.ownerReferences) || now.deletionTimestamp !== undefined) throw error;
        ({ resourceVersion = '' } = now);
      }
    }
  }

  /** Replaces the owner references that have been seen; answers the object as it is then, if it is there. */
  setReferences(
    item: Item,
    seen: ObjectMeta,
    references: readonly OwnerReference[],
    signal: AbortSignal,
  ): Promise<ObjectMeta | undefined> {
    return this.#replace(item, 'ownerReferences', seen.ownerReferences ?? [], references, signal);
  }

  /** Takes a finalizer away from an object that is being deleted. */
  async removeFinalizer(item: Item, finalizer: string, signal: AbortSignal): Promise<void> {
    for (let tries = 1; ; tries++) {
      const now = await this.read(item, signal);
      const finalizers = now?.finalizers ?? [];
      if (now?.deletionTimestamp === undefined || !finalizers.includes(finalizer)) return;
      const rest = finalizers.filter((each) => each !== finalizer);
      try {
        await this.#replace(item, 'finalizers', finalizers, rest, signal);
        return;
      } catch (error) {
        if (!isConflict(error) || tries === TRIES_MAX) throw error;
      }
    }
  }

  /** Writes one list if it is still the one that was seen; what else changes meanwhile does not matter. */
  async #replace(
    { resource, metadata }: Item,
    field: 'ownerReferences' | 'finalizers',
    seen: readonly unknown[],
    value: readonly unknown[],
    signal: AbortSignal,
  ): Promise<ObjectMeta | undefined> {
    const { namespace = '', name = '', uid = '' } = metadata;
    const path = `/metadata/${field}`;
    const body = [
      { op: 'test', path: '/metadata/uid', value: uid },
      { op: 'test', path, value: seen },
      value.length > 0 ? { op: 'replace', path, value } : { op: 'remove', path },
    ] as JsonObject[];
    try {
      const written = await this.#client.patch<KubeObject>(resource, namespace, name, { type: 'json', body }, signal);
      return written.metadata;
    } catch (error) {
      if (isNotFound(error) && isAboutObject(error, name)) return undefined;
      throw error;
    }
  }
}

/** Whether somebody else was faster; a test in a patch that fails is answered with 422. */
function isConflict(error: unknown): boolean {
  return error instanceof ApiError && (error.code === 409 || error.code === 422);
}
