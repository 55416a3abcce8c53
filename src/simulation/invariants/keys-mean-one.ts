import { migrationRole, pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { SYNCHRONIZATION_FINALIZER } from '../../api/kubevirt/well-known.ts';
import { MIGRATIONS } from '../buckets.ts';
import type { Invariant } from '../invariant.ts';

/** No key ever means two migrations of one role that are not over. */
export function keysMeanOne(): Invariant {
  return {
    name: 'keys-mean-one',
    observe({ bucket, object }, state) {
      if (bucket !== MIGRATIONS || !object) return undefined;
      const own = idOf(object as VirtualMachineInstanceMigration);
      if (own === undefined) return undefined;
      for (const other of state.list(MIGRATIONS) as Iterable<VirtualMachineInstanceMigration>) {
        if (other.metadata.uid === object.metadata.uid || idOf(other) !== own) continue;
        return `${own} is that of ${other.metadata.name} and of ${object.metadata.name}`;
      }
      return undefined;
    },
  };
}

/** What a half that talks is known by. */
function idOf(migration: VirtualMachineInstanceMigration): string | undefined {
  const { metadata, spec } = migration;
  const isTalking = metadata.finalizers?.includes(SYNCHRONIZATION_FINALIZER) === true && !isFinalMigration(migration);
  const key = pairKeyOf(spec);
  return isTalking && key !== undefined ? `the ${migrationRole(spec)} of ${key}` : undefined;
}
