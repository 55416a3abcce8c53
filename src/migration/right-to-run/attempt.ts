import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';

/**
 * One try to hand the right over. Everything that is said about it names it whole, so that what was said of an earlier
 * try, and arrives late, is never taken for this one.
 */
export interface Attempt {
  /** The epoch in which the source holds the right; the target's begins one later, where they have one record. */
  readonly epoch: number;
  readonly source: Runner;
  readonly target: Runner;
  readonly sourceMigrationUID: string;
  readonly targetMigrationUID: string;
  /** On the target: the volumes as its record has them once it has taken; absent when none of them moves. */
  readonly volumes?: RightToRun['volumes'];
  /**
   * The images of claims on this side that the attempt copies: at the source those that are left behind, at the target
   * those that are filled. Each side knows its own alone.
   */
  readonly images?: readonly ImagePlace[];
  /** Where the guest's object at the target is another one, with a record of its own. */
  readonly across?: Across;
}

/** The image of a volume that is on a claim, and where this node finds it. */
export interface ImagePlace {
  readonly volume: string;
  readonly claim: { readonly name: string; readonly uid: string };
  readonly path: string;
  /** Of one that is left behind: where its contents go, in words. */
  readonly wentTo?: string;
}

/** What is different where the source and the target have records of their own. */
export interface Across {
  /**
   * The epoch with which the target's record begins: `epochAcross` of what its machine remembers. The source, which does
   * not know that, has the least that it can be; only the target's own counts.
   */
  readonly targetEpoch: number;
}

/** The epoch that begins at a target with a record of its own: above the source's, and above all that it ever had. */
export function epochAcross(sourceEpoch: number, remembered: number | undefined): number {
  return Math.max(sourceEpoch, remembered ?? 0) + 1;
}

/** The epoch in which the target holds what it took. */
export function epochOfTake({ across, epoch }: Attempt): number {
  return across?.targetEpoch ?? epoch + 1;
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
    (one.across === undefined) === (other.across === undefined) &&
    one.sourceMigrationUID === other.sourceMigrationUID &&
    one.targetMigrationUID === other.targetMigrationUID &&
    isSameRunner(one.source, other.source) &&
    isSameRunner(one.target, other.target)
  );
}
