import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Env } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import { Controller, type Result } from '../../kube/controller.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeMetrics } from '../../kube/metrics.ts';
import { keyOf, type Resource } from '../../kube/resource.ts';
import type { Service } from '../../kube/service.ts';

export interface ProtectionOptions<T extends KubeObject> {
  readonly name: string;
  readonly env: Env;
  readonly client: Client;
  readonly metrics?: KubeMetrics;
  readonly resource: Resource<T>;
  readonly objects: Pick<Informer<T>, 'get' | 'onChange'>;
  readonly finalizer: string;
  /** Whether something still needs the object, this very version of it. */
  readonly isUsed: (object: T, signal: AbortSignal) => Promise<boolean>;
}

const RECHECK_MS = 1000;

/** Holds objects that are deleted until nothing uses them any more. */
export class Protection<T extends KubeObject> implements Service {
  readonly name: string;
  readonly #options: ProtectionOptions<T>;
  readonly #controller: Controller;

  constructor(options: ProtectionOptions<T>) {
    const { name, env, metrics, objects } = options;
    this.name = name;
    this.#options = options;
    const reconcile = (key: string, signal: AbortSignal) => this.#reconcile(key, signal);
    this.#controller = new Controller({ name, env, reconcile, ...(metrics ? { metrics } : {}) });
    objects.onChange(({ type, object }) => {
      if (type !== 'deleted' && this.#isDue(object)) this.#controller.enqueue(keyOf(object));
    });
  }

  /** Says that somebody may have stopped using an object. */
  ask(key: string): void {
    const object = this.#options.objects.get(key);
    if (object && this.#isDue(object)) this.#controller.enqueue(key);
  }

  run(signal: AbortSignal): Promise<void> {
    return this.#controller.run(signal);
  }

  /** Whether it has to be protected and is not, or is and has to be let go. */
  #isDue({ metadata }: T): boolean {
    const isProtected = metadata.finalizers?.includes(this.#options.finalizer) ?? false;
    return isProtected === (metadata.deletionTimestamp !== undefined);
  }

  async #reconcile(key: string, signal: AbortSignal): Promise<Result | undefined> {
    const { client, resource, objects, finalizer, isUsed } = this.#options;
    const object = objects.get(key);
    if (!object || !this.#isDue(object)) return undefined;
    const isLeaving = object.metadata.deletionTimestamp !== undefined;
    if (isLeaving && (await isUsed(object, signal))) return undefined;
    const others = (object.metadata.finalizers ?? []).filter((each) => each !== finalizer);
    const finalizers = isLeaving ? others : [...others, finalizer];
    try {
      await client.update(resource, { ...object, metadata: { ...object.metadata, finalizers } }, signal);
    } catch (error) {
      const code = error instanceof ApiError ? error.code : 0;
      // Others write too: as soon as their news come we look again, and in any case before long.
      if (code === 409) return { requeueAfterMs: RECHECK_MS };
      if (code !== 404) throw error;
    }
    return undefined;
  }
}
