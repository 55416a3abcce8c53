import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { unreachable } from '../../api/unreachable.ts';
import { afterEndAcross, afterGrantAcross, answering, mustGive } from './across.ts';
import { isSameAttempt, isSameRunner } from './attempt.ts';
import { change, IDLE, journal, machine, type Plan, plan, refuse, type Step } from './plan.ts';
import { begin, raised, withoutSuccessor, withSuccessor } from './record.ts';
import { isReclaimed, reconcileRecord } from './reconcile-record.ts';
import { abort, afterGrant, answerOver, giveUp, grant, kill, nameAgain, reserve } from './source.ts';
import type { Ended, Holding, Standing } from './standing.ts';
import { journalMissing, start } from './start.ts';
import { afterRefusal, receive, whileReceiving } from './target.ts';
import type { View } from './view.ts';

/**
 * What an agent does next about one of its launcher pods, from its journal, the record as last read, and what QEMU
 * says. There is no other recovery: whoever was killed between two steps asks again, and is told how to go on. An agent
 * asks whenever something of the view changed, and does the steps in order.
 */
export function decide(view: View): Plan {
  const { standing, wish } = view;
  if (view.machine === 'unknown') return refuse('MachineUnknown', 'the machine does not answer, and may live');
  switch (standing.kind) {
    case 'none':
      if (wish.receive !== undefined && wish.isCancelled !== true) return receive(view, wish.receive);
      if (wish.start !== undefined) return start(view, wish.start);
      return isSameRunner(view.record?.holder, view.self) ? journalMissing() : IDLE;
    case 'starting':
      return start(view, wish.start ?? {});
    case 'holding':
      return answering(view, standing, whileHolding(view, standing));
    case 'granted': {
      const { across } = standing.attempt;
      const next = across === undefined ? afterGrant(view, standing) : afterGrantAcross(view, standing);
      return answering(view, standing, next);
    }
    case 'receiving':
      return whileReceiving(view, standing);
    case 'refused':
      return afterRefusal(view, standing);
    case 'ended': {
      const next = standing.isAcross ? afterEndAcross(view, standing) : afterEnd(view, standing);
      return answering(view, standing, next.steps.length === 0 ? (awaited(view, standing) ?? next) : next);
    }
    default:
      return unreachable(standing);
  }
}

/**
 * Whether the agent may say that nothing of this pod executes the guest, nor ever will: then the guest's finalizer may
 * go, and a node that is heard after a restore has said its part.
 */
export function isSettled(view: View): boolean {
  if (view.machine !== 'dead') return false;
  if (view.standing.kind === 'none') return !isSameRunner(view.record?.holder, view.self);
  return isOver(view.standing) && !mustGive(view, view.standing);
}

const isOver = (standing: Standing): boolean => standing.kind === 'ended' || standing.kind === 'refused';

/**
 * Whether a node has said all that its journal holds about this pod, and set right what it could of a record that was
 * restored. A pod that never had a machine has nothing to say: it waits for the others itself.
 */
export function isHeard(view: View): boolean {
  const { machine: fact, record, self, standing } = view;
  if (standing.kind === 'none' || standing.kind === 'starting') return fact === 'dead';
  // What has no record of its own before it takes is started by nobody else.
  const isApart = standing.kind === 'receiving' && standing.attempt.across !== undefined;
  if (standing.kind === 'receiving' && !isApart && !isSameRunner(record?.successor, self)) return false;
  const { steps, refusal } = decide(view);
  const isAtRest = steps.every((step) => step.kind === 'send' || step.kind === 'stamp');
  return isAtRest && refusal?.code !== 'Quarantined' && refusal?.code !== 'MachineUnknown';
}

