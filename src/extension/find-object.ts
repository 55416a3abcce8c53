import type { KubeObject } from '../api/meta.ts';
import { notFound } from '../api/status.ts';
import type { Client } from '../kube/client.ts';
import type { Resource } from '../kube/resource.ts';

/** An object. Rejects with 404, in KubeVirt's words, where there is none of the name. */
export async function found<T extends KubeObject>(
  client: Client,
  resource: Resource<T>,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<T> {
  const object = await client.find(resource, namespace, name, signal);
  if (object) return object;
  throw notFound({ group: resource.group, plural: resource.plural.replace(/s$/, '') }, name);
}
