import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { applySource, applyTarget } from '../../migration/halves/apply.ts';
import type { SourceHalf, TargetHalf } from '../../migration/halves/half.ts';
import { stateOfSource, stateOfTarget } from '../../migration/halves/pair-state.ts';
import { parseSourceHalf, parseTargetHalf } from '../../migration/halves/parse.ts';
import { hadSlots, wasHandedOff } from '../../migration/halves/past-phases.ts';
import { type OwnSide, sourceHalf, targetHalf } from '../../migration/halves/project.ts';
import { Refusal, type Role } from '../channel.ts';

/** Halves of both parts, as the controller deals with them: it says which part, and what is done is the same. */

export type Half = SourceHalf | TargetHalf;

/** What a guest's status should have of a migration. */
export type PairStatus = NonNullable<ReturnType<typeof applySource>>;

/** Reads what the half of this part is said to be. Throws a `Refusal`. */
export function parseHalf(role: Role, json: unknown): Half {
  const parsed = role === 'source' ? parseSourceHalf(json) : parseTargetHalf(json);
  if ('half' in parsed) return parsed.half;
  throw new Refusal('Malformed', `what is said of the ${role} is not what it should be: ${parsed.problem}`);
}

/** What we tell of our side. */
export function projectHalf(role: Role, own: OwnSide): Half {
  return role === 'source' ? sourceHalf(own) : targetHalf(own);
}

/** What our guest's status has of the migration; undefined where it has nothing of it yet, or nothing any more. */
export function ownStateOf(
  role: Role,
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance | undefined,
): NonNullable<VirtualMachineInstance['status']>['migrationState'] {
  return role === 'source' ? stateOfSource(migration, guest) : stateOfTarget(migration, guest);
}

/** What our guest's status should be, now that the other side was heard; undefined where that is not meant for it. */
export function applyHalf(
  role: Role,
  own: { readonly migration: VirtualMachineInstanceMigration; readonly guest: VirtualMachineInstance },
  other: Half,
): PairStatus | undefined {
  return role === 'source' ? applyTarget(own, other) : applySource(own, other);
}

/** The other side is no more: whoever is at work on ours is asked to stop. */
export function stopped(
  role: Role,
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance,
  heard?: Partial<PairStatus>,
): Partial<PairStatus> | undefined {
  const state = ownStateOf(role, migration, guest) && (heard?.migrationState ?? guest.status?.migrationState);
  if (!state || state.completed === true || state.abortRequested === true) return undefined;
  return { migrationState: { ...state, abortRequested: true } };
}

/** UID of the migration object of the other side that our guest's state is bound to. */
export function boundUidOf(
  role: Role,
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance | undefined,
): string | undefined {
  const state = ownStateOf(role, migration, guest);
  return role === 'source' ? state?.targetState?.migrationUID : state?.migrationUid;
}

/** Whether the other side has said how its half ended. */
export function isOtherEnded(
  role: Role,
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance | undefined,
): boolean {
  // The guest may be gone, or in another migration by now; what it said of this one stays with the migration.
  const { sourceState, targetState } = ownStateOf(role, migration, guest) ?? migration.status?.migrationState ?? {};
  return (role === 'source' ? targetState : sourceState)?.verdict !== undefined;
}

/**
 * Whether agents of the other side may have begun, on what they know of ours. Those of a target begin once its source has
 * slots: it is kept then until it has heard how the source ended, and only a source can dial.
 */
export function mayOtherRely(
  role: Role,
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance | undefined,
): boolean {
  if (role === 'target' || wasHandedOff(migration)) return wasHandedOff(migration);
  const state = ownStateOf(role, migration, guest) ?? migration.status?.migrationState;
  return hadSlots(migration) || !state || state.sourceState?.slots !== undefined;
}

/** The node that our side's launcher pod is on. */
export function ownNodeOf(
  role: Role,
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance | undefined,
): string | undefined {
  const state = ownStateOf(role, migration, guest);
  return role === 'source' ? (state?.sourceNode ?? guest?.status?.nodeName) : state?.targetNode;
}
