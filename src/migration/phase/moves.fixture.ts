import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { TARGET_NODE_LABEL } from '../../api/kubevirt/well-known.ts';
import { formatTime } from '../../api/meta.ts';
import { servedCauses } from '../causes/served-causes.ts';
import { syncTimeoutMs } from './deadlines.ts';
import type { MigrationFacts, TargetPod } from './facts.ts';

/** The moment of all that is decided in tests. */
export const NOW_MS = Date.parse('2026-05-01T12:00:00Z');

export const at = (beforeMs: number): string => formatTime(NOW_MS - beforeMs);

/** A migration in a phase that began this long ago. */
export function migrationIn(
  phase: MigrationPhase,
  more: Partial<VirtualMachineInstanceMigration['metadata']> = {},
  sinceMs = 1000,
): VirtualMachineInstanceMigration {
  const timestamps = [{ phase, phaseTransitionTimestamp: at(sinceMs) }];
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: { name: 'move', namespace: 'shop', uid: 'move-1', creationTimestamp: at(60_000), ...more },
    spec: { vmName: 'web', vmiName: 'web', cause: 'User' },
    ...(phase === '' ? {} : { status: { phase, phaseTransitionTimestamps: timestamps } }),
  };
}

const SOURCE = { node: 'node-a', nodeUID: 'uid-a', podUID: 'pod-a' };
export const TARGET = { node: 'node-b', nodeUID: 'uid-b', podUID: 'pod-b' };

/** A guest that runs on node-a. */
export function guestWith(status: VirtualMachineInstanceStatus = {}, metadata: object = {}): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'web', namespace: 'shop', uid: 'guest-1', ...metadata },
    spec: { domain: { devices: {} } },
    status: { phase: 'Running', nodeName: 'node-a', rightToRun: { epoch: 3, holder: SOURCE }, ...status },
  };
}

/** The same, handed off to node-b. */
export function handedOff(
  state: MigrationState = {},
  status: VirtualMachineInstanceStatus = {},
): VirtualMachineInstance {
  const route = { migrationUid: 'move-1', sourceNode: 'node-a', targetNode: 'node-b', targetPod: 'target' };
  const labels = { [TARGET_NODE_LABEL]: 'node-b' };
  return guestWith({ ...status, migrationState: { ...route, ...state } }, { labels });
}

export function podWith(more: Partial<TargetPod> = {}): TargetPod {
  const pod = { name: 'target', nodeName: 'node-b', isUp: true, isDown: false, cause: '', isUnschedulable: false };
  return { ...pod, createdMs: NOW_MS - 1000, ...more };
}

export function factsOf(more: Partial<MigrationFacts>): MigrationFacts {
  const { migration = migrationIn('Pending'), guest = guestWith() } = more;
  return {
    migration,
    guest,
    causes: servedCauses(migration, guest, { isOutdated: false }),
    targetPod: undefined,
    slots: undefined,
    hasBetterRival: false,
    isEvacuated: false,
    isOtherOwnerAlive: false,
    newsMs: NOW_MS - 1000,
    nowMs: NOW_MS,
    syncTimeoutMs: syncTimeoutMs({}),
    ...more,
  };
}
