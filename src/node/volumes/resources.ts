import type { KubeObject } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import type { PersistentVolume, PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { VolumeError } from './guest-volumes.ts';

/** The objects that volumes come from. */

export interface ConfigMap extends KubeObject {
  data?: { readonly [key: string]: string };
  binaryData?: { readonly [key: string]: string };
}

export interface Secret extends KubeObject {
  data?: { readonly [key: string]: string };
}

/** The kinds that a volume cannot do without; a reason of an event says which one is missing. */
type NeededKind = 'ConfigMap' | 'Secret' | 'PersistentVolumeClaim' | 'PersistentVolume';
type Needed<T extends KubeObject> = Resource<T> & { readonly kind: NeededKind };

function core<T extends KubeObject>(plural: string, kind: NeededKind, namespaced = true): Needed<T> {
  return { group: '', version: 'v1', plural, kind, namespaced };
}

export const configMaps = core<ConfigMap>('configmaps', 'ConfigMap');
export const secrets = core<Secret>('secrets', 'Secret');
export const claims = core<PersistentVolumeClaim>('persistentvolumeclaims', 'PersistentVolumeClaim');
export const persistentVolumes = core<PersistentVolume>('persistentvolumes', 'PersistentVolume', false);

/** Reads objects for one volume, whose name is in whatever goes wrong. */
export class ObjectReader {
  readonly #client: Client;
  readonly #namespace: string;
  readonly #volume: string;
  readonly #signal: AbortSignal;

  constructor(client: Client, namespace: string, volume: string, signal: AbortSignal) {
    this.#client = client;
    this.#namespace = namespace;
    this.#volume = volume;
    this.#signal = signal;
  }

  /** Undefined where there is no such object. */
  async find<T extends KubeObject>(resource: Resource<T>, name: string): Promise<T | undefined> {
    try {
      return await this.#client.find(resource, resource.namespaced ? this.#namespace : '', name, this.#signal);
    } catch (error) {
      if (!(error instanceof ApiError) || error.code !== 403) throw error;
      throw new VolumeError(
        this.#volume,
        'Forbidden',
        `${resource.kind} ${name} may not be read: ${error.message}`,
        error,
      );
    }
  }

  /** Rejects with a VolumeError where there is no such object. */
  async get<T extends KubeObject>(resource: Needed<T>, name: string): Promise<T> {
    const object = await this.find(resource, name);
    if (object) return object;
    throw new VolumeError(this.#volume, `${resource.kind}NotFound`, `there is no ${resource.kind} ${name}`);
  }
}
