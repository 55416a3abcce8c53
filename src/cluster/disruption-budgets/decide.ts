import type { Condition } from '../../api/meta.ts';
import { findCondition, setCondition } from '../../kube/conditions.ts';
import { setOwn } from '../../machinery/clone.ts';
import { deepEqual } from '../../machinery/equal.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import type { BudgetStatus, PodDisruptionBudget } from './objects.ts';

/**
 * What a budget allows, decided from its pods. The eviction API takes one disruption and notes the pod, both in the
 * budget's status, before the pod is touched; here the note is kept until the pod has been seen to go, and a pod with a
 * note counts as gone already. So whatever order the two come in, no pod is counted on that has been let go.
 */

/** How long a pod that was let go may go unseen before it is taken for one that stays after all. */
export const DELETION_MS_MAX = 2 * 60_000;

/** How many pods there should be, and how many of them healthy. */
export interface Demand {
  readonly expectedPods: number;
  readonly desiredHealthy: number;
}

export interface Observation {
  readonly budget: PodDisruptionBudget;
  readonly pods: readonly Pod[];
  /** Whether the pods are known to be at least as new as the budget. */
  readonly isCurrent: boolean;
  readonly demand: Demand;
  readonly nowMs: number;
}

export interface Decision {
  /** The very same as before where nothing changes. */
  readonly status: BudgetStatus;
  /** Whether the status allows what the present one does not: not to be decided on pods of the past. */
  readonly isGenerous: boolean;
  /** When to look again, at the latest. */
  readonly recheckAtMs: number | undefined;
  /** Pods that were let go long ago, and stay. */
  readonly staying: readonly Pod[];
}

/** What is asked of how many pods; `scale` is the sum that their controllers want, and called only where it matters. */
export async function demandOf(
  spec: PodDisruptionBudget['spec'],
  podCount: number,
  scale: () => Promise<number>,
): Promise<Demand> {
  const { maxUnavailable, minAvailable } = spec ?? {};
  if (maxUnavailable !== undefined) {
    const expectedPods = await scale();
    return { expectedPods, desiredHealthy: Math.max(0, expectedPods - scaled(maxUnavailable, expectedPods)) };
  }
  if (minAvailable === undefined) return { expectedPods: 0, desiredHealthy: 0 };
  if (typeof minAvailable === 'number') return { expectedPods: podCount, desiredHealthy: minAvailable };
  const expectedPods = await scale();
  return { expectedPods, desiredHealthy: scaled(minAvailable, expectedPods) };
}

/** A number, or a share of the total, rounded up. */
function scaled(value: number | string, total: number): number {
  if (typeof value === 'number') return value;
  const percentage = /^([0-9]+)%$/.exec(value)?.[1];
  if (percentage === undefined)
    throw new Error('invalid value for IntOrString: invalid type: string is not a percentage');
  return Math.ceil((Number(percentage) * total) / 100);
}

export function decide(observation: Observation): Decision {
  const { budget, pods, demand, nowMs } = observation;
  const { status: old = {}, metadata } = budget;
  const notes = reviewNotes(observation);
  const currentHealthy = pods.filter((pod) => isHealthy(pod) && !Object.hasOwn(notes.kept, nameOf(pod))).length;
  const surplus = currentHealthy - demand.desiredHealthy;
  // A budget that covers nothing allows nothing: it is then right, too, for the first pods that come.
  const disruptionsAllowed = demand.expectedPods > 0 ? Math.max(0, surplus) : 0;
  const counts = { disruptionsAllowed, currentHealthy, ...demand };
  const observedGeneration = metadata.generation ?? 0;
  const kept = Object.keys(notes.kept).length > 0 ? { disruptedPods: notes.kept } : {};
  const conditions = conditionsOf(old.conditions, disruptionsAllowed, observedGeneration, nowMs);
  const status = { observedGeneration, ...kept, ...counts, conditions };
  const isSame =
    isUpToDate(old, observedGeneration, disruptionsAllowed) &&
    deepEqual(old, { ...status, conditions: old.conditions });
  const inForce = (old.observedGeneration ?? 0) >= observedGeneration ? (old.disruptionsAllowed ?? 0) : 0;
  return {
    status: isSame ? old : status,
    isGenerous: disruptionsAllowed > inForce || notes.staying.length > 0,
    recheckAtMs: notes.recheckAtMs,
    staying: notes.staying,
  };
}

