import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { formatTime } from '../../api/meta.ts';
import type { LauncherPod } from '../../control/resources.ts';
import type { Node } from '../../migration/fit/objects.ts';
import type { SlotLedger } from '../../migration/slots/ledger.ts';
import type { SlotHolder } from '../../migration/slots/request.ts';
import type { SeenCluster } from './seen-cluster.ts';

/** Parts of clusters to look at. */

export const NOW_MS = Date.parse('2026-05-01T12:00:00Z');
export const ago = (seconds: number): string => formatTime(NOW_MS - seconds * 1000);

export function condition(type: string, status: 'True' | 'False', message = '', reason = ''): KubeVirtCondition {
  return { type, status, message, reason };
}

export function guestOf(
  name: string,
  node: string,
  status: VirtualMachineInstance['status'] = {},
  spec: object = {},
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { namespace: 'shop', name, uid: `guest-${name}`, creationTimestamp: ago(600) },
    spec: { domain: { devices: {} }, ...spec },
    status: {
      phase: 'Running',
      nodeName: node,
      ...(node === ''
        ? {}
        : { rightToRun: { epoch: 1, holder: { node, nodeUID: `uid-${node}`, podUID: `pod-${name}` } } }),
      conditions: [condition('LiveMigratable', 'True')],
      ...status,
    },
  } as VirtualMachineInstance;
}

export function machineOf(name: string, spec: object = {}, status: VirtualMachine['status'] = {}): VirtualMachine {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachine',
    metadata: { namespace: 'shop', name, uid: `vm-${name}`, creationTimestamp: ago(600) },
    spec: { runStrategy: 'Always', template: { spec: { domain: { devices: {} } } }, ...spec },
    status: { printableStatus: 'Running', ...status },
  } as VirtualMachine;
}

export function migrationOf(
  guest: string,
  phase: MigrationPhase = 'Pending',
  more: {
    readonly agoSeconds?: number;
    readonly priority?: number;
    readonly status?: object;
    readonly spec?: object;
    readonly annotations?: Record<string, string>;
  } = {},
): VirtualMachineInstanceMigration {
  const { agoSeconds = 10, priority = 50, status = {}, spec = {}, annotations } = more;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: {
      namespace: 'shop',
      name: `move-${guest}`,
      uid: `migration-${guest}`,
      creationTimestamp: ago(agoSeconds),
      ...(annotations ? { annotations } : {}),
    },
    spec: { vmName: guest, vmiName: guest, ...spec },
    status: { phase, effectivePriority: priority, causes: [{ cause: 'User', priority }], ...status },
  } as VirtualMachineInstanceMigration;
}

export function nodeOf(
  name: string,
  isReady = true,
  spec: Node['spec'] = {},
  conditions: readonly object[] = [],
): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, uid: `uid-${name}`, creationTimestamp: ago(86_400) },
    spec,
    status: {
      conditions: [
        {
          type: 'Ready',
          status: isReady ? 'True' : 'Unknown',
          message: isReady ? 'all is well' : 'it is not heard of',
        },
        ...conditions,
      ],
    },
  } as Node;
}

/** The pod that a guest would move to; on no node where none is given. */
export function targetPodOf(guest: string, node = '', conditions: readonly object[] = []): LauncherPod {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace: 'shop',
      name: `launcher-${guest}`,
      uid: `target-${guest}`,
      creationTimestamp: ago(5),
      labels: { 'kubevirt.io/migrationJobUID': `migration-${guest}` },
      ownerReferences: [
        {
          apiVersion: 'kubevirt.io/v1',
          kind: 'VirtualMachineInstance',
          name: guest,
          uid: `guest-${guest}`,
          controller: true,
        },
      ],
    },
    spec: node === '' ? {} : { nodeName: node },
    status: { phase: 'Pending', conditions },
  } as LauncherPod;
}

export function holderOf(guest: string, sourceNode: string, targetNode?: string): SlotHolder {
  const uid = `migration-${guest}`;
  return {
    uid,
    kind: 'local',
    members: [{ namespace: 'shop', name: `move-${guest}`, uid }],
    sourceNode,
    targetNode,
    state: targetNode === undefined ? 'reserved' : 'committed',
    sinceMs: NOW_MS - 5000,
  };
}

export function ledgerOf(limits: Partial<SlotLedger['limits']>, ...holders: readonly SlotHolder[]): SlotLedger {
  return {
    limits: { perCluster: 5, outboundPerNode: 2, inboundPerNode: 2, ...limits },
    limitsVersion: '8',
    holders: new Map(holders.map((holder) => [holder.uid, holder])),
  };
}

export function kubeVirtOf(configuration: object = {}): KubeVirt {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'KubeVirt',
    metadata: { namespace: 'kubevirt', name: 'kubevirt', resourceVersion: '7' },
    spec: { configuration },
  } as KubeVirt;
}

export function seenOf(parts: Partial<SeenCluster>): SeenCluster {
  return {
    nowMs: NOW_MS,
    nodes: [],
    machines: [],
    guests: [],
    migrations: [],
    targetPods: [],
    kubeVirt: kubeVirtOf(),
    ledger: ledgerOf({}),
    denied: [],
    ...parts,
  };
}
