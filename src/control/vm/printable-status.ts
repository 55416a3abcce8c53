import { effectiveRunStrategy } from '../../api/kubevirt/run-strategy.ts';
import type { PrintableStatus, VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { findCondition, isConditionTrue } from '../../kube/conditions.ts';
import { isFinal } from './decide.ts';

/** A machine's state in a word. Several words may be true; which one is said is a matter of their order alone. */

export interface Look {
  readonly machine: VirtualMachine;
  readonly guest: VirtualMachineInstance | undefined;
  /** A guest was just made, or is about to be, and is not seen yet. */
  readonly isStarting: boolean;
  /** The guest was just told to go. */
  readonly isStopping: boolean;
  /** Claims that it names are there and not bound. */
  readonly isUnbound: boolean;
}

/** First match wins, in KubeVirt's order. */
const WORDS: readonly (readonly [PrintableStatus, (look: Look) => boolean])[] = [
  ['Terminating', ({ machine }) => machine.metadata.deletionTimestamp !== undefined],
  ['Stopping', isGoing],
  ['Migrating', ({ guest }) => isMigrating(guest)],
  ['Paused', (look) => isRunning(look) && isConditionTrue(look.guest?.status?.conditions, 'Paused')],
  ['Running', isRunning],
  ['ErrorPvcNotFound', ({ guest }) => isFalseBecause(guest, 'Synchronized', 'FailedPvcNotFound')],
  ['ErrorUnschedulable', ({ guest }) => isFalseBecause(guest, 'PodScheduled', 'Unschedulable')],
  ['WaitingForVolumeBinding', ({ isUnbound }) => isUnbound],
  ['ErrImagePull', ({ guest }) => isFalseBecause(guest, 'Synchronized', 'ErrImagePull')],
  ['ImagePullBackOff', ({ guest }) => isFalseBecause(guest, 'Synchronized', 'ImagePullBackOff')],
  ['Starting', isOnItsWay],
  ['CrashLoopBackOff', isCrashLooping],
  ['WaitingForReceiver', isWaitingForReceiver],
  ['Stopped', ({ guest }) => guest === undefined || isFinal(guest)],
];

/** The word that holds; Unknown where none does. */
export function printableStatus(look: Look): PrintableStatus {
  return WORDS.find(([, holds]) => holds(look))?.[0] ?? 'Unknown';
}

function isGoing({ guest, isStopping }: Look): boolean {
  return guest !== undefined && !isFinal(guest) && (isStopping || guest.metadata.deletionTimestamp !== undefined);
}

function isMigrating(guest: VirtualMachineInstance | undefined): boolean {
  if (!guest || isFinal(guest)) return false;
  const state = guest.status?.migrationState;
  return state?.startTimestamp !== undefined && state.endTimestamp === undefined && !state.completed && !state.failed;
}

function isRunning({ guest }: Look): boolean {
  return guest?.status?.phase === 'Running';
}

function isFalseBecause(guest: VirtualMachineInstance | undefined, type: string, reason: string): boolean {
  const condition = findCondition(guest?.status?.conditions, type);
  return condition?.status === 'False' && condition.reason === reason;
}

function isOnItsWay({ guest, isStarting, machine }: Look): boolean {
  if (!guest) return isStarting && effectiveRunStrategy(machine.spec) !== 'WaitAsReceiver';
  return ['', 'Pending', 'Scheduling', 'Scheduled'].includes(guest.status?.phase ?? '') && !isReceiver(guest, machine);
}

function isCrashLooping({ machine, guest }: Look): boolean {
  if (guest && !isFinal(guest)) return false;
  const strategy = effectiveRunStrategy(machine.spec);
  const isRunAgain = strategy === 'Always' || strategy === 'RerunOnFailure' || strategy === 'Once';
  return isRunAgain && (machine.status?.startFailure?.consecutiveFailCount ?? 0) > 0;
}

function isWaitingForReceiver({ machine, guest }: Look): boolean {
  if (effectiveRunStrategy(machine.spec) !== 'WaitAsReceiver') return false;
  return !guest || isReceiver(guest, machine);
}

/** A guest that waits for another's memory, and one that nobody has looked at yet. */
function isReceiver({ status }: VirtualMachineInstance, machine: VirtualMachine): boolean {
  if (status?.phase === 'WaitingForSync') return true;
  return (status?.phase ?? '') === '' && effectiveRunStrategy(machine.spec) === 'WaitAsReceiver';
}
