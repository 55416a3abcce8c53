import type { MigrationDecision, MigrationState } from '../../api/kubevirt/migration-state.ts';
import { type MigrationProgress, wholeProgress } from '../../api/kubevirt/migration-progress.ts';
import type { Runner } from '../../api/kubevirt/right-to-run.ts';
import { formatTime } from '../../api/meta.ts';
import type { Message } from '../../migration/right-to-run/plan.ts';
import { hasLeftAhead, type Standing } from '../../migration/right-to-run/standing.ts';
import { CANCELLED } from './leaving.ts';
import { isSameLetter, letterOf, settlingLetter } from './letters.ts';

/** What each side writes of a migration into the status of the guest: its own half, and nothing that is there already. */

/** What a source knows besides its journal. */
export interface SourceFacts {
  /** Whether the record names another holder by now. */
  readonly hasGone?: boolean;
  /** What is told of its copy, once there is one. */
  readonly copy?:
    | {
        readonly mode: NonNullable<MigrationState['mode']>;
        readonly channel: MigrationState['channel'];
        readonly progress: MigrationProgress | undefined;
        readonly decisions: readonly MigrationDecision[];
      }
    | undefined;
  /** Why this migration cannot be, or could not. */
  readonly failure?: string | undefined;
  /** What could not be said to the target itself. */
  readonly undelivered?: Message | undefined;
}

/** What a target knows besides its journal. */
export interface TargetFacts {
  readonly self: Runner;
  /** Where its agent is reached, where that is known by now. */
  readonly place?: { readonly address: string; readonly port: number } | undefined;
  /** Whether its machine waits for the guest. */
  readonly isWaiting: boolean;
  /** Whether memory has yet to follow its guest. */
  readonly isFollowed?: boolean | undefined;
  /** For how long the guest stood still. */
  readonly downtimeMs?: number | undefined;
  readonly undelivered?: Message | undefined;
}

const UNKNOWN = 'nobody knows how far the copy was: the agent of the source was restarted, or its machine has ended';
const ENDED = "the guest's machine ended at the source";
const REFUSED = 'the target does not receive the guest any more';

/** The fields of the source, as they should be; the others are as they are. */
export function sourceReport(
  state: MigrationState,
  standing: Standing,
  { copy, failure, undelivered, hasGone = false }: SourceFacts,
  nowMs: number,
): Partial<MigrationState> {
  // Whoever has the guest needs no letters, and knows whether its memory follows.
  const letter = undelivered && !hasGone ? letterOf(undelivered) : undefined;
  const letters = letter && !isSameLetter(state.sourceLetter, letter) ? { sourceLetter: letter } : {};
  // A copy that an agent has not seen itself is known by its journal.
  const isPostCopy = copy?.mode === 'PostCopy' || hasLeftAhead(standing);
  const attempt = attemptUnderWay(standing);
  const isThere = hasGone && state.completed === true;
  if (attempt?.sourceMigrationUID === state.migrationUid && !isThere) {
    const isFurther = (copy?.progress?.percent ?? 0) >= (state.progress?.percent ?? 0);
    return {
      ...letters,
      ...(hasGone
        ? lateMode(state, isPostCopy)
        : {
            startTimestamp: state.startTimestamp ?? formatTime(nowMs),
            mode: isPostCopy ? 'PostCopy' : (copy?.mode ?? state.mode ?? 'PreCopy'),
          }),
      ...(copy?.channel ? { channel: copy.channel } : {}),
      ...(copy?.progress && isFurther ? { progress: copy.progress } : {}),
      ...(copy && copy.decisions.length > 0 ? { decisions: [...copy.decisions] } : {}),
    };
  }
  const isMoved = standing.kind === 'ended' && standing.givenTo !== undefined;
  const late = state.failed !== true && (isMoved || state.completed === true) ? lateMode(state, isPostCopy) : {};
  if (state.completed === true) return { ...letters, ...late, ...lastWord(state, copy, nowMs) };
  const hasBegun = state.startTimestamp !== undefined;
  const isOver = standing.kind === 'ended' && standing.givenTo === undefined;
  const hasStayed = standing.kind === 'holding' || isOver;
  if (!hasStayed || (!hasBegun && failure === undefined)) return { ...letters, ...late };
  return {
    ...letters,
    ...failed(state, failure ?? (isOver ? ENDED : UNKNOWN), nowMs),
    ...(copy?.progress ? { progress: copy.progress } : {}),
    ...(copy && copy.decisions.length > 0 ? { decisions: [...copy.decisions] } : {}),
  };
}

