import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';

/**
 * One try to hand the right over. Everything that is said about it names it whole, so that what was said of an earlier
 * try, and arrives late, is never taken for this one.
 */
export interface Attempt {
  /** The epoch in which the source holds the right; the target's begins one later. */
  readonly epoch: number;
  readonly source: Runner;
  readonly target: Runner;
  readonly sourceMigrationUID: string;
  readonly targetMigrationUID: string;
  /** The volumes as the record has them once the target has taken; absent when none of them moves. */
  readonly volumes?: RightToRun['volumes'];
}

/** Whether both are the same launcher pod on the same registration of the same node. */
export function isSameRunner(one: Runner | undefined, other: Runner | undefined): boolean {
  return (
    one !== undefined &&
    other !== undefined &&
    one.node === other.node &&
    one.nodeUID === other.nodeUID &&
    one.podUID === other.podUID
  );
}

/** Whether both are the same try. */
export function isSameAttempt(one: Attempt, other: Attempt): boolean {
  return (
    one.epoch === other.epoch &&
    one.sourceMigrationUID === other.sourceMigrationUID &&
    one.targetMigrationUID === other.targetMigrationUID &&
    isSameRunner(one.source, other.source) &&
    isSameRunner(one.target, other.target)
  );
}
