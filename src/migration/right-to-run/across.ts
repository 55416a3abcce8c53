import type { Runner } from '../../api/kubevirt/right-to-run.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { isSameAttempt, isSameRunner } from './attempt.ts';
import { change, journal, type Message, type Plan, plan, type Step, send } from './plan.ts';
import { begin, givenTo, raised } from './record.ts';
import { grantAgain, haveBack, kill, nameAgain } from './source.ts';
import type { Ended, Granted, Standing } from './standing.ts';
import { outOfService } from './start.ts';
import type { View } from './view.ts';

/**
 * What is different where the guest goes to another object, of another namespace or of another cluster. Neither side can
 * read the other's record, let alone write it, and neither admin can speak for the other's nodes. So
 * - the target says that it took for as long as the source asks, and its own record begins with that;
 * - the source itself writes into its record who has the guest now, and nobody starts what is away;
 * - nothing but the target's word, or that of an admin who fenced it (`reclaim`), brings a right back that was granted;
 * - a source whose data was restored brings its record there again step by step: nobody else here could know.
 */

/** What is next for a source that has let go of the right, to another object. */
export function afterGrantAcross(view: View, granted: Granted): Plan {
  const { attempt } = granted;
  const { record, self } = view;
  const hears = (kind: Message['kind']): boolean =>
    view.inbox.some((message) => message.kind === kind && isSameAttempt(message.attempt, attempt));
  if (hears('refused')) return haveBack(view, granted, attempt.epoch + 1);
  const hasGoneOn = record !== undefined && record.epoch > attempt.epoch;
  // Reclaimed for this pod: whoever was to have it is fenced.
  if (hasGoneOn && isSameRunner(record.holder, self)) return haveBack(view, granted, record.epoch);
  const hasGone = hears('taken') || (isAway(record) && isSameRunner(record?.holder, attempt.target));
  if (hasGone) {
    // The rest of the guest's memory is still here: whoever ends this machine ends the guest, unless that has ended.
    const isNeeded = view.peerMachine !== 'dead' && view.wish.isPeerDone !== true;
    if (view.machine === 'postcopy' && isNeeded) return plan(...named(view, granted));
    const ended: Ended = { kind: 'ended', epoch: attempt.epoch, givenTo: attempt.target, isAcross: true };
    return plan(...kill(view), journal(ended), ...given(view, ended));
  }
  // Seized, or reclaimed for nobody.
  if (hasGoneOn) return plan(...kill(view), journal({ kind: 'ended', epoch: attempt.epoch }));
  // Others act on the word that nothing runs here; it is theirs to say what becomes of the right.
  if (view.outOfService.has(self.nodeUID)) return outOfService(self.node);
  return plan(...grantAgain(view, granted), ...named(view, granted));
}

/** What is next for a pod that has ended: until the record says where the guest went, that has to be written. */
export function afterEndAcross(view: View, ended: Ended): Plan {
  return view.machine === 'dead' ? plan(...given(view, ended)) : plan(...kill(view));
}

/** Whether the record still misses who has the guest that left this pod. */
export function mustGive({ record, self }: View, standing: Standing): boolean {
  return standing.kind === 'ended' && standing.isAcross === true && isSameRunner(record?.holder, self);
}

/** The same plan, and an answer to a source that has not heard that the guest was taken. */
export function answering(view: View, standing: Standing, next: Plan): Plan {
  const taken = 'taken' in standing ? standing.taken : undefined;
  if (taken?.across === undefined) return next;
  const isAsked = view.inbox.some((it) => it.kind === 'grant' && isSameAttempt(it.attempt, taken));
  const isSaid = next.steps.some((step) => step.kind === 'send' && step.message.kind === 'taken');
  return isAsked && !isSaid ? { ...next, steps: [...next.steps, send('taken', taken)] } : next;
}

/** One step of the record towards naming the successor that the right was granted to; none where it does. */
function named(view: View, { attempt }: Granted): Step[] {
  const { record } = view;
  const own = owned(view, attempt.epoch);
  if (own !== undefined) return own;
  return record === undefined ? [] : nameAgain(record, attempt.epoch, attempt);
}

/** One step of the record towards saying that the guest is away; none where it does, or tells of what came later. */
function given(view: View, ended: Ended): Step[] {
  const { record, self, unheard } = view;
  const target: Runner | undefined = ended.givenTo;
  if (target === undefined || isAway(record)) return [];
  const isLater = record !== undefined && record.epoch > ended.epoch && !isSameRunner(record.holder, self);
  if (isLater) return [];
  if (record?.holder === undefined) {
    if (!unheard.includes(self.node)) return [];
    // Restored from before this pod had it: nothing of the guest is here any more, so that it need not be claimed first.
    const isNext = record === undefined || record.epoch === ended.epoch;
    return [change(record, isNext ? givenTo(record, ended.epoch + 1, target) : raised(record, ended.epoch))];
  }
  const own = owned(view, ended.epoch);
  if (own !== undefined) return own;
  if (isSameRunner(record.successor, target)) return [change(record, givenTo(record, record.epoch + 1, target))];
  return nameAgain(record, ended.epoch, { target, across: { targetEpoch: 0 } });
}

/**
 * One step of a record that was restored towards naming this pod as the holder of an epoch that it had; undefined where
 * it does. Who held the right before names this pod again; nobody else has anything to say about that epoch.
 */
function owned({ record, self, unheard }: View, epoch: number): Step[] | undefined {
  const isRestored = unheard.includes(self.node);
  if (record === undefined) return isRestored ? [change(undefined, begin(undefined, epoch, self))] : undefined;
  if (isSameRunner(record.holder, self)) {
    return record.epoch < epoch ? [change(record, raised(record, epoch))] : undefined;
  }
  const isNext = record.holder === undefined || isSameRunner(record.successor, self);
  // In whatever epoch comes next: what is its own it raises by itself.
  return isRestored && isNext && record.epoch < epoch ? [change(record, begin(record, record.epoch + 1, self))] : [];
}