function whileHolding(view: View, holding: Holding): Plan {
  const { record, wish } = view;
  const isWhole = record?.epoch === holding.epoch && isSameRunner(record.holder, view.self);
  if (!isWhole || record === undefined) return reconcileRecord(view, holding);
  const { reserved } = holding;
  if (reserved !== undefined) {
    const isRefused = view.inbox.some((it) => it.kind === 'refused' && isSameAttempt(it.attempt, reserved));
    const canGrant = grant(view, holding);
    const isCancelled = wish.isCancelled === true || view.hasMigrationFailed || isRefused;
    if (canGrant.refusal === undefined && (!isCancelled || view.machine === 'postcopy')) return canGrant;
    if (view.machine === 'postcopy') {
      // Neither half of a guest can go on without the other.
      const isTargetGone = isRefused || view.peerMachine === 'dead' || view.outOfService.has(reserved.target.nodeUID);
      if (isTargetGone) return giveUp(view, reserved);
      // Nothing was copied before the record named the successor: its data was restored from before.
      const again = nameAgain(record, reserved.epoch, reserved);
      return again.length > 0 ? plan(...again) : canGrant;
    }
    if (isCancelled || (view.machine === 'dead' && !mayBeThere(view, holding))) return abort(view, holding);
    if (view.machine === 'dead') return IDLE;
    if (record.successor === undefined) {
      const isPaused = holding.isPaused === true && view.machine === 'paused';
      return view.machine === 'running' || isPaused
        ? plan(change(record, withSuccessor(record, reserved)))
        : abort(view, holding);
    }
    return isSameRunner(record.successor, reserved.target) ? IDLE : abort(view, holding);
  }
  if (record.successor !== undefined) return plan(change(record, withoutSuccessor(record)));
  if (view.machine === 'dead') return plan(journal({ kind: 'ended', epoch: holding.epoch }));
  if (holding.mustContinue) {
    return view.machine === 'running'
      ? plan(journal({ kind: 'machine', event: 'resumed' }))
      : plan(machine('continue'), journal({ kind: 'machine', event: 'resumed' }));
  }
  // Its owner holds it, and nobody has it but this machine: else it could go nowhere any more.
  if (view.machine === 'postmigrate') return plan(machine('hold'));
  if (wish.migrate !== undefined && wish.isCancelled !== true) return reserve(view, holding, wish.migrate);
  return answerOver(view);
}

/**
 * Whether all of a guest went over before its machine died, to a target that has not said so yet: whoever gave up now would
 * lose it. A target that is not heard for too long is a migration that failed.
 */
function mayBeThere({ record, peerMachine, outOfService }: View, { isCompleted, reserved }: Holding): boolean {
  if (!isCompleted || reserved === undefined || outOfService.has(reserved.target.nodeUID)) return false;
  return isSameRunner(record?.successor, reserved.target) && (peerMachine === 'unknown' || peerMachine === 'inmigrate');
}

function afterEnd(view: View, ended: Ended): Plan {
  const { record, self } = view;
  if (view.machine !== 'dead') return plan(...kill(view));
  if (isSameRunner(record?.successor, self) && record !== undefined) {
    // It took the right once, and the data was restored from before that. It says so; then, that the right ended here.
    return plan(...endedIn(ended, record.epoch + 1), change(record, begin(record, record.epoch + 1, self)));
  }
  if (record === undefined && ended.taken !== undefined && view.unheard.includes(self.node)) {
    // Taken for an object that had no record before, and has none again: only so can the machine start afresh.
    return plan(change(undefined, begin(undefined, ended.epoch, self)));
  }
  if (record === undefined || !isSameRunner(record.holder, self)) {
    return ended.givenTo === undefined ? answerOver(view) : IDLE;
  }
  // Restored from before the last of this pod: nobody is given an epoch twice.
  if (record.epoch < ended.epoch) return plan(change(record, raised(record, ended.epoch)));
  // Who took over is gone, maybe before it could write so: nobody has the right, and the machine can start afresh.
  const isTakerGone = ended.givenTo !== undefined && view.outOfService.has(ended.givenTo.nodeUID);
  if (ended.givenTo !== undefined && !isTakerGone) {
    // The record was restored from before the take: name the successor again, and it will write that it took.
    return plan(...nameAgain(record, ended.epoch, { target: ended.givenTo }));
  }
  // What was reclaimed for a pod that has ended since is of no use to it.
  if (record.epoch !== ended.epoch && !isReclaimed(view, ended)) {
    return refuse('Quarantined', `the record is of epoch ${record.epoch}, this pod ended in ${ended.epoch}`);
  }
  return plan(change(record, begin(record, record.epoch + 1, undefined)));
}

/**
 * Why a pod is not done yet that had the right after whom a restored record names: that one names it again, or an admin
 * speaks for it, and then it is for this pod to say what became of the right.
 */
function awaited({ record, self, unheard }: View, { epoch }: Ended): Plan | undefined {
  if (!record?.holder || isAway(record) || record.epoch >= epoch || !unheard.includes(self.node)) return undefined;
  const { node } = record.holder;
  return refuse('Quarantined', `the record of epoch ${record.epoch} names ${node}, this pod ended in ${epoch}`);
}

/** Whoever took the right in an epoch after its last one, as others have raised it, has ended in that. */
function endedIn({ epoch: last, givenTo }: Ended, epoch: number): Step[] {
  return epoch > last ? [journal({ kind: 'ended', epoch, ...(givenTo === undefined ? {} : { givenTo }) })] : [];
}
