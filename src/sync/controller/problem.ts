import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import { removeCondition, setCondition } from '../../kube/conditions.ts';

/** What keeps the halves of a pair apart, told on both objects of our side, always in the words of now. */

export interface Problem {
  /** A word that programs can tell apart. */
  readonly reason: string;
  readonly message: string;
}

/** On a migration. */
export const BLOCKED_CONDITION = 'decentralizedMigrationBlocked';
/** On its guest. */
export const FAILURE_CONDITION = 'DecentralizedLiveMigrationFailure';

type Conditions = readonly KubeVirtCondition[] | undefined;

/** The conditions with the problem of now, if there is one; the same list where nothing changed. */
export function withProblem(
  conditions: Conditions,
  type: typeof BLOCKED_CONDITION | typeof FAILURE_CONDITION,
  problem: Problem | undefined,
  nowMs: number,
): KubeVirtCondition[] | undefined {
  const next = problem
    ? setCondition(conditions, { type, status: 'True', ...problem }, nowMs)
    : removeCondition(conditions, type);
  return next === conditions || (conditions === undefined && next.length === 0)
    ? (conditions as KubeVirtCondition[] | undefined)
    : [...next];
}
