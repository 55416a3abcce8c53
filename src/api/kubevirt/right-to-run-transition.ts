import type { RightToRun, Runner } from './right-to-run.ts';

/** The transitions of the right to run, for those who write the record and those who read what became of it. */

/** `keep` changes nothing; `raise` lifts an epoch that fell behind a journal. */
export type RightTransition = 'start' | 'reserve' | 'abort' | 'take' | 'give' | 'refuse' | 'seize' | 'raise' | 'keep';

/** Whether the guest went to another object: its holder executes it there, and nothing is left of it here. */
export function isAway(record: RightToRun | undefined): boolean {
  return record?.across === true && record.holder !== undefined && !record.successor;
}

/** Whether two are one: the same pod of the same node, which has not registered anew. */
export function isSameRunner(one: Runner | undefined, other: Runner | undefined): boolean {
  if (!one || !other) return one === other;
  return one.node === other.node && one.nodeUID === other.nodeUID && one.podUID === other.podUID;
}

/** Which transition leads from one record to the next; undefined where none does, and the API server refuses it. */
export function rightTransition(old: RightToRun | undefined, next: RightToRun): RightTransition | undefined {
  if (next.successor && (!next.holder || isSameRunner(next.successor, next.holder))) return undefined;
  if (next.across === true && !next.holder) return undefined;
  if (!old) return next.holder && !next.successor ? begun(next) : undefined;
  if (next.epoch === old.epoch) return inTheSameEpoch(old, next);
  return next.epoch > old.epoch && !next.successor ? toANewEpoch(old, next) : undefined;
}

const begun = (next: RightToRun): RightTransition => (isAway(next) ? 'give' : 'start');

function inTheSameEpoch(old: RightToRun, next: RightToRun): RightTransition | undefined {
  if (!isSameRunner(old.holder, next.holder) || isAway(old) !== isAway(next)) return undefined;
  if (isSameRunner(old.successor, next.successor)) {
    return !old.successor || (old.across === true) === (next.across === true) ? 'keep' : undefined;
  }
  if (old.successor && next.successor) return undefined;
  return next.successor ? 'reserve' : 'abort';
}

function toANewEpoch(old: RightToRun, next: RightToRun): RightTransition | undefined {
  const isNext = next.epoch === old.epoch + 1;
  if (isSameRunner(old.holder, next.holder)) {
    if (old.holder && isAway(old) !== isAway(next)) return undefined;
    return isNext && old.successor ? 'refuse' : 'raise';
  }
  if (!isNext) return undefined;
  if (!next.holder) return 'seize';
  if (!old.holder) return begun(next);
  const isTaken = isSameRunner(next.holder, old.successor) && (old.across === true) === isAway(next);
  if (!isTaken) return undefined;
  return isAway(next) ? 'give' : 'take';
}
