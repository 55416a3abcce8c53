import type { KubeObject } from '../../api/meta.ts';
import type { ResourceDefinition } from '../../api/resource.ts';
import type { AdmissionAttributes } from '../registry/contract.ts';
import { builtinOf, userContext } from '../registry/registry.fixture.ts';

/** Requests as admission sees them. */

export const pods = builtinOf('', 'pods');
export const namespaces = builtinOf('', 'namespaces');
export const nodes = builtinOf('', 'nodes');
export const configMaps = builtinOf('', 'configmaps');
export const claims = builtinOf('', 'persistentvolumeclaims');
export const services = builtinOf('', 'services');
export const quotas = builtinOf('', 'resourcequotas');
export const deployments = builtinOf('apps', 'deployments');
export const priorityClasses = builtinOf('scheduling.k8s.io', 'priorityclasses');

/** The attributes of a request; by default a create of the object in its own namespace. */
export function attributesOf(
  definition: ResourceDefinition,
  object: KubeObject | undefined,
  more: Partial<Omit<AdmissionAttributes, 'target'>> & { readonly subresource?: string; readonly name?: string } = {},
): AdmissionAttributes {
  const { subresource, name, ...rest } = more;
  const about = object ?? more.oldObject;
  return {
    operation: 'CREATE',
    target: {
      definition,
      namespace: definition.namespaced ? (about?.metadata.namespace ?? 'default') : '',
      name: name ?? about?.metadata.name ?? '',
      ...(subresource === undefined ? {} : { subresource }),
    },
    object,
    oldObject: undefined,
    options: undefined,
    context: userContext(),
    ...rest,
  };
}
