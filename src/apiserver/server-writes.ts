import type { KubeObject } from '../api/meta.ts';
import type { ResourceDefinition } from '../api/resource.ts';
import type { Registry, WriteContext } from './registry/contract.ts';
import { serverContext } from './registry/server-context.ts';

/** Writes that the server makes on its own account: statuses, clean-ups, what every cluster has. */

/** Narrow, named ways to write for the server's own controllers. */
export class ServerWrites {
  readonly #registry: Registry;
  readonly #context: WriteContext;

  constructor(registry: Registry, signal: AbortSignal) {
    this.#registry = registry;
    this.#context = serverContext(signal);
  }

  get context(): WriteContext {
    return this.#context;
  }

  /** Creates a cluster-scoped object. */
  async create(definition: ResourceDefinition, object: KubeObject): Promise<void> {
    await this.#registry.create(this.#context, { definition, namespace: '', name: object.metadata.name ?? '' }, object);
  }

  async delete(definition: ResourceDefinition, namespace: string, name: string): Promise<void> {
    await this.#registry.delete(this.#context, { definition, namespace, name }, {});
  }

  /** Changes a cluster-scoped object through its `status`. */
  async updateStatus(
    definition: ResourceDefinition,
    name: string,
    change: (object: KubeObject) => void,
  ): Promise<void> {
    await this.#update(definition, name, 'status', change);
  }

  async removeFinalizer(definition: ResourceDefinition, name: string, finalizer: string): Promise<void> {
    await this.#update(definition, name, undefined, (object) => {
      object.metadata.finalizers = (object.metadata.finalizers ?? []).filter((each) => each !== finalizer);
    });
  }

  async #update(
    definition: ResourceDefinition,
    name: string,
    subresource: string | undefined,
    change: (object: KubeObject) => void,
  ): Promise<void> {
    const target = { definition, namespace: '', name, ...(subresource ? { subresource } : {}) };
    await this.#registry.update(this.#context, target, (current) => {
      change(current);
      return current;
    });
  }
}