/** The fields of the target, as they should be; the others are as they are. */
export function targetReport(
  state: MigrationState,
  standing: Standing,
  { self, place, isWaiting, isFollowed, downtimeMs, undelivered }: TargetFacts,
  nowMs: number,
): Partial<MigrationState> {
  const letter = settlingLetter(standing, state.migrationUid) ?? (undelivered && letterOf(undelivered));
  const letters = letter && !isSameLetter(state.targetLetter, letter) ? { targetLetter: letter } : {};
  if (standing.kind === 'receiving') {
    const isOfState = standing.attempt.sourceMigrationUID === state.migrationUid;
    // An agent that was started anew may be elsewhere; its source needs to find it, however far the copy is.
    if (!place || !isOfState || (!isWaiting && state.targetNodeAddress === undefined)) return letters;
    return {
      ...letters,
      targetNodeAddress: place.address,
      targetDirectMigrationNodePorts: { [String(place.port)]: 0 },
      targetRunner: self,
    };
  }
  if (state.completed === true) return letters;
  if (standing.kind === 'refused' && standing.attempt.across && letter)
    return { ...letters, ...failed(state, state.abortRequested === true ? CANCELLED : REFUSED, nowMs) };
  if (standing.kind !== 'holding') return letters;
  return {
    ...letters,
    targetNodeDomainDetected: true,
    targetNodeDomainReadyTimestamp: state.targetNodeDomainReadyTimestamp ?? formatTime(nowMs),
    ...(downtimeMs === undefined ? {} : { downtimeMs: Math.round(downtimeMs) }),
    // What is still to come over counts against the slots of both nodes. The source may not have had the time to say so.
    ...(isFollowed || standing.isPostCopy ? { mode: 'PostCopy' as const } : {}),
    ...(isFollowed
      ? {}
      : {
          completed: true,
          endTimestamp: formatTime(nowMs),
          progress: wholeProgress(state.progress, formatTime(nowMs)),
        }),
  };
}

/** What is said of a migration after which the guest is where it was. */
function failed({ abortRequested }: MigrationState, failureReason: string, nowMs: number): Partial<MigrationState> {
  return {
    completed: true,
    failed: true,
    failureReason,
    ...(abortRequested === true ? { abortStatus: 'Succeeded' as const } : {}),
    endTimestamp: formatTime(nowMs),
  };
}

/** What a source knows of a copy that is over: of one that was quick it may have told nothing before. */
function lastWord(state: MigrationState, copy: SourceFacts['copy'], nowMs: number): Partial<MigrationState> {
  if (!copy || state.failed === true) return {};
  const { channel, decisions, progress } = copy;
  const isNews = (progress?.transferredBytes ?? 0) > (state.progress?.transferredBytes ?? 0);
  return {
    ...(channel && state.channel === undefined ? { channel } : {}),
    ...(decisions.length > (state.decisions?.length ?? 0) ? { decisions: [...decisions] } : {}),
    ...(progress && isNews ? { progress: wholeProgress(progress, formatTime(nowMs)) } : {}),
  };
}

/** A post-copy may be over before anybody has told that it was one. */
function lateMode({ mode }: MigrationState, isPostCopy: boolean): Pick<MigrationState, 'mode'> {
  return isPostCopy && mode !== 'PostCopy' ? { mode: 'PostCopy' } : {};
}

function attemptUnderWay(standing: Standing): { readonly sourceMigrationUID: string } | undefined {
  if (standing.kind === 'holding') return standing.reserved;
  return standing.kind === 'granted' ? standing.attempt : undefined;
}
