import { type Attempt, isSameAttempt, isSameRunner } from './attempt.ts';
import { stampsOfReceiving, stampsOfTake } from './image-stamps.ts';
import { change, IDLE, journal, type Message, machine, type Plan, plan, refuse, type Step, send } from './plan.ts';
import { takenBy, withoutSuccessor } from './record.ts';
import { kill } from './source.ts';
import type { Standing } from './standing.ts';
import { outOfService, unheardOf } from './start.ts';
import type { View } from './view.ts';

/** The target's half of the protocol: receive, take, refuse. */

type Receiving = Extract<Standing, { kind: 'receiving' }>;
type Refused = Extract<Standing, { kind: 'refused' }>;

/** Receive: start a machine that waits for the guest and does not execute it. */
export function receive(view: View, attempt: Attempt): Plan {
  if (!isSameRunner(attempt.target, view.self))
    return refuse('NotTheSuccessor', 'the attempt is meant for another pod');
  if (view.outOfService.has(view.self.nodeUID)) return outOfService(view.self.node);
  if (view.standing.kind !== 'none') return refuse('Overtaken', 'this pod had its machine; another pod has to be made');
  if (view.machine !== 'dead') return refuse('AlreadyRunning', 'this pod has a machine already');
  if (attempt.across !== undefined) {
    const { record, unheard } = view;
    if (record !== undefined) return refuse('HeldByAnother', 'the guest has a right to run of its own already');
    if (unheard.length > 0) return unheardOf(unheard);
  }
  return plan(journal({ kind: 'receiving', attempt }), ...stampsOfReceiving(attempt), machine('start-incoming'));
}

/** Take: the right has been granted to this very pod, the guest is here, and nothing was refused. */
export function take(view: View, granted: Message): Plan {
  const { standing, record } = view;
  if (standing.kind === 'refused' && isSameAttempt(standing.attempt, granted.attempt)) {
    return refuse('Refused', `epoch ${granted.attempt.epoch} was refused, and can never be taken`);
  }
  if (standing.kind !== 'receiving' || !isSameAttempt(standing.attempt, granted.attempt)) {
    return refuse('NotTheSuccessor', 'the grant is not for what this pod receives');
  }
  // A post-copy may have ended before its grant was heard: then all of the guest is here.
  const isHere = view.machine === 'paused' || (granted.isPostCopy === true && view.machine === 'postcopy');
  if (!isHere) {
    return refuse('NotReceived', `the guest has not arrived: the machine is ${view.machine}`);
  }
  const { attempt } = standing;
  const isPaused = granted.isPaused === true;
  const isPostCopy = granted.isPostCopy === true;
  const steps: Step[] = [
    journal({ kind: 'taken', attempt, ...(isPostCopy ? { isPostCopy } : {}), ...(isPaused ? { isPaused } : {}) }),
    machine('close-exports'),
    ...(isPaused ? [] : [machine('continue')]),
    send('taken', attempt),
    ...stampsOfTake(attempt),
  ];
  // Where the record was not read since the reservation, it is brought up to date from the standing afterwards.
  if (attempt.across !== undefined) {
    if (record === undefined) steps.push(change(undefined, takenBy(undefined, attempt)));
  } else if (record?.epoch === attempt.epoch && isSameRunner(record.successor, view.self)) {
    steps.push(change(record, takenBy(record, attempt)));
  }
  return plan(...steps);
}

/** Refuse: this attempt can never be taken. The machine goes first, so that a refusal that was heard is true. */
export function refuseAttempt(view: View, receiving: Receiving): Plan {
  const { attempt } = receiving;
  return plan(
    ...kill(view),
    journal({ kind: 'refused', attempt }),
    { kind: 'discard-images', attempt },
    send('refused', attempt),
  );
}

/** What is next for a target that has taken nothing yet. */
export function whileReceiving(view: View, receiving: Receiving): Plan {
  const { attempt } = receiving;
  const hears = (kind: Message['kind']): Message | undefined =>
    view.inbox.find((message) => message.kind === kind && isSameAttempt(message.attempt, attempt));
  const granted = hears('grant');
  const isSourceSeized = view.outOfService.has(attempt.source.nodeUID);
  const isOver =
    view.machine === 'dead' ||
    hears('aborted') !== undefined ||
    hasGoneOn(view, attempt) ||
    view.outOfService.has(view.self.nodeUID) ||
    (isSourceSeized && granted === undefined);
  if (isOver) return refuseAttempt(view, receiving);
  if (view.machine !== 'postcopy' && hears('please-refuse') !== undefined) return refuseAttempt(view, receiving);
  if (granted !== undefined) return view.machine === 'inmigrate' ? IDLE : take(view, granted);
  if (view.wish.isCancelled !== true) return IDLE;
  // Once the guest is here it may be nowhere else: only the source can tell that nothing was granted.
  return view.machine === 'inmigrate' ? refuseAttempt(view, receiving) : plan(send('is-it-over', attempt));
}

/** Whether the right is somebody else's by the record: that of the source too, or this side's, which had none. */
function hasGoneOn({ record }: View, { across, epoch }: Attempt): boolean {
  return record !== undefined && (across !== undefined || record.epoch > epoch);
}

/** What is next for a target that has refused. */
export function afterRefusal(view: View, refused: Refused): Plan {
  const { attempt } = refused;
  if (view.machine !== 'dead') return plan(machine('kill'));
  const { record } = view;
  const isNamed = record?.epoch === attempt.epoch && isSameRunner(record.successor, view.self);
  if (record !== undefined && isNamed && view.outOfService.has(attempt.source.nodeUID)) {
    // The source cannot, and whoever seizes waits for it.
    return plan(change(record, withoutSuccessor(record)));
  }
  const isGranted = view.inbox.some((it) => it.kind === 'grant' && isSameAttempt(it.attempt, attempt));
  return isGranted ? plan(send('refused', attempt)) : IDLE;
}
