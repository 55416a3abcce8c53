import { isAcross, sidesOf } from '../../api/kubevirt/migration-sides.ts';
import type { MigrationLetter } from '../../api/kubevirt/migration-state.ts';
import type { Runner } from '../../api/kubevirt/right-to-run.ts';
import { isSameRunner } from '../../migration/right-to-run/attempt.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstanceStatus,
} from '../../api/kubevirt/virtual-machine-instance.ts';

/**
 * A successor that has a record of its own, maybe in another cluster, and a holder that cannot be asked any more. Only the
 * successor knows whether it has the guest; it is asked, and answers, by letters in the guest's status.
 */

/**
 * What it has answered about the right as it is on record; undefined for nothing. Its half that has succeeded is an answer, too: of a
 * guest that is over by then no letter is left.
 */
export function answerOf({ status }: VirtualMachineInstance): 'taken' | 'refused' | undefined {
  const { migrationState, rightToRun } = status ?? {};
  const { targetLetter: letter, targetRunner, targetState } = migrationState ?? {};
  const { holder, successor, epoch } = rightToRun ?? {};
  if (!holder || !successor) return undefined;
  const isAnswer =
    letter?.epoch === epoch && letter?.sourcePodUID === holder.podUID && letter.targetPodUID === successor.podUID;
  if (isAnswer && (letter.kind === 'taken' || letter.kind === 'refused')) return letter.kind;
  const hasCome = targetState?.verdict?.phase === 'Succeeded' && isSameRunner(targetRunner, successor);
  return hasCome ? 'taken' : undefined;
}

/** The status with which it is asked to refuse; nothing where it was asked, was granted the right, or there is none. */
export function askedToRefuse(guest: VirtualMachineInstance): Partial<VirtualMachineInstanceStatus> {
  const { migrationState: state, rightToRun } = guest.status ?? {};
  const { isSource } = sidesOf(guest);
  const target = rightToRun?.successor ?? state?.targetRunner;
  if (!state || !isAcross(guest) || !isSource || state.completed === true) return {};
  if (!rightToRun?.holder || !target) return {};
  const letter: MigrationLetter = {
    kind: 'please-refuse',
    epoch: rightToRun.epoch,
    migrationUid: state.sourceState?.migrationUID || (state.migrationUid ?? ''),
    sourcePodUID: rightToRun.holder.podUID,
    targetPodUID: target.podUID,
  };
  // A grant that is on its way saves the guest: whoever hears of it takes, and says so.
  const { kind, epoch } = state.sourceLetter ?? {};
  const isSaid = epoch === letter.epoch && (kind === 'please-refuse' || kind === 'grant');
  return isSaid ? {} : { migrationState: { ...state, sourceLetter: letter } };
}

/**
 * Who took a guest, as its source says, and has not written so: its record begins with that, and until then nobody knows here
 * whose word it would be. Undefined where there is nobody.
 */
export function lostTarget(
  guest: VirtualMachineInstance,
): { readonly target: Runner; readonly sourceEpoch: number } | undefined {
  const { migrationState, rightToRun } = guest.status ?? {};
  const { targetRunner: target, sourceState } = migrationState ?? {};
  if (rightToRun || !isAcross(guest) || !sidesOf(guest).isTarget) return undefined;
  const sourceEpoch = sourceState?.epoch;
  const isTaken = sourceState?.verdict?.phase === 'Succeeded';
  return isTaken && target && sourceEpoch !== undefined ? { target, sourceEpoch } : undefined;
}
