import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import { isAway, type RightTransition, rightTransition } from '../../api/kubevirt/right-to-run-transition.ts';
import { unreachable } from '../../api/unreachable.ts';

/**
 * Whose step each change of the record is. The webhook judges by this what nodes write, and so does the model checker: what
 * the protocol asks of a node is nothing that the API would refuse.
 */

/** What of a guest a change of its record is judged by, besides the record. */
export interface RecordFacts {
  /** Whether it goes to another object, or comes from one. */
  readonly isAcross: boolean;
}

/** What is wrong with a node's change of a record; undefined for nothing. */
export function recordObjection(
  node: string,
  old: RightToRun | undefined,
  next: RightToRun | undefined,
  { isAcross }: RecordFacts,
): string | undefined {
  const transition = next && rightTransition(old, next);
  if (transition === undefined) return 'may change the right to run only by the steps of the protocol';
  if (!isActorOf(transition, node, old, next)) return `may not ${transition} a right to run that is not its own`;
  // By that word it is decided who may take the right: a node of this cluster, or nobody that is known here.
  const isElsewhere = next?.across === true;
  return transition === 'reserve' && isElsewhere !== isAcross
    ? 'may name a successor only where the guest is to go'
    : undefined;
}

/** Whether the right is this node's: another one, elsewhere, may have the same name. */
export function isHolderNode(node: string, record: RightToRun | undefined): boolean {
  return record?.holder?.node === node && !isAway(record);
}

/** Whether the right may come to this node, by this very record. */
export function isSuccessorNode(node: string, record: RightToRun | undefined): boolean {
  return record?.successor?.node === node && record.across !== true;
}

function isActorOf(
  transition: RightTransition,
  node: string,
  old: RightToRun | undefined,
  next: RightToRun | undefined,
): boolean {
  switch (transition) {
    case 'start':
    case 'take':
      return next?.holder?.node === node;
    // A successor may decline: its holder may be gone, and nobody else could.
    case 'abort':
      return isHolderNode(node, old) || isSuccessorNode(node, old);
    // Who took it cannot be heard here; the holder says so, or one whose record was restored from before it had one.
    case 'give':
      return !old?.holder || isHolderNode(node, old);
    // Of a holder by itself: its QEMU is dead. On an admin's word it is the controllers that seize.
    case 'seize':
    case 'reserve':
    case 'keep':
      return isHolderNode(node, old);
    // A journal ahead of the record: of the holder, or of a pod that was the holder before the data was restored. One epoch
    // ahead of a record that names a successor it looks like a refusal: that successor cannot have taken an epoch that this
    // node has, and where it has another it says so.
    case 'raise':
    case 'refuse':
      return true;
    default:
      return unreachable(transition);
  }
}
