import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import { type Attempt, isSameAttempt, isSameRunner } from './attempt.ts';
import { stampsOfGrant, stampsOfRefusal } from './image-stamps.ts';
import { change, IDLE, journal, type Message, machine, type Plan, plan, refuse, type Step, send } from './plan.ts';
import { begin, withoutSuccessor, withSuccessor } from './record.ts';
import type { Granted, Holding } from './standing.ts';
import { outOfService } from './start.ts';
import type { View } from './view.ts';

/** The source's half of the protocol: reserve, grant, abort, and what comes of a grant. */

/** Reserve: name the successor while the guest runs, so that no API call stands in the blackout. */
export function reserve(view: View, holding: Holding, attempt: Attempt): Plan {
  const { record, self } = view;
  if (record === undefined || record.epoch !== holding.epoch || !isSameRunner(record.holder, self)) {
    return refuse('NotHolder', 'the record does not name this pod as the holder of its epoch');
  }
  if (attempt.epoch !== holding.epoch || !isSameRunner(attempt.source, self)) {
    return refuse('NotHolder', `the attempt is of epoch ${attempt.epoch}, this pod holds ${holding.epoch}`);
  }
  if (holding.reserved !== undefined || record.successor !== undefined) {
    return refuse('NotReserved', 'another successor is reserved, and has to be aborted first');
  }
  // One that its owner holds goes as it is, and stays so.
  const isPaused = view.machine === 'paused' && !holding.mustContinue;
  if (view.machine !== 'running' && !isPaused)
    return refuse('NotRunning', `the guest is not executed: the machine is ${view.machine}`);
  if (view.peerMachine !== 'inmigrate') {
    // Whoever is named has to be able to answer for it from a journal, should this node be gone.
    return refuse('NotReceived', 'the target is not ready to receive the guest');
  }
  return plan(
    journal({ kind: 'reserved', attempt, ...(isPaused ? { isPaused: true } : {}) }),
    change(record, withSuccessor(record, attempt)),
  );
}

/**
 * Grant: let go of the right. Nothing is granted while QEMU could still resume the guest by itself: in pre-copy until
 * it says `completed`, in post-copy until both sides are in it and stand still. Nor before the target says that it is ready.
 */
export function grant(view: View, holding: Holding): Plan {
  const { record, self } = view;
  const attempt = holding.reserved;
  if (
    attempt === undefined ||
    record === undefined ||
    record.epoch !== attempt.epoch ||
    !isSameRunner(record.holder, self) ||
    !isSameRunner(record.successor, attempt.target)
  ) {
    return refuse('NotReserved', 'the record does not name the target as the successor');
  }
  const isPostCopy = view.machine === 'postcopy';
  if (view.peerMachine !== (isPostCopy ? 'postcopy' : 'paused')) {
    // What nobody could take is better not let go of: until then the guest can go on here.
    return refuse('NotReceived', `the target does not say that it has the guest: its machine is ${view.peerMachine}`);
  }
  const isCompleted = view.machine === 'postmigrate' || (view.machine === 'dead' && holding.isCompleted);
  if (!isPostCopy && !isCompleted) return refuse('NotCompleted', 'the source could still resume the guest by itself');
  const paused = holding.isPaused ? { isPaused: true as const } : {};
  return plan(
    journal({ kind: 'granted', attempt, isPostCopy, ...paused }),
    ...stampsOfGrant(attempt),
    send('grant', attempt, { isPostCopy, ...paused }),
  );
}

/** Abort: nothing was granted, so the guest goes on here, unless its owner holds it. */
export function abort(view: View, holding: Holding): Plan {
  const attempt = holding.reserved;
  if (attempt === undefined) return refuse('NotReserved', 'there is nothing to abort');
  if (view.machine === 'postcopy') {
    return refuse('PostCopyRunning', 'part of the guest is on the target already: post-copy has to finish');
  }
  const steps: Step[] = [];
  // First of all, since a copy that goes on could turn into post-copy, from which there is no way back.
  if (view.machine !== 'dead') steps.push(machine('cancel-migration'));
  steps.push(journal({ kind: 'aborted', attempt }));
  if (view.machine !== 'dead' && !holding.isPaused) steps.push(machine('continue'));
  if (view.record?.epoch === attempt.epoch && isSameRunner(view.record.successor, attempt.target)) {
    steps.push(change(view.record, withoutSuccessor(view.record)));
  }
  return plan(...steps, send('aborted', attempt));
}

