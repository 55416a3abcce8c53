import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import { removeCondition, setCondition } from '../../kube/conditions.ts';
import type { Role } from '../channel.ts';

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

/** That nobody has been heard under our key, which is nobody's fault yet. `where` is where the other side would be. */
export function silence(role: Role, where: string): Problem {
  const message =
    role === 'target'
      ? `no source has sent under this key; it has to connect to ${where}`
      : `nobody in ${where} receives under this key`;
  return { reason: 'WaitingForOtherHalf', message };
}

/** That a half which is over still has the key, for the sake of the cluster that has yet to hear of its end. */
export function keyInUse(by: string, peer: string): Problem {
  const message = `${by} had this key, and is kept until the cluster ${peer} has heard how it ended: until then it is not this half's; see what keeps it, or choose another key`;
  return { reason: 'KeyInUse', message };
}

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