/** What there is to say when nobody knows what the budget should allow: nothing. */
export function failSafe({ status = {} }: PodDisruptionBudget, message: string, nowMs: number): BudgetStatus {
  const { observedGeneration = 0, conditions } = status;
  const change = conditionOf('False', 'SyncFailed', message, observedGeneration);
  const changed: BudgetStatus = {
    currentHealthy: 0,
    desiredHealthy: 0,
    expectedPods: 0,
    ...status,
    disruptionsAllowed: 0,
    conditions: setCondition(conditions, change, nowMs),
  };
  return deepEqual(status, changed) ? status : changed;
}

interface Notes {
  readonly kept: { readonly [pod: string]: string };
  readonly recheckAtMs: number | undefined;
  readonly staying: readonly Pod[];
}

/**
 * Which of the evictions' notes still stand. Where the pods may be older than the notes, a pod that is not there may not
 * have been seen yet, and one that is going may be its predecessor: then all stand until their time is up.
 */
function reviewNotes({ budget, pods, isCurrent, nowMs }: Observation): Notes {
  const kept: { [pod: string]: string } = {};
  const staying: Pod[] = [];
  const present = new Map(pods.map((pod) => [nameOf(pod), pod]));
  let recheckAtMs: number | undefined;
  for (const [name, time] of Object.entries(budget.status?.disruptedPods ?? {})) {
    const pod = present.get(name);
    const endMs = Date.parse(time) + DELETION_MS_MAX;
    const isOver = !(endMs >= nowMs);
    if (isOver && pod && !isTerminating(pod)) staying.push(pod);
    if (isOver || (isCurrent && (!pod || isTerminating(pod)))) continue;
    setOwn(kept, name, time);
    recheckAtMs = Math.min(recheckAtMs ?? Number.POSITIVE_INFINITY, endMs + 1);
  }
  return { kept, staying, recheckAtMs };
}

/** The reason and the status of the condition follow from what is allowed; what else it says does not matter. */
function isUpToDate(status: BudgetStatus, generation: number, disruptionsAllowed: number): boolean {
  const condition = findCondition(status.conditions, 'DisruptionAllowed');
  const [wanted, reason] = verdictOf(disruptionsAllowed);
  return status.observedGeneration === generation && condition?.status === wanted && condition.reason === reason;
}

function conditionsOf(
  conditions: readonly Condition[] | undefined,
  disruptionsAllowed: number,
  generation: number,
  nowMs: number,
): readonly Condition[] {
  const [status, reason] = verdictOf(disruptionsAllowed);
  return setCondition(conditions, conditionOf(status, reason, '', generation), nowMs);
}

function verdictOf(disruptionsAllowed: number): ['True' | 'False', string] {
  return disruptionsAllowed > 0 ? ['True', 'SufficientPods'] : ['False', 'InsufficientPods'];
}

function conditionOf(status: 'True' | 'False', reason: string, message: string, generation: number): Condition {
  const observed = generation > 0 ? { observedGeneration: generation } : {};
  return { type: 'DisruptionAllowed', status, reason, message, ...observed };
}

function nameOf({ metadata }: Pod): string {
  return metadata.name ?? '';
}

function isTerminating({ metadata }: Pod): boolean {
  return metadata.deletionTimestamp !== undefined;
}

/** Whether a pod counts, but for evictions under way. */
export function isHealthy(pod: Pod): boolean {
  if (isTerminating(pod)) return false;
  return pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}
