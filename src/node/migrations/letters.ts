import type { MigrationLetter } from '../../api/kubevirt/migration-state.ts';
import type { Attempt } from '../../migration/right-to-run/attempt.ts';
import type { Message } from '../../migration/right-to-run/plan.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';

/** The second path of what the agents of a migration say: through the status of the guest. */

/** A message as a guest's status has it. */
export function letterOf({ kind, attempt, isPostCopy, isPaused }: Message): MigrationLetter {
  return {
    kind,
    epoch: attempt.epoch,
    migrationUid: attempt.sourceMigrationUID,
    sourcePodUID: attempt.source.podUID,
    targetPodUID: attempt.target.podUID,
    ...(isPostCopy === undefined ? {} : { isPostCopy }),
    ...(isPaused === undefined ? {} : { isPaused }),
  };
}

/** What a letter says of this attempt; undefined where it is about another. */
export function messageOf(letter: MigrationLetter | undefined, attempt: Attempt): Message | undefined {
  const isOfAttempt =
    letter?.epoch === attempt.epoch &&
    letter.migrationUid === attempt.sourceMigrationUID &&
    letter.sourcePodUID === attempt.source.podUID &&
    letter.targetPodUID === attempt.target.podUID;
  if (!letter || !isOfAttempt) return undefined;
  const { kind, isPostCopy, isPaused } = letter;
  return {
    kind,
    attempt,
    ...(isPostCopy === undefined ? {} : { isPostCopy }),
    ...(isPaused === undefined ? {} : { isPaused }),
  };
}

/**
 * What became of a migration at its target, by the target's journal: what a source with a record of its own is told in any
 * case, since it cannot read the target's.
 */
export function settlingLetter(standing: Standing, migrationUid: string | undefined): MigrationLetter | undefined {
  const taken = 'taken' in standing ? standing.taken : undefined;
  const [kind, attempt] =
    standing.kind === 'refused' ? (['refused', standing.attempt] as const) : (['taken', taken] as const);
  if (!attempt?.across || attempt.sourceMigrationUID !== migrationUid) return undefined;
  return letterOf({ kind, attempt });
}

export function isSameLetter(one: MigrationLetter | undefined, other: MigrationLetter): boolean {
  return (
    one?.kind === other.kind &&
    one.epoch === other.epoch &&
    one.migrationUid === other.migrationUid &&
    one.sourcePodUID === other.sourcePodUID &&
    one.targetPodUID === other.targetPodUID
  );
}
