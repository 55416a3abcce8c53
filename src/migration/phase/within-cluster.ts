import { migratedGuestErrors } from '../../api/kubevirt/validate-migration.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { TARGET_NODE_LABEL } from '../../api/kubevirt/well-known.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  BUSY_TIMEOUT_MS,
  NEWS_TIMEOUT_MS,
  podDeadline,
  PREPARATION_TIMEOUT_MS,
  SLOT_TIMEOUT_MS,
  START_TIMEOUT_MS,
} from './deadlines.ts';
import { isHandedOff, isMovable, isStarted, type MigrationFacts, ownState, type TargetPod } from './facts.ts';
import { type AbortReason, failed, type MigrationDecision, within, withdrawn } from './decision.ts';
import { failure } from './failure.ts';

/**
 * What becomes of a migration within one cluster, from what is known of it: KubeVirt's phases, and its rows of what ends
 * a migration in their order, but for two. The record of who may run the guest is asked first: a guest that has moved has
 * moved, whatever else went wrong. And once the source may have begun nothing here ends a migration any more: the agents
 * are asked to, and say how it ended.
 */

/** Decides what is next of a migration that is not over. */
export function decideWithin(facts: MigrationFacts): MigrationDecision {
  const { guest } = facts;
  if (!guest) return failed('GuestGone');
  const state = ownState(facts);
  if (state && hasMoved(guest, state)) return afterMove(guest, state);
  if (state?.failed === true) return failed('ReportedByNode', state.failureReason);
  if (state?.completed === true) return afterWord(guest);
  if (isOver(guest)) return failed('GuestEnded');
  if (!isHandedOff(facts)) return beforeHandOff(facts, guest);
  if (!state) return failed(guest.status?.migrationState?.migrationUid ? 'TakenOver' : 'StateCleared');
  return isStarted(guest) ? whileRunning(facts, guest, state) : beforeStart(facts, guest, state);
}

/** Whether the record says that the guest runs at the target. */
function hasMoved({ status }: VirtualMachineInstance, { sourceNode, targetNode }: MigrationState): boolean {
  return targetNode !== undefined && targetNode !== sourceNode && status?.rightToRun?.holder?.node === targetNode;
}

/** In post-copy a guest runs at its target long before all of its memory is there, and neither node has its slot back. */
function afterMove(guest: VirtualMachineInstance, { completed, mode }: MigrationState): MigrationDecision {
  if (completed === true || mode !== 'PostCopy') return { phase: 'Succeeded' };
  return isOver(guest) ? failed('GuestEnded') : { phase: 'Running' };
}

/** The target says that it has taken the guest, and the record does not. Its agent may be about to write that. */
function afterWord({ status }: VirtualMachineInstance): MigrationDecision {
  const { holder, successor } = status?.rightToRun ?? {};
  if (successor) return { phase: 'Running' };
  return holder ? failed('ReportedByNode') : { phase: 'Succeeded' };
}

/** Whether a guest has ended. */
export function isOver({ status }: VirtualMachineInstance): boolean {
  return status?.phase === 'Succeeded' || status?.phase === 'Failed';
}

function beforeHandOff(facts: MigrationFacts, guest: VirtualMachineInstance): MigrationDecision {
  const { migration, targetPod, slots, nowMs } = facts;
  const phase = migration.status?.phase ?? '';
  if (migration.metadata.deletionTimestamp !== undefined) return failed('Canceled');
  if (facts.hasBetterRival || isTakenByAnother(facts)) return failed('AnotherMigration');
  if (guest.metadata.deletionTimestamp !== undefined) return failed('GuestEnded');
  if (!targetPod && (phase === '' || phase === 'Pending')) {
    const [obstacle] = migratedGuestErrors(migration, guest);
    if (obstacle) return { phase: 'Failed', failure: { reason: 'NotMigratable', message: obstacle.message } };
    const isNext = phase === 'Pending' && slots !== undefined && isFree(guest);
    return isNext ? { phase: 'Scheduling', step: { kind: 'create-target' } } : { phase: 'Pending' };
  }
  if (!targetPod) return failed('TargetPodRemoved');
  if (targetPod.isDown) return failed('TargetPodDown', targetPod.cause);
  if (targetPod.nodeName !== '' && targetPod.nodeName === guest.status?.rightToRun?.holder?.node)
    return failed('TargetIsSource');
  if (isInTheWay(facts, targetPod)) return failed('Superseded', causeNames(facts));
  if (!targetPod.isUp) {
    const deadline = podDeadline(migration, targetPod);
    if (nowMs >= deadline.atMs) return { phase: 'Failed', failure: deadline.failure };
    return { phase: 'Scheduling', wakeAtMs: deadline.atMs };
  }
  if (slots === 'elsewhere') return failed('SlotsElsewhere');
  if (slots === 'committed' && isFree(guest)) return { phase: 'PreparingTarget', step: { kind: 'hand-off' } };
  return scheduled(facts, guest);
}

