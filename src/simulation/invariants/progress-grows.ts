import type { MigrationProgress } from '../../api/kubevirt/migration-progress.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATIONS, VMIS } from '../buckets.ts';
import type { Invariant } from '../invariant.ts';

/** The progress of a migration, in percent, never falls, neither where its source writes it nor where people read it. */
export function progressGrows(): Invariant {
  const percents = new Map<string, number>();
  const judge = (key: string, progress: MigrationProgress | undefined): string | undefined => {
    if (!progress) return undefined;
    const before = percents.get(key) ?? 0;
    percents.set(key, progress.percent);
    return progress.percent < before
      ? `progress of ${key} falls from ${before} to ${progress.percent} percent`
      : undefined;
  };
  return {
    name: 'progress-grows',
    observe({ bucket, object }) {
      if (bucket === MIGRATIONS && object)
        return judge(`migration ${object.metadata.uid}`, (object as VirtualMachineInstanceMigration).status?.progress);
      const state =
        bucket === VMIS ? (object as VirtualMachineInstance | undefined)?.status?.migrationState : undefined;
      return state && judge(`${object?.metadata.name} in migration ${state.migrationUid}`, state.progress);
    },
  };
}
