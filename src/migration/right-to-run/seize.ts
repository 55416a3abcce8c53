import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { isSameRunner } from './attempt.ts';
import { change, IDLE, type Plan, plan, refuse } from './plan.ts';
import { begin, givenTo, trueAgain, withSuccessor, withoutSuccessor } from './record.ts';

/** What is known of a node when somebody wants to take the right from it. */
export interface NodeWord {
  readonly uid: string;
  /** It has the taint `node.kubernetes.io/out-of-service`: an admin says that nothing runs there. */
  readonly isOutOfService: boolean;
}

/**
 * Whether an admin's word stands behind it that nothing runs on the node. That there is no such Node is none: autoscalers
 * delete nodes that still run.
 */
function isSeizable(word: NodeWord | undefined): boolean {
  return word?.isOutOfService === true;
}

/**
 * Seize: take the right from a holder whose node an admin declared gone. A successor that may have been granted the
 * right settles first: it writes itself in as the holder, or out. One that has a record of its own does neither: its
 * `answer` counts, which it is asked for, and nobody's word about its node.
 */
export function seize(record: RightToRun, words: readonly NodeWord[], answer?: 'taken' | 'refused'): Plan {
  const wordOf = (runner: Runner): NodeWord | undefined => words.find((word) => word.uid === runner.nodeUID);
  const { holder, successor } = record;
  // What is away is not here to be taken from anybody.
  if (holder === undefined || isAway(record)) return IDLE;
  if (!isSeizable(wordOf(holder))) {
    return refuse('NotOutOfService', `node ${holder.node} holds the right, and nobody said that it is out of service`);
  }
  if (successor !== undefined && record.across === true) return seizeAcross(record, successor, answer);
  if (successor !== undefined && !isSeizable(wordOf(successor))) {
    return refuse(
      'SuccessorUnsettled',
      `node ${successor.node} may have been granted the right: it has to take or refuse it first, or be seized too`,
    );
  }
  return plan(change(record, begin(record, record.epoch + 1, undefined)));
}

function seizeAcross(record: RightToRun, successor: Runner, answer: 'taken' | 'refused' | undefined): Plan {
  const epoch = record.epoch + 1;
  if (answer === 'taken') return plan(change(record, givenTo(record, epoch, successor)));
  if (answer === 'refused')
    return plan(change(record, begin(record, epoch, undefined, trueAgain(record.volumes, epoch))));
  return refuse(
    'SuccessorUnsettled',
    `node ${successor.node}, elsewhere, may have been granted the right: it was asked to refuse, and has not answered`,
  );
}

/**
 * Seize: a target with a record of its own took the right, as its source says, and its node is gone before it could write
 * so. It is written for it; then it can be taken from it like any other.
 */
export function seizeTarget(target: Runner, epoch: number, words: readonly NodeWord[]): Plan {
  if (!isSeizable(words.find((word) => word.uid === target.nodeUID))) {
    return refuse('NotOutOfService', `node ${target.node} has the guest, and nobody said that it is out of service`);
  }
  return plan(change(undefined, begin(undefined, epoch, target)));
}

/**
 * Reclaim of a guest that went, or may have gone, to another object whose side was fenced. The holder goes on with it
 * where its node is there; else the right is nobody's, and the machine can start afresh.
 */
export function reclaimAcross(record: RightToRun, isHolderGone: boolean): Plan {
  if (record.across !== true) return IDLE;
  const epoch = record.epoch + 1;
  if (isAway(record) || isHolderGone) {
    return plan(change(record, begin(record, epoch, undefined, trueAgain(record.volumes, epoch))));
  }
  return plan(change(record, begin(record, epoch, record.holder)));
}

/**
 * Reclaim: the one override, on the word of an admin who fenced everything else. With `keep`, the pod that executes the
 * guest is named, and writes itself in; without, the right is nobody's, and the machine can start afresh.
 */
export function reclaim(record: RightToRun, keep: Runner | undefined): Plan {
  if (keep === undefined) return plan(change(record, begin(record, record.epoch + 1, undefined)));
  if (isSameRunner(record.holder, keep) || isSameRunner(record.successor, keep)) return IDLE;
  const free = withoutSuccessor(record);
  const named = change(free, withSuccessor(free, { target: keep }));
  return record.successor === undefined ? plan(named) : plan(change(record, free), named);
}
