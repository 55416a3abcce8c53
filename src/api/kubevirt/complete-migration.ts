import type { MigrationCause } from './migration-cause.ts';
import { MIGRATION_SPEC_TWINS, withTwins } from './migration-twins.ts';
import { migrationRole } from './validate-migration.ts';
import type {
  VirtualMachineInstanceMigration,
  VirtualMachineInstanceMigrationSpec,
} from './virtual-machine-instance-migration.ts';
import { MIGRATION_FINALIZER, MIGRATION_GUEST_LABEL } from './well-known.ts';

/** What a migration gets when it is made. */

const LABEL_LENGTH_MAX = 63;

/**
 * A migration as it is stored: with both names of fields that have two, its cause, the label that it is selected by, and
 * the finalizer that keeps it until it is over. A cause is believed from Godwit's own components alone.
 */
export function withMigrationDefaults(
  migration: VirtualMachineInstanceMigration,
  asker: { readonly isOwnComponent: boolean },
): VirtualMachineInstanceMigration {
  const twins = withTwins(migration.spec, MIGRATION_SPEC_TWINS);
  const spec = { ...twins, cause: (asker.isOwnComponent && twins.cause) || causeOf(twins) };
  const { finalizers = [], labels } = migration.metadata;
  return {
    ...migration,
    metadata: {
      ...migration.metadata,
      labels: { ...labels, ...(spec.vmName ? { [MIGRATION_GUEST_LABEL]: labelOf(spec.vmName) } : {}) },
      finalizers: finalizers.includes(MIGRATION_FINALIZER) ? finalizers : [...finalizers, MIGRATION_FINALIZER],
    },
    spec,
  };
}

function causeOf(spec: VirtualMachineInstanceMigrationSpec): MigrationCause {
  return migrationRole(spec) === 'local' ? 'User' : 'CrossCluster';
}

/** The beginning of a name that is too long for a label. Two guests may share it: whoever selects looks at the name, too. */
export function labelOf(name: string): string {
  return name.slice(0, LABEL_LENGTH_MAX).replace(/[^A-Za-z0-9]+$/, '');
}
