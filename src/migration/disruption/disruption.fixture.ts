import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import { formatTime } from '../../api/meta.ts';
import type { Node, Taint } from '../fit/objects.ts';
import type { DisruptedPod } from './disruption.ts';

/** When the pods of these tests are deleted. */
export const DELETED_MS = Date.UTC(2026, 0, 1, 12);

/** A moment so many seconds after the deletion. */
export const at = (seconds: number): string => formatTime(DELETED_MS + seconds * 1000);

interface PodOptions {
  readonly reason?: string | undefined;
  readonly status?: string;
  /** Seconds from the deletion at which the condition became true; undefined for unknown. */
  readonly trueAt?: number | undefined;
  /** Seconds from the deletion at which its writer last wrote; undefined for unknown. */
  readonly writtenAt?: number | undefined;
  readonly graceSeconds?: number;
  /** What the pod was deleted with, where that is another time. */
  readonly deletedWithSeconds?: number;
  readonly isDeleted?: boolean;
  readonly tolerations?: NonNullable<DisruptedPod['spec']>['tolerations'];
}

/** A launcher pod that was preempted, unless it is said otherwise. */
export function disruptedPod(options: PodOptions = {}): DisruptedPod {
  const { reason = 'PreemptionByScheduler', status = 'True', graceSeconds = 345, isDeleted = true } = options;
  const { deletedWithSeconds = graceSeconds, tolerations } = options;
  const trueAt = 'trueAt' in options ? options.trueAt : 0;
  const writtenAt = 'writtenAt' in options ? options.writtenAt : 0;
  return {
    metadata: {
      name: 'virt-launcher-web-1',
      uid: 'pod-1',
      ...(isDeleted
        ? { deletionTimestamp: at(deletedWithSeconds), deletionGracePeriodSeconds: deletedWithSeconds }
        : {}),
      ...(writtenAt === undefined
        ? {}
        : {
            managedFields: [
              {
                manager: 'whoever',
                operation: 'Update',
                apiVersion: 'v1',
                time: at(writtenAt),
                fieldsType: 'FieldsV1',
                fieldsV1: { 'f:status': { 'f:conditions': { 'k:{"type":"DisruptionTarget"}': { 'f:reason': {} } } } },
              },
            ],
          }),
    },
    spec: { nodeName: 'node-a', terminationGracePeriodSeconds: graceSeconds, ...(tolerations ? { tolerations } : {}) },
    status: {
      conditions: [
        {
          type: 'DisruptionTarget',
          status,
          reason,
          ...(trueAt === undefined ? {} : { lastTransitionTime: at(trueAt) }),
        },
      ],
    },
  };
}

/** A guest that can move, and wants to. */
export function disruptedGuest(
  spec: Partial<VirtualMachineInstanceSpec> = {},
  status: VirtualMachineInstanceStatus = {},
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'web', namespace: 'shop', uid: 'guest-1' },
    spec: { domain: { devices: {} }, evictionStrategy: 'LiveMigrate', ...spec },
    status: {
      phase: 'Running',
      nodeName: 'node-a',
      conditions: [{ type: 'LiveMigratable', status: 'True' }],
      ...status,
    },
  };
}

/** What of a guest's status says that it is marked for this cause. */
export function marked(cause: EvacuationCause): VirtualMachineInstanceStatus {
  return { evacuationNodeName: 'node-a', evacuationCauses: [cause] };
}

/** Both features on. */
export const GATES_ON: KubeVirtConfiguration = {
  developerConfiguration: {
    featureGates: ['PreemptionEvictionLiveMigration', 'NoExecuteTaintEvictionLiveMigration'],
  },
};

export function taintedNode(taints: readonly Taint[], readyAt = -1000, isReady = true): Node {
  const ready = { type: 'Ready', status: isReady ? 'True' : 'Unknown', lastTransitionTime: at(readyAt) };
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name: 'node-a' },
    spec: { taints },
    status: { conditions: [ready] },
  };
}
