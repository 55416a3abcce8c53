import type { KubeObject, OwnerReference } from '../api/meta.ts';
import type { Pod } from '../migration/fit/objects.ts';

/** Indexes that several loops ask the shared informers for: the name and the function go together. */

/** The owner that manages an object, if one does. */
export function controllerOf({ metadata }: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}

/** Objects by their namespace. */
export const byNamespace = {
  namespace: ({ metadata }: KubeObject): readonly string[] => [metadata.namespace ?? ''],
};

/** Objects by the UID of the owner that manages them. */
export const byController = {
  controller: (object: KubeObject): readonly string[] => {
    const owner = controllerOf(object);
    return owner === undefined ? [] : [owner.uid];
  },
};

/** Pods by the node that they are bound to. */
export const byNode = {
  node: ({ spec }: Pod): readonly string[] => (spec?.nodeName ? [spec.nodeName] : []),
};

/** Objects by each of their labels, within their namespace; values are made by `labelIn`. */
export const byLabel = {
  label: ({ metadata: { namespace = '', labels = {} } }: KubeObject): readonly string[] =>
    Object.entries(labels).map(([key, value]) => labelIn(namespace, key, value)),
};

/** Neither namespaces nor labels contain a newline. */
export function labelIn(namespace: string, key: string, value: string): string {
  return `${namespace}\n${key}\n${value}`;
}
