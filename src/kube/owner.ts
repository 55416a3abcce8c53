import type { KubeObject, OwnerReference } from '../api/meta.ts';

/** The owner that manages an object, if one does. Labels prove nothing; this does. */
export function controllerOf({ metadata }: Pick<KubeObject, 'metadata'>): OwnerReference | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true);
}
