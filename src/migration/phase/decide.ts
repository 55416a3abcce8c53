import { migratedGuestErrors, migrationRole } from '../../api/kubevirt/validate-migration.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { TARGET_NODE_LABEL } from '../../api/kubevirt/well-known.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { isFinalMigration, type MigrationPhase } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import {
  NEWS_TIMEOUT_MS,
  podDeadline,
  PREPARATION_TIMEOUT_MS,
  SLOT_TIMEOUT_MS,
  START_TIMEOUT_MS,
} from './deadlines.ts';
import {
  isHandedOff,
  isMovable,
  isStarted,
  type MigrationFacts,
  ownState,
  phaseBeganMs,
  type TargetPod,
} from './facts.ts';
import { failure, type MigrationFailure } from './failure.ts';

/**
 * What becomes of a migration within one cluster, from what is known of it: KubeVirt's phases, and its rows of what ends
 * a migration in their order, but for two. The record of who may run the guest is asked first: a guest that has moved has
 * moved, whatever else went wrong. And once the source may have begun nothing here ends a migration any more: the agents
 * are asked to, and say how it ended.
 */

/** What has to be done, besides writing down the phase, and before that. */
export type MigrationStep =
  | { readonly kind: 'create-target' }
  /** Gives the migration to the agents of both nodes. */
  | { readonly kind: 'hand-off' }
  /** Lets the target's agent hear of it. */
  | { readonly kind: 'announce' }
  /** Asks the source's agent to stop. */
  | { readonly kind: 'request-abort'; readonly reason: AbortReason }
  /** Ends on the guest what nobody has begun: the agents keep their hands off from then on. */
  | { readonly kind: 'withdraw'; readonly failure: MigrationFailure };

export type AbortReason = 'Canceled' | 'GuestDeleted' | 'TargetPodDown' | 'NoNews';

export interface MigrationDecision {
  /** The phase once the step was made. */
  readonly phase: MigrationPhase;
  readonly step?: MigrationStep;
  /** Why it failed. */
  readonly failure?: MigrationFailure;
  /** When it has to be looked at again although nothing happens. */
  readonly wakeAtMs?: number;
}

/** Decides what is next; what is over stays as it is. */
export function decide(facts: MigrationFacts): MigrationDecision {
  const { migration, guest } = facts;
  const phase = migration.status?.phase ?? '';
  if (isFinalMigration(migration)) return { phase };
  if (migrationRole(migration.spec) !== 'local') return failed('AcrossClusters');
  if (!guest) return failed('GuestGone');
  const state = ownState(facts);
  if (state && hasMoved(guest, state)) return afterMove(guest, state);
  if (state?.failed === true) return failed('ReportedByNode', state.failureReason);
  if (state?.completed === true)
    return guest.status?.rightToRun?.holder ? failed('ReportedByNode') : { phase: 'Succeeded' };
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

function isOver({ status }: VirtualMachineInstance): boolean {
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
    const isNext = phase === 'Pending' && slots !== undefined && isMovable(guest);
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

/** Whether another migration that is not over has been handed off for this guest. */
function isTakenByAnother({ guest, isOtherOwnerAlive }: MigrationFacts): boolean {
  const state = guest?.status?.migrationState;
  return Boolean(state?.migrationUid) && state?.completed !== true && isOtherOwnerAlive;
}

/** Whether no agent is at work on what somebody else has left undone. */
function isFree(guest: VirtualMachineInstance): boolean {
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

function isGone(pod: TargetPod | undefined): boolean {
  return !pod || pod.isDown;
}

/** A phase that may take so long, counted from when it began. */
function within(
  phase: MigrationPhase,
  { migration, nowMs }: MigrationFacts,
  timeoutMs: number,
  late: MigrationFailure,
): MigrationDecision {
  const atMs = (phaseBeganMs(migration, phase) ?? nowMs) + timeoutMs;
  return nowMs >= atMs ? { phase: 'Failed', failure: late } : { phase, wakeAtMs: atMs };
}

function failed(...cause: Parameters<typeof failure>): MigrationDecision {
  return { phase: 'Failed', failure: failure(...cause) };
}

function withdrawn(cause: MigrationFailure): MigrationDecision {
  return { phase: 'Failed', failure: cause, step: { kind: 'withdraw', failure: cause } };
}
