import { apiVersionOf, type KubeObject } from '../../../api/meta.ts';
import type { ResourceDefinition } from '../../../api/resource.ts';
import { clone } from '../../../machinery/clone.ts';

/** A group, version and kind as AdmissionReview has it. */
export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** The kind that a request carries: the subresource's own where it has one, else its parent's. */
export function kindOf(definition: ResourceDefinition, subresource: string): GroupVersionKind {
  const sub = subresource === '' ? undefined : definition.subresources?.find((each) => each.name === subresource);
  if (!sub?.kind) return { group: definition.group, version: definition.version, kind: definition.kind };
  return { group: sub.group ?? definition.group, version: sub.version ?? definition.version, kind: sub.kind };
}

/** Whether what a subresource carries is a kind of its own, to which its parent's schema does not apply. */
export function hasOwnKind(definition: ResourceDefinition, subresource: string): boolean {
  return subresource !== '' && Boolean(definition.subresources?.find((each) => each.name === subresource)?.kind);
}

/** The object as another served version of its kind shows it; the object itself where that is the same version. */
export function convert(object: KubeObject, from: ResourceDefinition, to: ResourceDefinition): KubeObject {
  if (from === to) return object;
  const converted = clone(object);
  from.storage?.toStorage(converted);
  to.storage?.fromStorage(converted);
  converted.apiVersion = apiVersionOf(to.group, to.version);
  converted.kind = to.kind;
  return converted;
}
