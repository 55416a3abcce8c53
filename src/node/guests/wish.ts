import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { NODE_NAME_LABEL } from '../../api/kubevirt/well-known.ts';
import { isSameRunner } from '../../migration/right-to-run/attempt.ts';
import { decide } from '../../migration/right-to-run/decide.ts';
import { change, IDLE, journal, type Plan, plan } from '../../migration/right-to-run/plan.ts';
import { raised } from '../../migration/right-to-run/record.ts';
import { kill } from '../../migration/right-to-run/source.ts';
import type { Holding } from '../../migration/right-to-run/standing.ts';
import type { View } from '../../migration/right-to-run/view.ts';
import { isPodOver, type LauncherPod } from './launcher-pod.ts';

/**
 * Whether a launcher pod is to start its guest: `start` it now, `wait` for something, or `never`, whatever comes. What is
 * never to be started can be said to have ended.
 */
export type Intent = 'start' | 'wait' | 'never';

export function startIntent(options: {
  readonly node: string;
  readonly guest: VirtualMachineInstance | undefined;
  readonly pod: LauncherPod | undefined;
  /** Whether all that the machine needs is there. */
  readonly isPrepared: boolean;
  /** Whether another pod of the same virtual machine may still have a machine here. */
  readonly isCrowded: boolean;
}): Intent {
  const { node, guest, pod, isPrepared, isCrowded } = options;
  if (!guest || !pod || isPodOver(pod)) return 'never';
  if (guest.metadata.deletionTimestamp !== undefined || pod.metadata.deletionTimestamp !== undefined) return 'never';
  const { phase = '', nodeName } = guest.status ?? {};
  if (phase === 'Succeeded' || phase === 'Failed') return 'never';
  // Who has the label is heard of from now on; nobody sets it any more once the guest was taken over.
  const isGiven = phase === 'Scheduled' && nodeName === node && guest.metadata.labels?.[NODE_NAME_LABEL] === node;
  return isGiven && isPrepared && !isCrowded ? 'start' : 'wait';
}

/** Whether nothing can come any more of a right that the journal says is here, and nobody would take its word for it. */
function isOverElsewhere(view: View, { epoch, taken }: Holding, intent: Intent, isGuestThere: boolean): boolean {
  const { record, machine } = view;
  // The guest is gone, or as good as, and was never recorded, or its record went with it; yet what is dead stays dead.
  if (record === undefined)
    return machine === 'dead' && (!isGuestThere || (intent === 'never' && taken?.across === undefined));
  // Somebody took the right from all and said that the guest has ended: an admin, after a restore.
  return intent === 'never' && record.holder === undefined && record.epoch >= epoch;
}

/**
 * What is next, by the protocol, for a pod of which it is known whether it is to start. A guest that is being deleted is
 * there, and has a record, or gets it: whoever took it says so, though it has ended since.
 */
export function nextPlan(view: View, intent: Intent, isGuestThere: boolean): Plan {
  const { standing, record, self } = view;
  if (standing.kind === 'holding' && isOverElsewhere(view, standing, intent, isGuestThere)) {
    return plan(...kill(view), journal({ kind: 'ended', epoch: standing.epoch }));
  }
  if (standing.kind === 'holding' && intent === 'never' && record && !record.holder && record.epoch < standing.epoch) {
    // Restored, and nobody's: for a pod that is gone nothing is claimed any more, and nobody is given its epoch twice.
    return plan(change(record, raised(record, standing.epoch)));
  }
  if (standing.kind !== 'starting' || intent === 'start') return decide(view);
  if (intent === 'wait' || view.machine !== 'dead') return IDLE;
  // No machine was started, and none will be. A claim that arrives yet is in the epoch that was written down.
  const epoch = record && isSameRunner(record.holder, self) ? record.epoch : standing.epoch;
  return plan(journal({ kind: 'ended', epoch }));
}
