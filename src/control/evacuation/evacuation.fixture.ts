import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import type { MigrationCause } from '../../api/kubevirt/migration-cause.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { EVACUATION_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import type { Node } from '../../migration/fit/objects.ts';
import type { LauncherPod } from '../resources.ts';
import type { EvacuationFacts } from './decide.ts';

/** The moment of all that is decided in tests. */
export const NOW = '2026-05-01T12:00:00Z';

export const DRAIN_TAINT = { key: 'kubevirt.io/drain', value: '', effect: 'NoSchedule' };

const HOLDER = { node: 'node-a', nodeUID: 'uid-a', podUID: 'pod-a' };

/** A guest that runs on node-a, in pod-a, and can be live-migrated. */
export function guestWith(
  evictionStrategy: EvictionStrategy | undefined = 'LiveMigrate',
  status: VirtualMachineInstanceStatus = {},
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'web', namespace: 'shop', uid: 'guest-1' },
    spec: { domain: { devices: {} }, ...(evictionStrategy ? { evictionStrategy } : {}) },
    status: {
      phase: 'Running',
      nodeName: 'node-a',
      rightToRun: { epoch: 1, holder: HOLDER },
      conditions: [{ type: 'LiveMigratable', status: 'True' }],
      ...status,
    },
  };
}

/** The fields of a guest's status that mark it for the node that it is on. */
export const marked = (...evacuationCauses: EvacuationCause[]): VirtualMachineInstanceStatus => ({
  evacuationNodeName: 'node-a',
  evacuationCauses,
});

/** The fields of a guest's status that say that it cannot move. */
export const STUCK: VirtualMachineInstanceStatus = {
  conditions: [
    { type: 'LiveMigratable', status: 'False', reason: 'DisksNotLiveMigratable', message: 'disk on node-a' },
  ],
};

export function nodeWith(spec: Node['spec'] = {}): Node {
  return { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-a' }, spec };
}

/** A migration of the guest: one of ours where it names a cause that empties nodes. */
export function migrationIn(
  phase: MigrationPhase,
  cause: MigrationCause = 'APIEviction',
  metadata: Partial<VirtualMachineInstanceMigration['metadata']> = {},
): VirtualMachineInstanceMigration {
  const annotations: Record<string, string> = cause === 'User' ? {} : { [EVACUATION_ANNOTATION]: 'node-a' };
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'move', namespace: 'shop', uid: 'move-1', creationTimestamp: NOW, annotations, ...metadata },
    spec: { vmName: 'web', vmiName: 'web', cause },
    status: { phase },
  };
}

/** A launcher pod that runs; pod-a is the one that the guest is in. */
export function podWith(uid: string, metadata: LauncherPod['metadata'] = {}, phase = 'Running'): LauncherPod {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: uid, uid, ...metadata }, status: { phase } };
}

export function factsOf(more: Partial<EvacuationFacts>): EvacuationFacts {
  return {
    guest: guestWith(),
    node: nodeWith(),
    configuration: {},
    migrations: [],
    pods: [podWith('pod-a')],
    nowMs: Date.parse(NOW),
    ...more,
  };
}
