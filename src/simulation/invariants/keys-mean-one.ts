import { migrationRole, pairKeyOf } from '../../api/kubevirt/validate-migration.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { SYNCHRONIZATION_FINALIZER } from '../../api/kubevirt/well-known.ts';
import { MIGRATIONS } from '../buckets.ts';
import type { InvariantAcross } from '../invariant.ts';
import type { State } from '../observer.ts';

/**
 * No key ever means two migrations of one role in one cluster that are not over; and no half ever takes two for its other half,
 * nor is taken for theirs by two sources, wherever they are and whenever that was.
 */
export function keysMeanOne(): InvariantAcross {
  /** UIDs of what halves take for their other half, by their own. */
  const others = new Map<string, string>();
  /** UIDs of sources, by those of the targets that they take for theirs. */
  const sources = new Map<string, string>();
  return {
    name: 'keys-mean-one',
    observeAcross({ bucket, object }, state) {
      if (bucket !== MIGRATIONS || !object) return undefined;
      const migration = object as VirtualMachineInstanceMigration;
      const wrong = aboutKey(migration, state);
      if (wrong !== undefined) return wrong;
      const [own, other] = [migration.metadata.uid ?? '', otherOf(migration)];
      if (other === undefined) return undefined;
      const known = others.get(own) ?? other;
      if (known !== other) return `${migration.metadata.name} is one half with ${known} and with ${other}`;
      others.set(own, other);
      if (migrationRole(migration.spec) !== 'source') return undefined;
      const source = sources.get(other) ?? own;
      sources.set(other, source);
      return source === own ? undefined : `${other} is the other half of ${source} and of ${own}`;
    },
  };
}

function aboutKey(migration: VirtualMachineInstanceMigration, state: State): string | undefined {
  const own = idOf(migration);
  if (own === undefined) return undefined;
  for (const other of state.list(MIGRATIONS) as Iterable<VirtualMachineInstanceMigration>) {
    if (other.metadata.uid === migration.metadata.uid || idOf(other) !== own) continue;
    return `${own} is that of ${other.metadata.name} and of ${migration.metadata.name}`;
  }
  return undefined;
}

/** The UID of the migration that a half takes for its other half. */
function otherOf({ spec, status }: VirtualMachineInstanceMigration): string | undefined {
  const { sourceState, targetState } = status?.migrationState ?? {};
  const role = migrationRole(spec);
  if (role === 'local') return undefined;
  return role === 'source' ? targetState?.migrationUID : sourceState?.migrationUID;
}

/** What a half that talks is known by. */
function idOf(migration: VirtualMachineInstanceMigration): string | undefined {
  const { metadata, spec } = migration;
  const isTalking = metadata.finalizers?.includes(SYNCHRONIZATION_FINALIZER) === true && !isFinalMigration(migration);
  const key = pairKeyOf(spec);
  return isTalking && key !== undefined ? `the ${migrationRole(spec)} of ${key}` : undefined;
}
