import { apiVersionOf, type KubeObject, type OwnerReference, parseApiVersion } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Client } from '../../kube/client.ts';
import type { Informer } from '../../kube/informer.ts';
import { pathOf, type Resource } from '../../kube/resource.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { controllerOf } from '../indexes.ts';
import type { Workload } from './objects.ts';

/** How many pods their controllers want. */

/** The controllers that are watched; all others are asked for their scale when it matters. */
export interface Workloads {
  readonly replicationControllers: Pick<Informer<Workload>, 'get'>;
  readonly replicaSets: Pick<Informer<Workload>, 'get'>;
  readonly deployments: Pick<Informer<Workload>, 'get'>;
  readonly statefulSets: Pick<Informer<Workload>, 'get'>;
}

interface Controlled {
  readonly uid: string;
  readonly replicas: number;
}

/** What discovery says of a kind; no name where the kind is not served. */
interface Kind {
  readonly resource: Resource | undefined;
  readonly hasScale: boolean;
}

interface ApiResourceList {
  readonly resources?: readonly { readonly name: string; readonly kind: string; readonly namespaced: boolean }[];
}

const APPS: readonly string[] = ['apps', 'extensions'];

export class Scales {
  readonly #client: Client;
  readonly #workloads: Workloads;

  constructor(client: Client, workloads: Workloads) {
    this.#client = client;
    this.#workloads = workloads;
  }

  /**
   * The sum of what the pods' controllers want, each counted once, and the pods that have none. Rejects where a
   * controller cannot be found or has no scale: there is no telling then how many pods there should be.
   */
  async totalOf(pods: readonly Pod[], signal: AbortSignal): Promise<{ total: number; unmanaged: readonly Pod[] }> {
    const found = new Map<string, number>();
    const seen = new Set<string>();
    const unmanaged: Pod[] = [];
    for (const pod of pods) {
      const { namespace = '', name } = pod.metadata;
      const owner = controllerOf(pod);
      if (!owner) unmanaged.push(pod);
      if (!owner || seen.has(owner.uid)) continue;
      seen.add(owner.uid);
      const controller = this.#known(owner, namespace) ?? (await this.#asked(owner, namespace, signal));
      if (!controller) throw new Error(`found no controllers for pod ${JSON.stringify(name)}`);
      found.set(controller.uid, controller.replicas);
    }
    return { total: [...found.values()].reduce((sum, replicas) => sum + replicas, 0), unmanaged };
  }

  /** From the caches; undefined where they do not know it. */
  #known(owner: OwnerReference, namespace: string): Controlled | undefined {
    const { group } = parseApiVersion(owner.apiVersion);
    const { replicationControllers, replicaSets, statefulSets } = this.#workloads;
    if (owner.kind === 'ReplicationController' && group === '')
      return scaleOf(replicationControllers.get(`${namespace}/${owner.name}`), owner);
    if (owner.kind === 'StatefulSet' && group === 'apps')
      return scaleOf(statefulSets.get(`${namespace}/${owner.name}`), owner);
    if (owner.kind !== 'ReplicaSet' || !APPS.includes(group)) return undefined;
    const replicaSet = replicaSets.get(`${namespace}/${owner.name}`);
    const above = replicaSet?.metadata.uid === owner.uid ? controllerOf(replicaSet) : undefined;
    // While a deployment rolls, its replica sets want more than it does.
    return above?.kind === 'Deployment' ? this.#deployment(above, namespace) : scaleOf(replicaSet, owner);
  }

  #deployment(owner: OwnerReference, namespace: string): Controlled | undefined {
    if (!APPS.includes(parseApiVersion(owner.apiVersion).group)) return undefined;
    return scaleOf(this.#workloads.deployments.get(`${namespace}/${owner.name}`), owner);
  }

  /** From the server, by the scale subresource; undefined where there is no such object. */
  async #asked(owner: OwnerReference, namespace: string, signal: AbortSignal): Promise<Controlled | undefined> {
    const { group, version } = parseApiVersion(owner.apiVersion);
    const { resource, hasScale } = await this.#kind(owner, signal);
    if (!resource)
      throw new Error(`no matches for kind ${JSON.stringify(owner.kind)} in version "${owner.apiVersion}"`);
    if (!hasScale) {
      const name = group === '' ? resource.plural : `${resource.plural}.${group}`;
      throw new Error(`${name} does not implement the scale subresource`);
    }
    const path = pathOf({ ...resource, group, version }, namespace, owner.name, 'scale');
    try {
      return scaleOf(await this.#client.getPath<Workload>(path, signal), owner, 0);
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return undefined;
      throw error;
    }
  }

  async #kind({ apiVersion, kind }: OwnerReference, signal: AbortSignal): Promise<Kind> {
    const { group, version } = parseApiVersion(apiVersion);
    const path = group === '' ? `/api/${version}` : `/apis/${apiVersionOf(group, version)}`;
    try {
      const { resources = [] } = await this.#client.getPath<ApiResourceList>(path, signal);
      const served = resources.find((each) => each.kind === kind && !each.name.includes('/'));
      if (!served) return { resource: undefined, hasScale: false };
      const resource = { group, version, plural: served.name, kind, namespaced: served.namespaced };
      const hasScale = resources.some((each) => each.name === `${served.name}/scale` && each.kind === 'Scale');
      return { resource, hasScale };
    } catch (error) {
      if (error instanceof ApiError && error.code === 404) return { resource: undefined, hasScale: false };
      throw error;
    }
  }
}

/** An object of the same name that is another one is none. Workloads want one pod where they say nothing. */
function scaleOf(
  object: (KubeObject & Workload) | undefined,
  owner: OwnerReference,
  preset = 1,
): Controlled | undefined {
  if (object?.metadata.uid !== owner.uid) return undefined;
  return { uid: owner.uid, replicas: object.spec?.replicas ?? preset };
}
