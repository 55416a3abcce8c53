import type { ServedCause } from '../../api/kubevirt/migration-cause.ts';
import { priorityNumber } from '../../api/kubevirt/migration-priority.ts';

/** Who comes first among those that wait. */

/** What one that waits is ordered by. */
export interface Rank {
  readonly uid: string;
  readonly priority: number;
  readonly deadlineMs: number | undefined;
  readonly createdMs: number;
}

/** The highest number over the migration's own class and all causes that it serves. */
export function effectivePriority(ownClass: string | undefined, causes: readonly ServedCause[] = []): number {
  return causes.reduce((highest, { priority = 0 }) => Math.max(highest, priority), priorityNumber(ownClass));
}

/** When the guest must be gone, by the most pressing cause; undefined where none presses. */
export function earliestDeadlineMs(causes: readonly ServedCause[] = []): number | undefined {
  const deadlines = causes.flatMap(({ deadline }) => (deadline === undefined ? [] : [Date.parse(deadline)]));
  // A deadline that is no time presses nobody.
  const known = deadlines.filter((deadlineMs) => !Number.isNaN(deadlineMs));
  return known.length === 0 ? undefined : Math.min(...known);
}

/** By class, then deadline, then age; two of the very same moment by their UIDs, so that everybody agrees. */
export function comesBefore(a: Rank, b: Rank): boolean {
  if (a.priority !== b.priority) return a.priority > b.priority;
  const deadlineA = a.deadlineMs ?? Number.POSITIVE_INFINITY;
  const deadlineB = b.deadlineMs ?? Number.POSITIVE_INFINITY;
  if (deadlineA !== deadlineB) return deadlineA < deadlineB;
  return isOlder(a, b);
}

/** The order where there are no priorities. */
export function isOlder(a: Rank, b: Rank): boolean {
  if (a.createdMs !== b.createdMs) return a.createdMs < b.createdMs;
  return a.uid < b.uid;
}

/** The classes that waiting can lift to; what evicts guests from broken nodes is never among them. */
const LADDER = [0, priorityNumber('system-maintenance'), priorityNumber('user-triggered')];

/** What a priority is worth after some time of waiting: one class more for each `ageingMs`, which is 0 for never. */
export function agedPriority(priority: number, waitedMs: number, ageingMs: number): number {
  const rung = Math.min(rungOf(priority) + liftsDue(waitedMs, ageingMs), LADDER.length - 1);
  return Math.max(priority, LADDER[rung] ?? priority);
}

/** After how much more time of waiting the priority grows again; undefined where it never does. */
export function nextLiftMs(priority: number, waitedMs: number, ageingMs: number): number | undefined {
  const reached = liftsDue(waitedMs, ageingMs);
  const isAtTop = rungOf(priority) + reached >= LADDER.length - 1;
  return ageingMs <= 0 || isAtTop ? undefined : (reached + 1) * ageingMs - Math.max(0, waitedMs);
}

function liftsDue(waitedMs: number, ageingMs: number): number {
  return ageingMs <= 0 ? 0 : Math.floor(Math.max(0, waitedMs) / ageingMs);
}

/** The highest rung that is not above a priority. */
function rungOf(priority: number): number {
  return LADDER.findLastIndex((rung) => rung <= priority);
}
