import type { KubeObject } from '../api/meta.ts';
import type { Resource } from '../kube/resource.ts';
import type { ResourceQuota } from '../machinery/quota.ts';
import type { Node, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass } from '../migration/fit/objects.ts';
import type { PodDisruptionBudget, Workload } from './disruption-budgets/objects.ts';
import type { Namespace } from './namespaces/conditions.ts';
import type { ConfigMap, Secret, ServiceAccount } from './service-accounts/objects.ts';

/** The resources that the loops watch and write. */

function resource<T extends KubeObject>(plural: string, kind: string, group: string, namespaced: boolean): Resource<T> {
  return { group, version: 'v1', plural, kind, namespaced };
}

export const pods = resource<Pod>('pods', 'Pod', '', true);
export const nodes = resource<Node>('nodes', 'Node', '', false);
export const namespaces = resource<Namespace>('namespaces', 'Namespace', '', false);
export const persistentVolumeClaims = resource<PersistentVolumeClaim>(
  'persistentvolumeclaims',
  'PersistentVolumeClaim',
  '',
  true,
);
export const persistentVolumes = resource<PersistentVolume>('persistentvolumes', 'PersistentVolume', '', false);
export const storageClasses = resource<StorageClass>('storageclasses', 'StorageClass', 'storage.k8s.io', false);
export const podDisruptionBudgets = resource<PodDisruptionBudget>(
  'poddisruptionbudgets',
  'PodDisruptionBudget',
  'policy',
  true,
);
export const replicationControllers = resource<Workload>('replicationcontrollers', 'ReplicationController', '', true);
export const replicaSets = resource<Workload>('replicasets', 'ReplicaSet', 'apps', true);
export const deployments = resource<Workload>('deployments', 'Deployment', 'apps', true);
export const statefulSets = resource<Workload>('statefulsets', 'StatefulSet', 'apps', true);
export const configMaps = resource<ConfigMap>('configmaps', 'ConfigMap', '', true);
export const secrets = resource<Secret>('secrets', 'Secret', '', true);
export const serviceAccounts = resource<ServiceAccount>('serviceaccounts', 'ServiceAccount', '', true);
export const customResourceDefinitions = resource(
  'customresourcedefinitions',
  'CustomResourceDefinition',
  'apiextensions.k8s.io',
  false,
);
export const apiServices = resource('apiservices', 'APIService', 'apiregistration.k8s.io', false);
export const resourceQuotas = resource<ResourceQuota>('resourcequotas', 'ResourceQuota', '', true);
