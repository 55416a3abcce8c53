import type { Json, KubeObject } from '../../api/meta.ts';
import type { LabelSelectorObject } from '../../machinery/selectors.ts';

/** The parts of Kubernetes objects that placing a pod looks at, as they are on the wire. */

type Labels = { readonly [key: string]: string };
type ResourceList = { readonly [name: string]: Json };

export interface Taint {
  readonly key: string;
  readonly value?: string;
  readonly effect: string;
  readonly timeAdded?: string;
}

export interface Toleration {
  readonly key?: string;
  readonly operator?: string;
  readonly value?: string;
  readonly effect?: string;
  readonly tolerationSeconds?: number;
}

export interface NodeSelectorRequirement {
  readonly key: string;
  readonly operator: string;
  readonly values?: readonly string[];
}

export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly NodeSelectorRequirement[];
  readonly matchFields?: readonly NodeSelectorRequirement[];
}

export interface NodeSelectorObject {
  readonly nodeSelectorTerms?: readonly NodeSelectorTerm[];
}

export interface PodAffinityTerm {
  readonly labelSelector?: LabelSelectorObject;
  readonly namespaces?: readonly string[];
  readonly namespaceSelector?: LabelSelectorObject;
  readonly topologyKey: string;
  readonly matchLabelKeys?: readonly string[];
  readonly mismatchLabelKeys?: readonly string[];
}

export interface PodAffinity {
  readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[];
  readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly {
    readonly weight: number;
    readonly podAffinityTerm: PodAffinityTerm;
  }[];
}

export interface Affinity {
  readonly nodeAffinity?: {
    readonly requiredDuringSchedulingIgnoredDuringExecution?: NodeSelectorObject;
    readonly preferredDuringSchedulingIgnoredDuringExecution?: readonly {
      readonly weight: number;
      readonly preference: NodeSelectorTerm;
    }[];
  };
  readonly podAffinity?: PodAffinity;
  readonly podAntiAffinity?: PodAffinity;
}

export interface TopologySpreadConstraint {
  readonly maxSkew: number;
  readonly topologyKey: string;
  readonly whenUnsatisfiable: string;
  readonly labelSelector?: LabelSelectorObject;
  readonly minDomains?: number;
  readonly nodeAffinityPolicy?: string;
  readonly nodeTaintsPolicy?: string;
  readonly matchLabelKeys?: readonly string[];
}

export interface ContainerPort {
  readonly hostPort?: number;
  readonly hostIP?: string;
  readonly protocol?: string;
}

export interface Container {
  readonly name?: string;
  readonly restartPolicy?: string;
  readonly resources?: { readonly requests?: ResourceList; readonly limits?: ResourceList };
  readonly ports?: readonly ContainerPort[];
}

export interface Volume {
  readonly name?: string;
  readonly persistentVolumeClaim?: { readonly claimName?: string };
  readonly ephemeral?: object;
}

export interface PodSpec {
  readonly nodeName?: string;
  readonly schedulerName?: string;
  readonly schedulingGates?: readonly unknown[];
  readonly priority?: number;
  readonly preemptionPolicy?: string;
  readonly containers?: readonly Container[];
  readonly initContainers?: readonly Container[];
  readonly overhead?: ResourceList;
  readonly resources?: { readonly requests?: ResourceList; readonly limits?: ResourceList };
  readonly nodeSelector?: Labels;
  readonly affinity?: Affinity;
  readonly tolerations?: readonly Toleration[];
  readonly topologySpreadConstraints?: readonly TopologySpreadConstraint[];
  readonly volumes?: readonly Volume[];
  readonly terminationGracePeriodSeconds?: number;
}

export interface PodCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastTransitionTime?: string | null;
}

export interface Pod extends KubeObject {
  spec?: PodSpec;
  status?: {
    readonly phase?: string;
    readonly reason?: string;
    readonly startTime?: string;
    readonly nominatedNodeName?: string;
    readonly conditions?: readonly PodCondition[];
  };
}

export interface NodeCondition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
  readonly lastHeartbeatTime?: string;
  readonly lastTransitionTime?: string;
}

export interface Node extends KubeObject {
  spec?: { readonly unschedulable?: boolean; readonly taints?: readonly Taint[] };
  status?: {
    readonly allocatable?: ResourceList;
    readonly capacity?: ResourceList;
    readonly conditions?: readonly NodeCondition[];
  };
}

export interface PersistentVolumeClaim extends KubeObject {
  spec?: {
    readonly volumeName?: string;
    readonly storageClassName?: string;
    readonly accessModes?: readonly string[];
    readonly volumeMode?: string;
    readonly selector?: LabelSelectorObject;
    readonly resources?: { readonly requests?: ResourceList };
    readonly dataSource?: object;
    readonly dataSourceRef?: object;
    readonly volumeAttributesClassName?: string;
  };
  status?: {
    readonly phase?: string;
    readonly accessModes?: readonly string[];
    readonly capacity?: ResourceList;
  };
}

/** The claim that a volume is for; without a UID it is whichever claim has the name. */
export interface ClaimReference {
  readonly apiVersion?: string;
  readonly kind?: string;
  readonly namespace?: string;
  readonly name?: string;
  readonly uid?: string;
  readonly resourceVersion?: string;
}

export interface PersistentVolume extends KubeObject {
  spec?: {
    readonly capacity?: ResourceList;
    readonly accessModes?: readonly string[];
    readonly volumeMode?: string;
    readonly storageClassName?: string;
    readonly persistentVolumeReclaimPolicy?: string;
    readonly mountOptions?: readonly string[];
    readonly claimRef?: ClaimReference;
    readonly nodeAffinity?: { readonly required?: NodeSelectorObject };
    readonly hostPath?: { readonly path: string; readonly type?: string };
    readonly local?: { readonly path: string };
  };
  status?: { readonly phase?: string; readonly reason?: string; readonly message?: string };
}

export interface StorageClass extends KubeObject {
  provisioner?: string;
  parameters?: { readonly [name: string]: string };
  reclaimPolicy?: string;
  mountOptions?: readonly string[];
  volumeBindingMode?: string;
  allowedTopologies?: readonly {
    readonly matchLabelExpressions?: readonly { readonly key: string; readonly values: readonly string[] }[];
  }[];
}
