import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import { isSameRunner } from './attempt.ts';
import { stampsOfTake } from './image-stamps.ts';
import { change, journal, machine, type Plan, plan, refuse, type Step } from './plan.ts';
import { begin, raised } from './record.ts';
import { abort, kill } from './source.ts';
import type { Ended, Holding } from './standing.ts';
import type { View } from './view.ts';

/**
 * The journal says that the right is here, and the record does not: it lags behind, it was restored from a backup, or
 * the right was taken away.
 */
export function reconcileRecord(view: View, holding: Holding): Plan {
  const { record, self } = view;
  if (record === undefined) {
    // Taken for an object that has no record before somebody takes it.
    if (holding.taken?.across !== undefined) return firstRecord(view, holding);
    // Restored from before the guest was started: others start nothing until this node was heard.
    if (view.unheard.includes(self.node)) {
      return plan(change(undefined, begin(undefined, holding.epoch, self, holding.volumes)));
    }
    // The right was seized, and the guest deleted, while this node was away.
    if (view.machine === 'dead') return plan(journal({ kind: 'ended', epoch: holding.epoch }));
    return refuse('Quarantined', 'the guest that this pod executes has no record');
  }
  if (record.epoch < holding.epoch) return catchUp(view, holding, record);
  if (isReclaimed(view, holding)) return afterReclaim(view, holding, record.epoch);
  if (view.machine === 'dead') return plan(journal({ kind: 'ended', epoch: holding.epoch }));
  // Named by a holder who had granted the right, or by an admin who reclaims it.
  if (isSameRunner(record.successor, self)) return adopt(view, record);
  if (isSameRunner(record.holder, self)) {
    return refuse('Quarantined', `the record is of epoch ${record.epoch}, this pod holds ${holding.epoch}`);
  }
  const isRestored = view.unheard.includes(self.node);
  if (record.holder === undefined && isRestored) return adopt(view, record);
  if (record.epoch === holding.epoch || isRestored) {
    return refuse('Quarantined', `the record of epoch ${record.epoch} names ${record.holder?.node ?? 'nobody'}`);
  }
  // Seized: whoever said that this node was gone was wrong, and yet it is their word that counts.
  return plan(...kill(view), journal({ kind: 'ended', epoch: holding.epoch }));
}

/**
 * Whether an admin has reclaimed the guest for this pod, which was to go to another object, or was about to: in the next epoch
 * of the same holder. Nobody else writes that; after a restore somebody may raise an epoch, but to one that came later.
 */
export function isReclaimed({ record, self }: View, standing: Holding | Ended): boolean {
  const isAcross =
    standing.wasAcross === true || (standing.kind === 'holding' && standing.reserved?.across !== undefined);
  return isAcross && record?.epoch === standing.epoch + 1 && isSameRunner(record.holder, self);
}

/** Whoever was to have the guest is fenced, and it stays here. */
function afterReclaim(view: View, holding: Holding, epoch: number): Plan {
  if (view.machine === 'dead') return plan(journal({ kind: 'ended', epoch }));
  if (holding.reserved === undefined) return plan(journal({ kind: 'regained', epoch }));
  // Half of the guest is where nobody reaches it.
  if (view.machine === 'postcopy') return plan(machine('kill'), journal({ kind: 'ended', epoch }));
  return abort(view, holding);
}

function firstRecord(view: View, holding: Holding): Plan {
  return plan(
    ...continuation(view, holding),
    change(undefined, begin(undefined, holding.epoch, view.self, holding.volumes)),
  );
}

/** What a guest that was taken still misses. */
function continuation(view: View, holding: Holding): Step[] {
  const steps: Step[] = [];
  const stands = view.machine === 'paused' || view.machine === 'postmigrate' || view.machine === 'postcopy';
  if (holding.mustContinue && stands) steps.push(machine('close-exports'), machine('continue'));
  // Until the record says so, it is not known whether they were stamped.
  if (holding.taken !== undefined) steps.push(...stampsOfTake(holding.taken));
  return steps;
}

/** The record is behind. The guest comes first, since its right is durable; then the record. */
function catchUp(view: View, holding: Holding, record: RightToRun): Plan {
  const { self } = view;
  const steps = continuation(view, holding);
  const isNext =
    record.epoch + 1 === holding.epoch &&
    (record.holder === undefined || isSameRunner(record.holder, self) || isSameRunner(record.successor, self));
  return isNext
    ? plan(...steps, change(record, begin(record, holding.epoch, self, holding.volumes ?? record.volumes)))
    : plan(...steps, change(record, raised(record, holding.epoch)));
}

function adopt(view: View, record: RightToRun): Plan {
  const epoch = record.epoch + 1;
  return plan(journal({ kind: 'regained', epoch }), change(record, begin(record, epoch, view.self)));
}
