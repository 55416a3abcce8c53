import { migratedGuestErrors } from '../../api/kubevirt/validate-migration.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import { isAway } from '../../api/kubevirt/right-to-run-transition.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { NEWS_TIMEOUT_MS, PREPARATION_TIMEOUT_MS, START_TIMEOUT_MS, TARGET_TIMEOUT_MS } from './deadlines.ts';
import { type AbortReason, failed, type MigrationDecision, within } from './decision.ts';
import { isHandedOff, isMovable, isStarted, type MigrationFacts, ownState, type PairFacts } from './facts.ts';
import { failure } from './failure.ts';
import { closed, isMeanwhile, orLost, peerFailure, seeking } from './pairing.ts';
import { isFree, isOver, isTakenByAnother, scheduled } from './within-cluster.ts';

/**
 * The half that a guest leaves, where the guest that it becomes is another object. Until the source's agent has begun, it
 * ends by a write to the guest that its agent cannot miss; from then on by the word of the agent alone. That it succeeded
 * the record says, in which nobody but the agent gives the guest away.
 */
export function decideSource(facts: MigrationFacts, pair: PairFacts): MigrationDecision {
  const { guest } = facts;
  if (!guest) return pair.isGivenAway ? { phase: 'Succeeded' } : failed('GuestGone');
  const state = ownState(facts);
  const isBegun = isHandedOff(facts);
  if (isBegun && isAway(guest.status?.rightToRun)) return afterMove(state);
  if (state?.failed === true) return failed('ReportedByNode', state.failureReason);
  const isSettled = guest.status?.rightToRun?.successor === undefined;
  if (isSettled && isContradicted(guest, pair, state)) return closed(state, failure('PeerContradicted'));
  if (isOver(guest) && isSettled) return closed(state, failure('GuestEnded'));
  if (!isBegun) return beforeHandOff(facts, pair, guest, state);
  if (state) return isStarted(guest) ? whileRunning(facts, guest, state) : beforeStart(facts, guest, state);
  // Its agent, which has a successor on record, gives up by itself what nobody asks for any more.
  if (!isSettled) return { phase: 'Running' };
  return failed(guest.status?.migrationState?.migrationUid ? 'TakenOver' : 'StateCleared');
}

/**
 * Whether the other half says that it has a guest which it was never given. Nothing is granted before the record names a
 * successor, and that stays there until the guest is away, or is had back.
 */
function isContradicted({ status }: VirtualMachineInstance, pair: PairFacts, state?: MigrationState): boolean {
  const isSaid = state?.targetState?.verdict?.phase === 'Succeeded';
  return isSaid && !isAway(status?.rightToRun) && !pair.isRecordOld;
}

/** Of a guest that runs there with part of its memory still here the other half says how it ends. */
function afterMove(state: MigrationState | undefined): MigrationDecision {
  if (state?.completed === true || state?.mode !== 'PostCopy') return { phase: 'Succeeded' };
  const cause = peerFailure(state.targetState);
  return cause ? { phase: 'Failed', failure: cause } : { phase: 'Running' };
}

function beforeHandOff(
  facts: MigrationFacts,
  pair: PairFacts,
  guest: VirtualMachineInstance,
  state: MigrationState | undefined,
): MigrationDecision {
  const { migration, slots } = facts;
  const phase = migration.status?.phase ?? '';
  if (migration.metadata.deletionTimestamp !== undefined) return closed(state, failure('Canceled'));
  if (pair.isKeyTaken) return closed(state, failure('KeyTaken'));
  if (facts.hasBetterRival || isTakenByAnother(facts)) return closed(state, failure('AnotherMigration'));
  if (guest.metadata.deletionTimestamp !== undefined) return closed(state, failure('GuestEnded'));
  const peers = peerFailure(state?.targetState);
  if (peers) return closed(state, peers);
  if (state?.abortRequested === true) return closed(state, failure('Canceled', BY_TARGET));
  const [obstacle] = migratedGuestErrors(migration, guest);
  if (obstacle) return closed(state, { reason: 'NotMigratable', message: obstacle.message });
  const isFound = state?.targetState?.virtualMachineInstanceUID !== undefined;
  const waiting = isFound
    ? orLost(facts, guest, state, { phase: isMeanwhile(phase) ? 'Pending' : phase })
    : late(state, seeking('Synchronizing', facts));
  if (waiting.failure || !isMovable(guest)) return waiting;
  if (!pair.isDescribed) return isFree(guest) ? { ...waiting, step: { kind: 'describe' } } : waiting;
  if (!isFound || (slots === undefined && isMeanwhile(phase))) return waiting;
  if (slots === undefined || state.targetNode === undefined)
    return orLost(
      facts,
      guest,
      state,
      late(state, within('Scheduling', facts, TARGET_TIMEOUT_MS, failure('TargetTimeout'))),
    );
  if (slots === 'elsewhere') return closed(state, failure('SlotsElsewhere'));
  if (slots === 'committed' && isFree(guest)) return { phase: 'PreparingTarget', step: { kind: 'hand-off' } };
  return orLost(facts, guest, state, late(state, scheduled(facts, guest)));
}

const BY_TARGET = 'the other half asked for it';

/** What failed for want of time is closed like all that fails. */
function late(state: MigrationState | undefined, decision: MigrationDecision): MigrationDecision {
  return decision.failure ? closed(state, decision.failure) : decision;
}

function beforeStart(facts: MigrationFacts, guest: VirtualMachineInstance, state: MigrationState): MigrationDecision {
  if (facts.migration.metadata.deletionTimestamp !== undefined) return closed(state, failure('Canceled'));
  if (guest.metadata.deletionTimestamp !== undefined) return closed(state, failure('GuestEnded'));
  const peers = peerFailure(state.targetState);
  if (peers) return closed(state, peers);
  if (state.abortRequested === true) return closed(state, failure('Canceled', BY_TARGET));
  const isReady = Boolean(state.targetNodeAddress) && state.targetRunner !== undefined;
  const decision = isReady
    ? within('TargetReady', facts, START_TIMEOUT_MS, failure('StartTimeout'))
    : within('PreparingTarget', facts, PREPARATION_TIMEOUT_MS, failure('PreparationTimeout'));
  return late(state, decision);
}

function whileRunning(
  { migration, newsMs, nowMs }: MigrationFacts,
  guest: VirtualMachineInstance,
  state: MigrationState,
): MigrationDecision {
  const phase = 'Running';
  if (state.abortRequested === true || state.mode === 'PostCopy') return { phase };
  const abort = (reason: AbortReason): MigrationDecision => ({ phase, step: { kind: 'request-abort', reason } });
  if (migration.metadata.deletionTimestamp !== undefined) return abort('Canceled');
  if (guest.metadata.deletionTimestamp !== undefined) return abort('GuestDeleted');
  if (peerFailure(state.targetState)) return abort('PeerFailed');
  const silentAtMs = newsMs + NEWS_TIMEOUT_MS;
  return nowMs >= silentAtMs ? abort('NoNews') : { phase, wakeAtMs: silentAtMs };
}
