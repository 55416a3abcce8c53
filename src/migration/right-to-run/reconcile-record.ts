import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import { isSameRunner } from './attempt.ts';
import { stampsOfTake } from './image-stamps.ts';
import { change, journal, machine, type Plan, plan, refuse, type Step } from './plan.ts';
import { begin } from './record.ts';
import { kill } from './source.ts';
import type { Holding } from './standing.ts';
import type { View } from './view.ts';

/**
 * The journal says that the right is here, and the record does not: it lags behind, it was restored from a backup, or
 * the right was taken away.
 */
export function reconcileRecord(view: View, holding: Holding): Plan {
  const { record, self } = view;
  if (record === undefined) {
    // Restored from before the guest was started: others start nothing until this node was heard.
    if (view.unheard.includes(self.node)) {
      return plan(change(undefined, begin(undefined, holding.epoch, self, holding.volumes)));
    }
    // The right was seized, and the guest deleted, while this node was away.
    if (view.machine === 'dead') return plan(journal({ kind: 'ended', epoch: holding.epoch }));
    return refuse('Quarantined', 'the guest that this pod executes has no record');
  }
  if (record.epoch < holding.epoch) return catchUp(view, holding, record);
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

/** The record is behind. The guest comes first, since its right is durable; then the record. */
function catchUp(view: View, holding: Holding, record: RightToRun): Plan {
  const { self } = view;
  const steps: Step[] = [];
  const stands = view.machine === 'paused' || view.machine === 'postmigrate' || view.machine === 'postcopy';
  if (holding.mustContinue && stands) steps.push(machine('close-exports'), machine('continue'));
  // Until the record says so, it is not known whether they were stamped.
  if (holding.taken !== undefined) steps.push(...stampsOfTake(holding.taken));
  const isNext =
    record.epoch + 1 === holding.epoch &&
    (record.holder === undefined || isSameRunner(record.holder, self) || isSameRunner(record.successor, self));
  return isNext
    ? plan(...steps, change(record, begin(record, holding.epoch, self, holding.volumes ?? record.volumes)))
    : plan(...steps, change(record, begin(record, holding.epoch, record.holder)));
}

function adopt(view: View, record: RightToRun): Plan {
  const epoch = record.epoch + 1;
  return plan(journal({ kind: 'regained', epoch }), change(record, begin(record, epoch, view.self)));
}
