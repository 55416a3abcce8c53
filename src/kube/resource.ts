import type { KubeObject } from '../api/meta.ts';

/** A resource to talk about; `T` is the shape of its objects, known to the compiler alone. */
export interface Resource<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Never set. */
  readonly shape?: T;
}

/** The path of a collection or an object; an empty namespace means all of them. */
export function pathOf(resource: Resource, namespace: string, name = '', subresource = ''): string {
  const root = resource.group === '' ? `/api/${resource.version}` : `/apis/${resource.group}/${resource.version}`;
  const scope = resource.namespaced && namespace !== '' ? `/namespaces/${encodeURIComponent(namespace)}` : '';
  const object = name === '' ? '' : `/${encodeURIComponent(name)}`;
  return `${root}${scope}/${resource.plural}${object}${subresource === '' ? '' : `/${subresource}`}`;
}

/** `namespace/name`, or `name` for cluster-scoped objects: how queues and caches name an object. */
export function keyOf(object: Pick<KubeObject, 'metadata'>): string {
  const { namespace, name = '' } = object.metadata;
  return namespace === undefined || namespace === '' ? name : `${namespace}/${name}`;
}

/** Takes a key apart again; the namespace of a cluster-scoped object is empty. */
export function splitKey(key: string): { readonly namespace: string; readonly name: string } {
  const slash = key.indexOf('/');
  return slash < 0 ? { namespace: '', name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
