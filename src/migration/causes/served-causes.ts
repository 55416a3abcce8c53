import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import { causesOf, isMarked } from '../../api/kubevirt/evacuation.ts';
import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import type { MigrationCause, ServedCause } from '../../api/kubevirt/migration-cause.ts';
import { type MigrationPriority, priorityNumber } from '../../api/kubevirt/migration-priority.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { isHandedOff } from '../phase/facts.ts';

/**
 * All that one move of a guest serves. A guest moves once, whoever else wants it to move meanwhile: they find its migration
 * under way, and that one is from then on as urgent as the most urgent of them.
 */

export interface CauseGround {
  /** Whether the guest's launcher is old, and guests are moved for that. Not by a label, which its owner may set. */
  readonly isOutdated: boolean;
}

/** The class of the migrations that a cause is worth. The descheduler only tidies up; everybody else needs the room. */
export function priorityOfCause(cause: MigrationCause): MigrationPriority {
  return cause === 'Descheduler' ? 'system-maintenance' : 'system-critical';
}

/** Conditions of a guest that come true with its next move, as KubeVirt has them. */
const CHANGES: readonly string[] = ['HotVCPUChange', 'HotMemoryChange', 'VolumesChange', 'MigrationRequired'];

/** The changes of a guest that take effect when it moves. */
export function changesOf({ status }: Pick<VirtualMachineInstance, 'status'>): readonly KubeVirtCondition[] {
  return (status?.conditions ?? []).filter((each) => CHANGES.includes(each.type) && each.status === 'True');
}

/**
 * The causes that a migration serves: its own, those for which its guest has to leave its node, and updates of the guest
 * that take effect by moving it. Until the agents have it these are the causes that there are now; from then on what it
 * serves can only grow, since a cause that is met, or withdrawn too late, was served all the same.
 */
export function servedCauses(
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance | undefined,
  ground: CauseGround,
): ServedCause[] {
  const known = isHandedOff({ migration, guest }) ? (migration.status?.causes ?? []) : [];
  const present = guest ? [...evacuations(guest), ...updates(guest, ground)] : [];
  const byCause = new Map<MigrationCause, ServedCause>();
  for (const each of [...own(migration), ...known, ...present]) {
    const before = byCause.get(each.cause);
    byCause.set(each.cause, before ? together(before, each) : each);
  }
  return [...byCause.values()];
}

function own({ metadata, spec }: VirtualMachineInstanceMigration): ServedCause[] {
  if (spec.cause === undefined) return [];
  const { creationTimestamp: since } = metadata;
  return [{ cause: spec.cause, priority: priorityNumber(spec.priority), ...(since ? { since } : {}) }];
}

/** Whoever marks a guest the way KubeVirt does gives no cause; that it was evicted is all that this can mean. */
const UNKNOWN: EvacuationCause = { cause: 'APIEviction' };

function evacuations(guest: VirtualMachineInstance): ServedCause[] {
  if (!isMarked(guest)) return [];
  const causes = causesOf(guest);
  return (causes.length > 0 ? causes : [UNKNOWN]).map(({ cause, since, deadline, message }) => ({
    cause,
    priority: priorityNumber(priorityOfCause(cause)),
    ...(since ? { since } : {}),
    ...(deadline ? { deadline } : {}),
    ...(message ? { message } : {}),
  }));
}

function updates(guest: VirtualMachineInstance, { isOutdated }: CauseGround): ServedCause[] {
  const cause = 'WorkloadUpdate';
  const changes = changesOf(guest);
  const since = changes.flatMap(({ lastTransitionTime }) => lastTransitionTime ?? []).toSorted()[0];
  const message = changes.map(({ type }) => type).join(', ');
  return [
    ...(changes.length > 0
      ? [{ cause, priority: priorityNumber('user-triggered'), ...(since ? { since } : {}), message } as const]
      : []),
    ...(isOutdated ? [{ cause, priority: priorityNumber('system-critical') } as const] : []),
  ];
}

/** The same cause, told twice: as urgent as either, as old as the older one, and with the newest deadline. */
function together(before: ServedCause, { since, ...more }: ServedCause): ServedCause {
  const earliest = [before.since, since].flatMap((each) => each ?? []).toSorted()[0];
  const priority = Math.max(before.priority ?? 0, more.priority ?? 0);
  return { ...before, ...more, priority, ...(earliest ? { since: earliest } : {}) };
}

/** The cause of which a migration is made, where a guest has several: the most urgent one, then the most pressing. */
export function mostUrgent(causes: readonly EvacuationCause[]): EvacuationCause {
  const [first = UNKNOWN] = causes.toSorted((a, b) => rankOf(b) - rankOf(a) || deadlineMs(a) - deadlineMs(b));
  return first;
}

function rankOf({ cause }: EvacuationCause): number {
  return priorityNumber(priorityOfCause(cause));
}

/** A time that no other is later than stands for none. */
function deadlineMs({ deadline }: EvacuationCause): number {
  const ms = Date.parse(deadline ?? '');
  return Number.isNaN(ms) ? Number.MAX_SAFE_INTEGER : ms;
}