/** What is next for a source that has let go of the right. */
export function afterGrant(view: View, granted: Granted): Plan {
  const { attempt } = granted;
  const { record } = view;
  const hears = (kind: Message['kind']): boolean =>
    view.inbox.some((message) => message.kind === kind && isSameAttempt(message.attempt, attempt));
  if (hears('refused')) return haveBack(view, granted, attempt.epoch + 1);
  const isRecordedHolder = isSameRunner(record?.holder, view.self);
  // Nothing was granted before the record named the successor: its data was restored from before.
  const again = isRecordedHolder && record !== undefined ? nameAgain(record, attempt.epoch, attempt) : [];
  if (hears('taken') || (record !== undefined && record.epoch > attempt.epoch && !isRecordedHolder)) {
    const hasGone = hears('taken') || isSameRunner(record?.holder, attempt.target);
    const isTargetGone = view.outOfService.has(attempt.target.nodeUID);
    // What was restored may still name this pod, in whatever epoch the target has raised it to.
    const isRecordLate = record === undefined || record.epoch <= attempt.epoch + 1 || isRecordedHolder;
    const isStillThere = !isTargetGone && (isSameRunner(record?.holder, attempt.target) || (hasGone && isRecordLate));
    // In post-copy the rest of the guest's memory is still here: whoever ends this machine ends the guest.
    if (view.machine === 'postcopy' && isStillThere) return plan(...again);
    return plan(
      ...kill(view),
      journal({ kind: 'ended', epoch: attempt.epoch, ...(hasGone ? { givenTo: attempt.target } : {}) }),
    );
  }
  // Others act on the word that nothing runs here; it is theirs to say what becomes of the right.
  if (view.outOfService.has(view.self.nodeUID)) return outOfService(view.self.node);
  if (again.length > 0) return plan(...again);
  // It may have taken the right and executed the guest: what is left here may be old.
  if (view.outOfService.has(attempt.target.nodeUID)) return giveUp(view, attempt);
  return plan(...grantAgain(view, granted));
}

/**
 * One step of a record of this pod's that was restored towards naming who is to have the right after an epoch; none where it
 * does. Whoever was reserved in that epoch before has nothing; in a later one it is an admin who names somebody.
 */
export function nameAgain(record: RightToRun, epoch: number, attempt: Pick<Attempt, 'target' | 'across'>): Step[] {
  if (record.successor === undefined) return [change(record, withSuccessor(record, attempt))];
  const isOld = record.epoch <= epoch && !isSameRunner(record.successor, attempt.target);
  return isOld ? [change(record, withoutSuccessor(record))] : [];
}

/** Says once more that the right was let go of; and asks for it back where the migration is not wanted any more. */
export function grantAgain(view: View, { attempt, isPostCopy, isPaused }: Granted): Step[] {
  const paused = isPaused ? { isPaused: true } : {};
  // Whoever was killed after it had written the grant may not have come to stamp what it leaves behind.
  const again = [...stampsOfGrant(attempt), send('grant', attempt, { isPostCopy, ...paused })];
  const canGoOn = view.machine === 'postmigrate' && !isPostCopy;
  return view.wish.isCancelled === true && canGoOn ? [...again, send('please-refuse', attempt)] : again;
}

/** Goes on with a guest that nobody else can have any more, in a new epoch; or ends what is left of it. */
export function haveBack(view: View, granted: Granted, epoch: number): Plan {
  const { attempt, isPaused, isPostCopy } = granted;
  // A post-copy that has not ended left neither side with all of the guest.
  const isWhole = view.machine !== 'dead' && (!isPostCopy || view.machine === 'postmigrate');
  const { record } = view;
  if (!isWhole) {
    const isRecorded = record?.epoch === epoch && isSameRunner(record.holder, view.self);
    const ended = journal({ kind: 'ended', epoch: isRecorded ? epoch : attempt.epoch });
    // Nobody has the guest, and nobody else has its disks.
    return plan(...stampsOfRefusal(attempt), ...kill(view), ended);
  }
  // What was refused can never be taken: the images are true again before anything else is.
  const steps: Step[] = [...stampsOfRefusal(attempt), journal({ kind: 'regained', epoch })];
  if (!isPaused) steps.push(machine('continue'));
  if (record?.epoch === attempt.epoch) steps.push(change(record, begin(record, epoch, view.self)));
  return plan(...steps);
}

/** Answers a target that asks after an attempt of which nothing is left here, and never will be. */
export function answerOver(view: View): Plan {
  const asked = view.inbox.find((message) => message.kind === 'is-it-over');
  return asked !== undefined && isSameRunner(asked.attempt.source, view.self)
    ? plan(send('aborted', asked.attempt))
    : IDLE;
}

/** The guest cannot go on here, nor anywhere: it has to start afresh. */
export function giveUp(view: View, attempt: Attempt): Plan {
  return plan(...kill(view), journal({ kind: 'ended', epoch: attempt.epoch }));
}

/** Ends the machine unless it is dead. */
export function kill(view: View): Step[] {
  return view.machine === 'dead' ? [] : [machine('kill')];
}
