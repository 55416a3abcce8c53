import type { KubeObject } from '../api/meta.ts';
import type { Env } from '../env/ports.ts';
import type { Client } from './client.ts';
import { Informer } from './informer.ts';
import { type Indexes, withoutManagedFields } from './object-cache.ts';
import type { ReflectorScope } from './reflector.ts';
import type { Resource } from './resource.ts';

/**
 * One informer per resource for all who need it in a process: each collection is watched once and kept once. Objects are
 * kept without their managed fields.
 */
export class SharedInformers {
  readonly #client: Client;
  readonly #env: Env;
  readonly #informers = new Map<string, Informer<KubeObject>>();

  constructor(options: { readonly client: Client; readonly env: Env }) {
    this.#client = options.client;
    this.#env = options.env;
  }

  /**
   * The informer of a resource, in all namespaces unless the scope says otherwise, with these indexes among others.
   * Whoever runs the informers has to be asked for `all` after everybody has asked for theirs.
   */
  of<T extends KubeObject>(resource: Resource<T>, indexes: Indexes<T> = {}, scope: ReflectorScope = {}): Informer<T> {
    const id = idOf(resource, scope);
    // The map knows not which resource has which shape; who asks for the same resource means the same shape.
    let informer = this.#informers.get(id) as Informer<T> | undefined;
    if (!informer) {
      const common = { client: this.#client, env: this.#env, transform: withoutManagedFields };
      informer = new Informer<T>({ ...common, resource, ...scope });
      this.#informers.set(id, informer as unknown as Informer<KubeObject>);
    }
    informer.addIndexes(indexes);
    return informer;
  }

  /** The informer of a whole resource, if anybody has asked for it. */
  find(resource: Resource): Informer<KubeObject> | undefined {
    return this.#informers.get(idOf(resource));
  }

  /** All that were asked for so far. */
  all(): readonly Informer<KubeObject>[] {
    return [...this.#informers.values()];
  }
}

function idOf({ group, version, plural }: Resource, scope: ReflectorScope = {}): string {
  const { namespace = '', labelSelector = '', fieldSelector = '' } = scope;
  return JSON.stringify([group, version, plural, namespace, labelSelector, fieldSelector]);
}
