import type { KubeObject } from '../api/meta.ts';
import type { Instancetype } from '../api/kubevirt/instancetype.ts';
import type { Preference } from '../api/kubevirt/preference.ts';
import type { Resource } from '../kube/resource.ts';
import type { DisruptionBudget } from '../migration/eviction/disruption-budget.ts';
import type {
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  PodCondition,
  StorageClass,
  Toleration,
} from '../migration/fit/objects.ts';

/** The resources that the controllers watch and write, besides KubeVirt's own. */

function resource<T extends KubeObject>(plural: string, kind: string, group: string, namespaced = true): Resource<T> {
  return { group, version: 'v1', plural, kind, namespaced };
}

function sizing<T extends KubeObject>(plural: string, kind: string, namespaced: boolean): Resource<T> {
  return { group: 'instancetype.kubevirt.io', version: 'v1beta1', plural, kind, namespaced };
}

export const pods = resource<LauncherPod>('pods', 'Pod', '');
export const nodes = resource<Node>('nodes', 'Node', '', false);
export const persistentVolumeClaims = resource<PersistentVolumeClaim>(
  'persistentvolumeclaims',
  'PersistentVolumeClaim',
  '',
);
export const persistentVolumes = resource<PersistentVolume>('persistentvolumes', 'PersistentVolume', '', false);
export const namespaces = resource('namespaces', 'Namespace', '', false);
export const resourceQuotas = resource<ResourceQuota>('resourcequotas', 'ResourceQuota', '');
export const storageClasses = resource<StorageClass>('storageclasses', 'StorageClass', 'storage.k8s.io', false);
export const disruptionBudgets = resource<DisruptionBudget>('poddisruptionbudgets', 'PodDisruptionBudget', 'policy');
export const controllerRevisions = resource<ControllerRevision>('controllerrevisions', 'ControllerRevision', 'apps');

/** By the name under which machines refer to a kind. */
export const INSTANCETYPES: ReadonlyMap<string, Resource<Instancetype>> = new Map([
  ['virtualmachineinstancetype', sizing('virtualmachineinstancetypes', 'VirtualMachineInstancetype', true)],
  [
    'virtualmachineclusterinstancetype',
    sizing('virtualmachineclusterinstancetypes', 'VirtualMachineClusterInstancetype', false),
  ],
]);

/** By the name under which machines refer to a kind. */
export const PREFERENCES: ReadonlyMap<string, Resource<Preference>> = new Map([
  ['virtualmachinepreference', sizing('virtualmachinepreferences', 'VirtualMachinePreference', true)],
  [
    'virtualmachineclusterpreference',
    sizing('virtualmachineclusterpreferences', 'VirtualMachineClusterPreference', false),
  ],
]);

/** A pod with what is looked at in launchers. */
export interface LauncherPod extends KubeObject {
  spec?: {
    readonly nodeName?: string;
    readonly containers?: readonly { readonly name?: string; readonly image?: string }[];
    readonly terminationGracePeriodSeconds?: number;
    readonly volumes?: readonly {
      readonly name?: string;
      readonly persistentVolumeClaim?: { readonly claimName: string };
    }[];
    readonly tolerations?: readonly Toleration[];
    readonly priority?: number;
  };
  status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly message?: string;
    readonly qosClass?: 'BestEffort' | 'Burstable' | 'Guaranteed';
    readonly nominatedNodeName?: string;
    readonly conditions?: readonly PodCondition[];
    readonly containerStatuses?: readonly ContainerStatus[];
  };
}

interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly state?: {
    readonly waiting?: { readonly reason?: string; readonly message?: string };
    readonly running?: object;
    readonly terminated?: { readonly reason?: string; readonly message?: string };
  };
}

/** How much of what a namespace may have it has. */
export interface ResourceQuota extends KubeObject {
  spec?: { readonly hard?: { readonly [name: string]: string } };
  status?: {
    readonly hard?: { readonly [name: string]: string };
    readonly used?: { readonly [name: string]: string };
  };
}

/** A copy of an object as it was. */
export interface ControllerRevision extends KubeObject {
  data?: KubeObject;
  revision: number;
}
