import { isAcross, sidesOf } from '../../api/kubevirt/migration-sides.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { Runner } from '../../api/kubevirt/right-to-run.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { unreachable } from '../../api/unreachable.ts';
import { type Hold, LAST_MOMENT_MS } from '../../migration/disruption/disposition.ts';
import { type Attempt, epochAcross, isSameRunner } from '../../migration/right-to-run/attempt.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { Wish } from '../../migration/right-to-run/view.ts';
import { isPodOver, type LauncherPod } from '../guests/launcher-pod.ts';

/** What the status of a guest asks of one of its launcher pods, as far as the guest moves. */

/** Whom it is asked of, as the agent knows it. */
export interface AskedPod {
  readonly self: Runner;
  readonly guest: VirtualMachineInstance | undefined;
  /** Undefined where it is gone. */
  readonly pod: LauncherPod | undefined;
  /** What the guest may yet do though its pod is being deleted, since that holds it: nothing where absent. */
  readonly patience?: Patience | undefined;
}

/** Whether a guest may still `begin` to move, or only `finish` what has begun. */
export type Patience = 'begin' | 'finish';

/** What a guest may yet do that its pod holds. What has gone over all but for the last word is never called back. */
export function patienceOf(hold: Hold | undefined, standing: Standing, nowMs: number): Patience | undefined {
  if (!hold || (standing.kind !== 'holding' && standing.kind !== 'granted')) return undefined;
  if (nowMs < hold.untilMs) return 'begin';
  return standing.kind === 'granted' || nowMs < hold.untilMs + LAST_MOMENT_MS ? 'finish' : undefined;
}

/** The migration that this pod is a side of, and which. */
export function partIn({
  self,
  guest,
  pod,
}: AskedPod): { side: 'source' | 'target'; state: MigrationState } | undefined {
  const state = guest?.status?.migrationState;
  const name = pod?.metadata.name;
  if (!guest || !state?.migrationUid || name === undefined) return undefined;
  const { isSource, isTarget } = sidesOf(guest);
  if (isSource && state.sourceNode === self.node && state.sourcePod === name) return { side: 'source', state };
  return isTarget && state.targetNode === self.node && state.targetPod === name ? { side: 'target', state } : undefined;
}

/** The try that is asked for; undefined where none is, or not all that it takes is known yet. */
export function askedAttempt(asked: AskedPod): Attempt | undefined {
  const { self, guest } = asked;
  const part = partIn(asked);
  if (!guest || !part) return undefined;
  const { side, state } = part;
  const { epoch, holder } = isAcross(guest) && side === 'target' ? farRight(state) : (guest.status?.rightToRun ?? {});
  if (epoch === undefined || !holder) return undefined;
  if (side === 'target')
    return holder.podUID === self.podUID ? undefined : attemptIn(guest, epoch, { source: holder, target: self });
  const { targetRunner, targetNode, targetNodeAddress } = state;
  const isKnown = !isAcross(guest) || (state.targetState?.agentKeys ?? []).length > 0;
  const isReady = targetRunner?.node === targetNode && targetNodeAddress !== undefined && isKnown;
  return isReady && targetRunner ? attemptIn(guest, epoch, { source: self, target: targetRunner }) : undefined;
}

/** A try of the migration that a guest is in, between these two. */
export function attemptIn(
  guest: VirtualMachineInstance,
  epoch: number,
  runners: Pick<Attempt, 'source' | 'target'>,
): Attempt {
  const { migrationUid = '', sourceState, targetState } = guest.status?.migrationState ?? {};
  return {
    epoch,
    ...runners,
    sourceMigrationUID: sourceState?.migrationUID || migrationUid,
    targetMigrationUID: targetState?.migrationUID || migrationUid,
    // What the target's machine remembers is looked up by whoever needs to know.
    ...(isAcross(guest) ? { across: { targetEpoch: epochAcross(epoch, undefined) } } : {}),
  };
}

/** Who holds the right by another record, as its side says. */
function farRight({ sourceState }: MigrationState): { readonly epoch?: number; readonly holder?: Runner } {
  const { epoch, runner } = sourceState ?? {};
  return { ...(epoch === undefined ? {} : { epoch }), ...(runner ? { holder: runner } : {}) };
}

/** Whether the guest's status asks for a try that nothing was done about yet. */
export function isAsked({ migrationUid, abortRequested, completed, failed }: MigrationState): boolean {
  return migrationUid !== undefined && abortRequested !== true && completed !== true && failed !== true;
}

