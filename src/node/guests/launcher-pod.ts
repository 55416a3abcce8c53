import type { KubeObject, OwnerReference } from '../../api/meta.ts';
import { controllerOf } from '../../kube/owner.ts';
import type { Resource } from '../../kube/resource.ts';
import type { PodCondition, Toleration } from '../../migration/fit/objects.ts';

/** A pod, with what an agent reads and writes of it. */
export interface LauncherPod extends KubeObject {
  spec?: {
    readonly nodeName?: string;
    readonly terminationGracePeriodSeconds?: number;
    readonly tolerations?: readonly Toleration[];
    readonly readinessGates?: readonly { readonly conditionType: string }[];
    readonly containers?: readonly { readonly name?: string; readonly image?: string }[];
  };
  status?: LauncherPodStatus;
}

export interface LauncherPodStatus {
  readonly phase?: string | undefined;
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly startTime?: string | undefined;
  readonly conditions?: readonly PodCondition[] | undefined;
  readonly containerStatuses?: readonly ContainerStatus[] | undefined;
}

export interface ContainerStatus {
  readonly name: string;
  readonly image: string;
  readonly imageID: string;
  readonly containerID?: string;
  readonly ready: boolean;
  readonly started?: boolean;
  readonly restartCount: number;
  readonly state: {
    readonly waiting?: { readonly reason: string; readonly message: string };
    readonly running?: { readonly startedAt: string };
    readonly terminated?: {
      readonly exitCode: number;
      readonly reason: string;
      readonly message: string;
      readonly startedAt?: string;
      readonly finishedAt: string;
    };
  };
}

export const launcherPods: Resource<LauncherPod> = {
  group: '',
  version: 'v1',
  plural: 'pods',
  kind: 'Pod',
  namespaced: true,
};

/** The guest that a pod says it is for. Whether that is true only the guest's UID on the server tells. */
export function guestOwner(pod: LauncherPod): OwnerReference | undefined {
  const owner = controllerOf(pod);
  const isGuest = owner?.kind === 'VirtualMachineInstance' && owner.apiVersion.startsWith('kubevirt.io/');
  return isGuest ? owner : undefined;
}

/** Whether the pod has ended, and is not to run again. */
export function isPodOver({ status }: LauncherPod): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}
