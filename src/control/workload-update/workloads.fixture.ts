import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type {
  MigrationPhase,
  VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { WORKLOAD_UPDATE_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import type { UpdateFacts, Workload } from './decide.ts';
import { updateNeed } from './update-need.ts';

/** The launcher that guests are started in now. */
export const CURRENT = 'launcher:2';

export interface GuestMaking {
  readonly image?: string;
  readonly changes?: readonly string[];
  readonly isMigratable?: boolean;
  readonly status?: VirtualMachineInstance['status'];
  readonly metadata?: VirtualMachineInstance['metadata'];
}

/** A guest that runs. */
export function guestOf(name: string, making: GuestMaking = {}): VirtualMachineInstance {
  const { image = CURRENT, changes = [], isMigratable = true, status, metadata } = making;
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name, namespace: 'shop', uid: `uid-of-${name}`, ...metadata },
    spec: { domain: { devices: {} } },
    status: {
      phase: 'Running',
      nodeName: 'a',
      launcherContainerImageVersion: image,
      rightToRun: { epoch: 1, holder: { node: 'a', nodeUID: 'uid-of-a', podUID: `pod-of-${name}` } },
      conditions: [
        { type: 'LiveMigratable', status: isMigratable ? 'True' : 'False' },
        ...changes.map((type) => ({ type, status: 'True' as const })),
      ],
      ...status,
    },
  };
}

/** A migration that the updater made. */
export function updateOf(
  guest: string,
  phase: MigrationPhase,
  more: Partial<VirtualMachineInstanceMigration['metadata']> = {},
): VirtualMachineInstanceMigration {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstanceMigration',
    metadata: {
      name: `update-of-${guest}`,
      namespace: 'shop',
      uid: `uid-of-update-of-${guest}`,
      annotations: { [WORKLOAD_UPDATE_ANNOTATION]: '' },
      ...more,
    },
    spec: { vmiName: guest, vmName: guest, cause: 'WorkloadUpdate' },
    status: { phase },
  };
}

/** A guest as the updater looks at it. */
export function workloadOf(
  guest: VirtualMachineInstance,
  migrations: readonly VirtualMachineInstanceMigration[] = [],
  isPodEnding = false,
): Workload {
  return { guest, need: updateNeed(guest, CURRENT), isServed: false, migrations, isPodEnding };
}

/** All that is looked at, with every method allowed and room for five. */
export function factsOf(workloads: readonly Workload[], more: Partial<UpdateFacts> = {}): UpdateFacts {
  return {
    workloads,
    strategy: { isMovingAllowed: true, isEvictingAllowed: true, evictionsPerBatch: 10, batchIntervalMs: 60_000 },
    migrationsMax: 5,
    migrationsUnderWay: 0,
    evictedMs: undefined,
    nowMs: 1_000_000,
    ...more,
  };
}
