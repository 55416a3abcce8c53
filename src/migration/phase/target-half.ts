import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { RECEIVER_ANNOTATION, TARGET_NODE_LABEL } from '../../api/kubevirt/well-known.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { MigrationPhase } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import {
  podDeadline,
  PREPARATION_TIMEOUT_MS,
  SLOT_TIMEOUT_MS,
  SOURCE_NEWS_TIMEOUT_MS,
  SOURCE_START_TIMEOUT_MS,
} from './deadlines.ts';
import { type AbortReason, failed, type MigrationDecision, within } from './decision.ts';
import { isHandedOff, isStarted, type MigrationFacts, ownState, type PairFacts } from './facts.ts';
import { failure } from './failure.ts';
import { closed, isMeanwhile, orLost, peerFailure } from './pairing.ts';
import { isGone, isOver, isTakenByAnother } from './within-cluster.ts';

/**
 * The half that a guest comes to, where the guest that waits is another object. Until it is handed off nobody but the
 * controller has anything of it. From then on its agent may receive the guest any moment, and alone can say that it never
 * will; or the source, which fails only where it can give the guest to nobody any more.
 */
export function decideTarget(facts: MigrationFacts, pair: PairFacts): MigrationDecision {
  const { guest } = facts;
  if (!guest) return withoutGuest(facts, pair);
  const state = ownState(facts);
  if (state && hasTaken(guest, state)) return afterMove(guest, state);
  if (state?.failed === true) return failed('ReportedByNode', state.failureReason);
  const peers = peerFailure(state?.sourceState);
  if (peers) return closed(state, peers);
  if (!isHandedOff(facts)) return beforeHandOff(facts, pair, guest, state);
  if (!state) return failed(guest.status?.migrationState ? 'TakenOver' : 'StateCleared');
  return handedOff(facts, guest, state);
}

/**
 * Whether the guest came: one that waits has no record, and nobody begins one but who took it, whoever has the guest, or had
 * it, since.
 */
function hasTaken({ status }: VirtualMachineInstance, { targetRunner, sourceState }: MigrationState): boolean {
  const { epoch = 0 } = status?.rightToRun ?? {};
  return targetRunner !== undefined && sourceState?.epoch !== undefined && epoch > sourceState.epoch;
}

/** Who comes first does not matter: a guest that will wait may be made later. */
function withoutGuest(facts: MigrationFacts, pair: PairFacts): MigrationDecision {
  const { metadata, status } = facts.migration;
  if (metadata.deletionTimestamp !== undefined) return failed('Canceled');
  if (pair.isKeyTaken) return failed('KeyTaken');
  const phase = status?.phase ?? '';
  if (phase !== '' && phase !== 'WaitingForSync') return failed('GuestGone');
  return within('WaitingForSync', facts, facts.syncTimeoutMs, failure('ReceiverMissing'));
}

function afterMove(guest: VirtualMachineInstance, { completed, mode }: MigrationState): MigrationDecision {
  if (completed === true || mode !== 'PostCopy') return { phase: 'Succeeded' };
  return isOver(guest) ? failed('GuestEnded') : { phase: 'Running' };
}

/** Whether a guest waits for another one to become. */
export function isWaiting({ metadata, status }: VirtualMachineInstance): boolean {
  const isReceiver = metadata.annotations?.[RECEIVER_ANNOTATION] === 'true';
  return isReceiver && status?.phase === 'WaitingForSync' && status.rightToRun === undefined;
}

function beforeHandOff(
  facts: MigrationFacts,
  pair: PairFacts,
  guest: VirtualMachineInstance,
  state: MigrationState | undefined,
): MigrationDecision {
  const { migration, targetPod } = facts;
  const phase = migration.status?.phase ?? '';
  if (migration.metadata.deletionTimestamp !== undefined) return closed(state, failure('Canceled'));
  if (pair.isKeyTaken) return closed(state, failure('KeyTaken'));
  if (facts.hasBetterRival || isTakenByAnother(facts)) return closed(state, failure('AnotherMigration'));
  if (guest.metadata.deletionTimestamp !== undefined || isOver(guest)) return closed(state, failure('GuestEnded'));
  if (state?.abortRequested === true) return closed(state, failure('Canceled', 'the other half asked for it'));
  if (!isWaiting(guest)) return withoutReceiver(facts, guest, state);
  const isFound = state?.migrationUid !== undefined && state.sourceState?.virtualMachineInstanceUID !== undefined;
  const waiting = isFound
    ? orLost(facts, guest, state, { phase: isMeanwhile(phase) ? 'Pending' : phase })
    : late(state, within('WaitingForSync', facts, facts.syncTimeoutMs, failure('SyncTimeout')));
  if (waiting.failure) return waiting;
  if (!pair.isDescribed) return { ...waiting, step: { kind: 'describe' } };
  if (!isFound) return waiting;
  return targetPod || !isMeanwhile(phase) ? withPod(facts, guest, state) : withoutPod(facts, pair, state, waiting);
}

