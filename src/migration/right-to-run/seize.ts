import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import { isSameRunner } from './attempt.ts';
import { change, IDLE, type Plan, plan, refuse } from './plan.ts';
import { begin, withSuccessor, withoutSuccessor } from './record.ts';

/** What is known of a node when somebody wants to take the right from it. */
export interface NodeWord {
  readonly uid: string;
  /** It has the taint `node.kubernetes.io/out-of-service`: an admin says that nothing runs there. */
  readonly isOutOfService: boolean;
  /** Its Node object is gone. Autoscalers delete nodes that still run: by itself that says nothing. */
  readonly isDeleted: boolean;
  readonly isLeaseExpired: boolean;
  /** An admin confirmed, of a node whose object is gone, that nothing runs there. */
  readonly isConfirmed: boolean;
}

/** Whether an admin's word stands behind it that nothing runs on the node. */
export function isSeizable(word: NodeWord | undefined): boolean {
  if (word === undefined) return false;
  return word.isOutOfService || (word.isDeleted && word.isLeaseExpired && word.isConfirmed);
}

/**
 * Seize: take the right from a holder whose node an admin declared gone. A successor that may have been granted the
 * right settles first: it writes itself in as the holder, or out.
 */
export function seize(record: RightToRun, words: readonly NodeWord[]): Plan {
  const wordOf = (runner: Runner): NodeWord | undefined => words.find((word) => word.uid === runner.nodeUID);
  const { holder, successor } = record;
  if (holder === undefined) return IDLE;
  if (!isSeizable(wordOf(holder))) {
    return refuse('NotOutOfService', `node ${holder.node} holds the right, and nobody said that it is out of service`);
  }
  if (successor !== undefined && !isSeizable(wordOf(successor))) {
    return refuse(
      'SuccessorUnsettled',
      `node ${successor.node} may have been granted the right: it has to take or refuse it first, or be seized too`,
    );
  }
  return plan(change(record, begin(record, record.epoch + 1, undefined)));
}

/**
 * Reclaim: the one override, on the word of an admin who fenced everything else. With `keep`, the pod that executes the
 * guest is named, and writes itself in; without, the right is nobody's, and the machine can start afresh.
 */
export function reclaim(record: RightToRun, keep: Runner | undefined): Plan {
  if (keep === undefined) return plan(change(record, begin(record, record.epoch + 1, undefined)));
  if (isSameRunner(record.holder, keep) || isSameRunner(record.successor, keep)) return IDLE;
  const free = withoutSuccessor(record);
  const named = change(free, withSuccessor(free, keep));
  return record.successor === undefined ? plan(named) : plan(change(record, free), named);
}
