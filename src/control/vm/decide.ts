import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import { effectiveRunStrategy, type RunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { StateChangeRequest } from '../../api/kubevirt/state-change-request.ts';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { unreachable } from '../../api/unreachable.ts';
import { RECEIVER_ANNOTATION, RESTORE_STRATEGY_ANNOTATION } from '../../api/kubevirt/well-known.ts';

/** Whether a machine's guest is to be made or to be ended now, by its run strategy and what users asked for. */

export type Decision =
  /** All is as it should be, or on its way there. */
  | { readonly action: 'none' }
  | { readonly action: 'start'; readonly isReceiver: boolean }
  /** It failed to start too often to try it again at once. */
  | { readonly action: 'wait'; readonly untilMs: number }
  /** `isRerun`: and start another one, which has to be remembered until this one is gone. */
  | { readonly action: 'stop'; readonly isRerun: boolean }
  | { readonly action: 'setStrategy'; readonly strategy: RunStrategy };

const NONE: Decision = { action: 'none' };

/** Whether the guest's life is over. */
export function isFinal(guest: VirtualMachineInstance): boolean {
  return guest.status?.phase === 'Succeeded' || guest.status?.phase === 'Failed';
}

/** What to do for a machine whose guest is this one, or nobody. */
export function decide(machine: VirtualMachine, guest: VirtualMachineInstance | undefined, nowMs: number): Decision {
  if (machine.metadata.deletionTimestamp !== undefined) return guest && !isOrphaning(machine) ? stop(guest) : NONE;
  const strategy = effectiveRunStrategy(machine.spec);
  // Nobody wants it to run here any more, whatever its strategy was until now.
  if (isAway(guest?.status?.rightToRun) && strategy !== 'Halted' && strategy !== 'WaitAsReceiver')
    return { action: 'setStrategy', strategy: 'Halted' };
  if (isStartRefused(machine, guest)) return NONE;
  return guest ? withGuest(strategy, machine, guest) : withoutGuest(strategy, machine, nowMs);
}

/** Whether a guest is wanted that went elsewhere: it may only come back from there, or be reclaimed. */
export function isStartRefused(machine: VirtualMachine, guest: VirtualMachineInstance | undefined): boolean {
  if (guest || machine.status?.rightToRun?.grantedAway !== true) return false;
  const strategy = effectiveRunStrategy(machine.spec);
  return strategy !== 'WaitAsReceiver' && withoutGuest(strategy, machine, Number.POSITIVE_INFINITY).action !== 'none';
}

/** Whether its guest is to outlive it: the garbage collector is about to part them. */
function isOrphaning({ metadata }: VirtualMachine): boolean {
  return metadata.finalizers?.includes('orphan') === true;
}

function withGuest(strategy: RunStrategy, machine: VirtualMachine, guest: VirtualMachineInstance): Decision {
  const isAsked = isStopAsked(machine, guest);
  if (isWaiting(guest) && (isAsked || isFinal(guest) || strategy !== 'WaitAsReceiver')) return stop(guest);
  switch (strategy) {
    case 'Always':
      return isAsked || isFinal(guest) ? stop(guest) : NONE;
    case 'RerunOnFailure':
      return isAsked || isFinal(guest) ? stop(guest, guest.status?.phase === 'Failed') : NONE;
    case 'Manual':
    case 'Once':
      return isAsked ? stop(guest) : NONE;
    case 'Halted':
      return stop(guest);
    case 'WaitAsReceiver':
      return isAsked || isAway(guest.status?.rightToRun) ? stop(guest) : afterReceiving(machine, guest);
    default:
      return unreachable(strategy);
  }
}

function withoutGuest(strategy: RunStrategy, machine: VirtualMachine, nowMs: number): Decision {
  const isAsked = isStartAsked(machine);
  // A strategy that has not been acted on starts the guest once; after that it is for others to ask.
  const isNew = machine.status?.runStrategy !== strategy;
  switch (strategy) {
    case 'Always':
      return startOrWait(machine, nowMs);
    case 'RerunOnFailure':
      return isAsked || isNew ? startOrWait(machine, nowMs) : NONE;
    case 'Once':
      return isAsked || isNew ? { action: 'start', isReceiver: false } : NONE;
    case 'Manual':
      return isAsked ? { action: 'start', isReceiver: false } : NONE;
    case 'Halted':
      return isAsked ? { action: 'setStrategy', strategy: 'Always' } : NONE;
    case 'WaitAsReceiver':
      return { action: 'start', isReceiver: true };
    default:
      return unreachable(strategy);
  }
}

/** A guest that is going already goes by itself. */
function stop({ metadata }: VirtualMachineInstance, isRerun = false): Decision {
  return metadata.deletionTimestamp === undefined ? { action: 'stop', isRerun } : NONE;
}

function startOrWait({ status }: VirtualMachine, nowMs: number): Decision {
  const untilMs = Date.parse(status?.startFailure?.retryAfterTimestamp ?? '');
  return untilMs > nowMs ? { action: 'wait', untilMs } : { action: 'start', isReceiver: false };
}

/** Whether nothing has come yet of what the guest's object was made for. */
export function isWaiting({ metadata, status }: VirtualMachineInstance): boolean {
  return metadata.annotations?.[RECEIVER_ANNOTATION] === 'true' && status?.rightToRun === undefined;
}

/** Once the guest has come, the machine goes back to the strategy that it was given for this moment. */
function afterReceiving(machine: VirtualMachine, guest: VirtualMachineInstance): Decision {
  const strategy = isWaiting(guest) ? undefined : restoredStrategy(machine);
  return strategy ? { action: 'setStrategy', strategy } : NONE;
}

const RESTORED = ['Always', 'RerunOnFailure', 'Manual', 'Halted', 'Once'] as const;

/** The strategy that a machine goes back to when its guest has come; undefined where it stays as it is. */
export function restoredStrategy({ metadata }: VirtualMachine): (typeof RESTORED)[number] | undefined {
  const strategy = metadata.annotations?.[RESTORE_STRATEGY_ANNOTATION];
  return RESTORED.find((one) => one === strategy);
}

/** Requests are served in order: only the first one counts. */
function isStopAsked({ status }: VirtualMachine, { metadata }: VirtualMachineInstance): boolean {
  const first = status?.stateChangeRequests?.[0];
  return first?.action === 'Stop' && first.uid === metadata.uid;
}

function isStartAsked({ status }: VirtualMachine): boolean {
  return status?.stateChangeRequests?.[0]?.action === 'Start';
}

/**
 * What is still to be done of what users asked for, given the guest that there is now and what is done about it. A guest
 * that failed and is run again is asked for here, since nothing else will tell of it once it is gone.
 */
export function openRequests(
  requests: readonly StateChangeRequest[],
  guest: VirtualMachineInstance | undefined,
  decision: Decision,
): readonly StateChangeRequest[] {
  const open = requests.slice(doneCount(requests, guest));
  const isRerun = decision.action === 'stop' && decision.isRerun;
  return isRerun && open.at(-1)?.action !== 'Start' ? [...open, { action: 'Start' }] : open;
}

function doneCount(requests: readonly StateChangeRequest[], guest: VirtualMachineInstance | undefined): number {
  const count = requests.findIndex(({ action, uid }) =>
    action === 'Stop' ? guest !== undefined && uid === guest.metadata.uid : !isUp(guest),
  );
  return count < 0 ? requests.length : count;
}

function isUp(guest: VirtualMachineInstance | undefined): boolean {
  return guest !== undefined && guest.metadata.deletionTimestamp === undefined && !isFinal(guest);
}
