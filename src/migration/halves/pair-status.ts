import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { GUEST_STATUS_TWINS, withTwins } from '../../api/kubevirt/migration-twins.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';

/** What a guest's status should have of a migration; for `statusPatch`. */
export type PairStatus = Pick<
  VirtualMachineInstanceStatus,
  'migrationState' | 'sourceMigrationState' | 'targetMigrationState'
>;

/** A state with both names of what has two, and without what says nothing; what has no halves has none of the others. */
export function pairStatus(guest: Pick<VirtualMachineInstance, 'status'>, state: MigrationState): PairStatus {
  const migrationState = pruned(state) as MigrationState;
  const isPair = state.sourceState !== undefined || state.targetState !== undefined;
  const { sourceMigrationState, targetMigrationState } = guest.status ?? {};
  const hadHalves = sourceMigrationState !== undefined || targetMigrationState !== undefined;
  if (!isPair) return { migrationState, ...(hadHalves ? NO_HALVES : {}) };
  const told: VirtualMachineInstanceStatus = withTwins({ migrationState }, GUEST_STATUS_TWINS);
  return {
    migrationState,
    ...(state.sourceState ? { sourceMigrationState: told.sourceMigrationState } : {}),
    ...(state.targetState ? { targetMigrationState: told.targetMigrationState } : {}),
    ...(sourceMigrationState && !state.sourceState ? { sourceMigrationState: undefined } : {}),
    ...(targetMigrationState && !state.targetState ? { targetMigrationState: undefined } : {}),
  };
}

const NO_HALVES = { sourceMigrationState: undefined, targetMigrationState: undefined };

function pruned(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .map(([field, each]) => [field, pruned(each)]),
  );
}