/** A guest that runs, or is about to by itself, receives nothing; but one that waits may yet be made. */
function withoutReceiver(
  facts: MigrationFacts,
  { metadata, status }: VirtualMachineInstance,
  state: MigrationState | undefined,
): MigrationDecision {
  const what = `${metadata.namespace}/${metadata.name} is ${status?.phase || 'new'}, and does not wait`;
  if (!isMeanwhile(facts.migration.status?.phase ?? '')) return closed(state, failure('ReceiverMissing', what));
  return late(state, within('WaitingForSync', facts, facts.syncTimeoutMs, failure('ReceiverMissing', what)));
}

function withoutPod(
  { migration, slots }: MigrationFacts,
  { objection, isPeerReady, isAdopted }: PairFacts,
  state: MigrationState,
  waiting: MigrationDecision,
): MigrationDecision {
  if (objection !== undefined) return closed(state, failure('ReceiverUnfit', objection));
  const isKnown = state.sourceState?.volumes !== undefined;
  if (migration.status?.phase !== 'Pending' || slots === undefined || !isPeerReady || !isKnown) return waiting;
  if (!isAdopted) return { ...waiting, step: { kind: 'adopt' } };
  return { phase: 'Scheduling', step: { kind: 'create-target' } };
}

function withPod(facts: MigrationFacts, guest: VirtualMachineInstance, state: MigrationState): MigrationDecision {
  const { migration, targetPod, slots, nowMs } = facts;
  if (!targetPod) return closed(state, failure('TargetPodRemoved'));
  if (targetPod.isDown) return closed(state, failure('TargetPodDown', targetPod.cause));
  if (!targetPod.isUp) {
    const deadline = podDeadline(migration, targetPod);
    if (nowMs >= deadline.atMs) return closed(state, deadline.failure);
    return orLost(facts, guest, state, { phase: 'Scheduling', wakeAtMs: deadline.atMs });
  }
  if (slots === 'elsewhere') return closed(state, failure('SlotsElsewhere'));
  if (slots === 'committed') return { phase: 'PreparingTarget', step: { kind: 'hand-off' } };
  const scheduled = within('Scheduled', facts, SLOT_TIMEOUT_MS, failure('SlotTimeout'));
  return orLost(facts, guest, state, late(state, scheduled));
}

/** What failed for want of time is closed like all that fails. */
function late(state: MigrationState | undefined, decision: MigrationDecision): MigrationDecision {
  return decision.failure ? closed(state, decision.failure) : decision;
}

/** Nothing is over by our word here: the agent is asked to refuse. */
function handedOff(facts: MigrationFacts, guest: VirtualMachineInstance, state: MigrationState): MigrationDecision {
  const { migration, targetPod, newsMs, nowMs } = facts;
  const phase = phaseOf(guest, state);
  const abort = (reason: AbortReason): MigrationDecision => ({ phase, step: { kind: 'request-abort', reason } });
  if (state.abortRequested === true) return { phase };
  if (migration.metadata.deletionTimestamp !== undefined) return abort('Canceled');
  if (guest.metadata.deletionTimestamp !== undefined || isOver(guest)) return abort('GuestDeleted');
  if (isGone(targetPod)) return abort('TargetPodDown');
  if (phase === 'Running') {
    const silentAtMs = newsMs + SOURCE_NEWS_TIMEOUT_MS;
    return nowMs >= silentAtMs ? abort('NoNews') : { phase, wakeAtMs: silentAtMs };
  }
  const isReady = phase === 'TargetReady';
  const timeoutMs = isReady ? SOURCE_START_TIMEOUT_MS : PREPARATION_TIMEOUT_MS;
  const reason = isReady ? 'StartTimeout' : 'PreparationTimeout';
  const decision = within(phase, facts, timeoutMs, failure(reason));
  if (decision.failure) return abort(reason);
  const isAnnounced = guest.metadata.labels?.[TARGET_NODE_LABEL] === state.targetNode;
  return isAnnounced ? decision : { ...decision, step: { kind: 'announce' } };
}

function phaseOf(guest: VirtualMachineInstance, { targetNodeAddress }: MigrationState): MigrationPhase {
  if (isStarted(guest)) return 'Running';
  return targetNodeAddress ? 'TargetReady' : 'PreparingTarget';
}