/** What is wanted of the pod. `canSend` says whether the target waits for this very attempt. */
export function migrationWish(asked: AskedPod, standing: Standing, canSend: (attempt: Attempt) => boolean): Wish {
  switch (standing.kind) {
    case 'none':
    case 'starting': {
      const attempt = isWelcome(asked) && partIn(asked)?.side === 'target' ? askedAttempt(asked) : undefined;
      return attempt ? { receive: attempt } : {};
    }
    case 'holding': {
      if (standing.reserved) return isWithdrawn(asked, standing.reserved) ? { isCancelled: true } : {};
      const attempt = isWelcome(asked) && partIn(asked)?.side === 'source' ? askedAttempt(asked) : undefined;
      const isNew = asked.guest?.status?.migrationState?.startTimestamp === undefined;
      return attempt && isNew && canSend(attempt) ? { migrate: attempt } : {};
    }
    case 'granted':
      return {
        ...(isWithdrawn(asked, standing.attempt) ? { isCancelled: true } : {}),
        ...(isPeerDone(asked, standing.attempt) ? { isPeerDone: true } : {}),
      };
    case 'receiving':
      return isWithdrawn(begunElsewhere(asked), standing.attempt) ? { isCancelled: true } : {};
    case 'ended':
    case 'refused':
      return {};
    default:
      return unreachable(standing);
  }
}

/**
 * Whether a try that nobody heard the end of is over all the same: another migration was asked for since, in the same epoch,
 * and the record does not name the target as the successor. No migration follows another whose successor is on record, and
 * only its source takes it off, once it has given up: it has granted nothing, and never will.
 */
export function isReplaced(guest: VirtualMachineInstance | undefined, attempt: Attempt): boolean {
  const { rightToRun, migrationState } = guest?.status ?? {};
  const { migrationUid } = migrationState ?? {};
  // The record of a source elsewhere is not to be seen from here: only its own word counts.
  if (attempt.across) return false;
  const isAnother = migrationUid !== undefined && migrationUid !== attempt.sourceMigrationUID;
  const isSameRight = rightToRun?.epoch === attempt.epoch && isSameRunner(rightToRun.holder, attempt.source);
  return isAnother && isSameRight && !isSameRunner(rightToRun.successor, attempt.target);
}

/** Whether a try may begin: somebody asks for it, and nobody wants the guest or the pod gone. */
export function isWelcome(asked: AskedPod): boolean {
  return isWanted(asked, asked.patience === 'begin');
}

function isWanted({ guest, pod }: AskedPod, isHeld: boolean): boolean {
  const { phase, migrationState } = guest?.status ?? {};
  return (
    guest?.metadata.deletionTimestamp === undefined &&
    phase !== 'Succeeded' &&
    phase !== 'Failed' &&
    migrationState !== undefined &&
    isAsked(migrationState) &&
    pod !== undefined &&
    (pod.metadata.deletionTimestamp === undefined || isHeld) &&
    !isPodOver(pod)
  );
}

/** A source that has begun ends it in order when it is cancelled, and says so: a target that ran ahead would break it off. */
function begunElsewhere(asked: AskedPod): AskedPod {
  const { guest } = asked;
  const state = guest?.status?.migrationState;
  if (!guest || state?.startTimestamp === undefined || state.completed === true) return asked;
  return {
    ...asked,
    guest: { ...guest, status: { ...guest.status, migrationState: { ...state, abortRequested: false } } },
  };
}

/** Whether the side of a target that has a record of its own says how the migration ended there. */
function isPeerDone({ guest }: AskedPod, { across, sourceMigrationUID }: Attempt): boolean {
  const { migrationUid, completed, targetState } = guest?.status?.migrationState ?? {};
  const isSaid = completed === true || targetState?.verdict !== undefined;
  return across !== undefined && migrationUid === sourceMigrationUID && isSaid;
}

/** Whether a try that has begun is wanted no more. Of what nothing is known it is not said. */
function isWithdrawn(asked: AskedPod, attempt: Attempt): boolean {
  if (!asked.guest) return false;
  const isOfAttempt = asked.guest.status?.migrationState?.migrationUid === attempt.sourceMigrationUID;
  return !isOfAttempt || !isWanted(asked, asked.patience !== undefined);
}
