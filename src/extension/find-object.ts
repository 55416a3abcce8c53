import type { KubeObject } from '../api/meta.ts';
import { ApiError, notFound } from '../api/status.ts';
import type { Client } from '../kube/client.ts';
import type { Resource } from '../kube/resource.ts';

/** An object, or undefined where there is none of the name. */
export async function find<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<T | undefined> {
  try {
    return await client.get(resource, namespace, name, signal);
  } catch (error) {
    if (error instanceof ApiError && error.code === 404) return undefined;
    throw error;
  }
}

/** An object. Rejects with 404, in KubeVirt's words, where there is none of the name. */
export async function found<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<T> {
  const object = await find(client, resource, namespace, name, signal);
  if (object) return object;
  throw notFound({ group: resource.group, plural: resource.plural.replace(/s$/, '') }, name);
}