/** Its pod is up: what it still waits for is a slot, or that nobody else is at work on the guest. */
export function scheduled(facts: MigrationFacts, guest: VirtualMachineInstance): MigrationDecision {
  if (!isFree(guest)) return within('Scheduled', facts, BUSY_TIMEOUT_MS, failure('GuestBusy'));
  return within('Scheduled', facts, SLOT_TIMEOUT_MS, failure('SlotTimeout'));
}

/**
 * Whether it asks for a node that nobody has, for a guest that has to leave the one that it is on: what empties that is
 * not choosy. One that asks for nothing would find no better successor.
 */
function isInTheWay({ migration, isEvacuated }: MigrationFacts, pod: TargetPod): boolean {
  const isChoosy = Object.keys(migration.spec.addedNodeSelector ?? {}).length > 0;
  return isEvacuated && isChoosy && pod.nodeName === '' && pod.isUnschedulable;
}

/** What it serves besides what it was made for. */
function causeNames({ migration, causes }: MigrationFacts): string {
  return causes.flatMap(({ cause }) => (cause === migration.spec.cause ? [] : [cause])).join(', ');
}

/** Whether another migration that is not over has this guest. */
export function isTakenByAnother(facts: MigrationFacts): boolean {
  const state = facts.guest?.status?.migrationState;
  return state !== undefined && !ownState(facts) && state.completed !== true && facts.isOtherOwnerAlive;
}

/** Whether no agent is at work on what somebody else has left undone. */
export function isFree(guest: VirtualMachineInstance): boolean {
  const { rightToRun, migrationState } = guest.status ?? {};
  if (!isMovable(guest) || rightToRun?.successor) return false;
  return migrationState?.completed === true || !isStarted(guest);
}

function beforeStart(facts: MigrationFacts, guest: VirtualMachineInstance, state: MigrationState): MigrationDecision {
  const { migration, targetPod } = facts;
  if (migration.metadata.deletionTimestamp !== undefined) return withdrawn(failure('Canceled'));
  if (guest.metadata.deletionTimestamp !== undefined) return withdrawn(failure('GuestEnded'));
  if (!targetPod) return withdrawn(failure('TargetPodRemoved'));
  if (targetPod.isDown) return withdrawn(failure('TargetPodDown', targetPod.cause));
  const isReady = state.targetNodeAddress !== undefined && state.targetNodeAddress !== '';
  const decision = isReady
    ? within('TargetReady', facts, START_TIMEOUT_MS, failure('StartTimeout'))
    : within('PreparingTarget', facts, PREPARATION_TIMEOUT_MS, failure('PreparationTimeout'));
  if (decision.failure) return withdrawn(decision.failure);
  const isAnnounced = guest.metadata.labels?.[TARGET_NODE_LABEL] === state.targetNode;
  return isAnnounced ? decision : { ...decision, step: { kind: 'announce' } };
}

function whileRunning(
  { migration, targetPod, newsMs, nowMs }: MigrationFacts,
  guest: VirtualMachineInstance,
  state: MigrationState,
): MigrationDecision {
  const phase = 'Running';
  if (state.abortRequested === true || state.mode === 'PostCopy') return { phase };
  const abort = (reason: AbortReason): MigrationDecision => ({ phase, step: { kind: 'request-abort', reason } });
  if (migration.metadata.deletionTimestamp !== undefined) return abort('Canceled');
  if (guest.metadata.deletionTimestamp !== undefined) return abort('GuestDeleted');
  if (isGone(targetPod)) return abort('TargetPodDown');
  const silentAtMs = newsMs + NEWS_TIMEOUT_MS;
  return nowMs >= silentAtMs ? abort('NoNews') : { phase, wakeAtMs: silentAtMs };
}

/** Whether a target pod has ended, or is not there. */
export function isGone(pod: TargetPod | undefined): boolean {
  return !pod || pod.isDown;
}
