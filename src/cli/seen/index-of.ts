import { pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { guestKeyOf, migrationUidsOf } from '../../control/migration/keys.ts';
import type { LauncherPod } from '../../control/resources.ts';
import { keyOf } from '../../kube/resource.ts';
import type { SeenCluster } from './seen-cluster.ts';

/** What is in a cluster, by what one looks for it by: there may be thousands of each. */
export interface SeenIndex {
  readonly guests: ReadonlyMap<string, VirtualMachineInstance>;
  readonly machines: ReadonlyMap<string, VirtualMachine>;
  readonly migrationsOf: ReadonlyMap<string, readonly VirtualMachineInstanceMigration[]>;
  readonly migrationsWithKey: ReadonlyMap<string, readonly VirtualMachineInstanceMigration[]>;
  readonly migrationsByUid: ReadonlyMap<string, VirtualMachineInstanceMigration>;
  /** By the UID of the migration that they were made for. */
  readonly targetPods: ReadonlyMap<string, LauncherPod>;
}

export function indexOf(seen: SeenCluster): SeenIndex {
  return {
    guests: new Map(seen.guests.map((each) => [keyOf(each), each])),
    machines: new Map(seen.machines.map((each) => [keyOf(each), each])),
    migrationsOf: grouped(seen.migrations, guestKeyOf),
    migrationsWithKey: grouped(seen.migrations, ({ spec }) => pairKeyOf(spec) ?? ''),
    migrationsByUid: new Map(seen.migrations.map((each) => [each.metadata.uid ?? '', each])),
    targetPods: new Map(seen.targetPods.flatMap((pod) => migrationUidsOf(pod).map((uid) => [uid, pod] as const))),
  };
}

function grouped<T>(items: readonly T[], keyOfItem: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOfItem(item);
    const group = groups.get(key);
    if (group) group.push(item);
    else groups.set(key, [item]);
  }
  return groups;
}
