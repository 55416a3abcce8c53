import type { MigrationDecision } from '../../api/kubevirt/migration-state.ts';
import { formatTime } from '../../api/meta.ts';
import type { Decision } from '../../migration/monitor/decision.ts';
import type { MigrationOptions } from '../../migration/policies/options.ts';
import { wantsPostCopy } from './copy-method.ts';
import type { WantedMethod } from './peer.ts';

/** A status has room for so many: the first and the last ones tell the story. */
const DECISIONS_MAX = 64;
const FIRST_KEPT = DECISIONS_MAX / 2;

/** What is decided before anything is copied: where options are not obeyed. */
export function firstDecisions(
  options: MigrationOptions,
  { isEncrypted }: Pick<WantedMethod, 'isEncrypted'>,
  atMs: number,
  /** By when the guest must have gone over; undefined while there is no such time. */
  deadlineMs?: number,
  /** Whether what the guest writes while it is copied would be lost. */
  mustStandStill = false,
): readonly MigrationDecision[] {
  const first = (decision: string, reason: string, message: string): MigrationDecision => {
    return { time: formatTime(atMs), decision, reason, message, iteration: 0 };
  };
  const { disableTLS, allowAutoConverge } = options;
  const untrusted = 'disableTLS is not obeyed: without TLS the two machines could not prove to each other who they are';
  const fragile =
    'there is no post-copy without TLS: the copy goes through the agents, and a guest must not hang on them';
  const hurried = `the guest has to be gone by ${formatTime(deadlineMs ?? atMs)}, and is slowed down if it writes too fast`;
  const untracked = 'this QEMU would lose what the guest writes to memory that was plugged in, while that is copied';
  return [
    ...(mustStandStill ? [first('pause', 'MemoryNotTracked', untracked)] : []),
    ...(disableTLS && isEncrypted ? [first('keep-encryption', 'AuthenticationNeeded', untrusted)] : []),
    ...(!isEncrypted && wantsPostCopy(options) ? [first('forgo-post-copy', 'NotEncrypted', fragile)] : []),
    ...(deadlineMs !== undefined && !allowAutoConverge ? [first('allow-throttling', 'DeadlineGiven', hurried)] : []),
  ];
}

/** The decisions after one more; those by which nothing was done are not kept. */
export function withDecision(
  before: readonly MigrationDecision[],
  { kind, reason, message }: Decision,
  atMs: number,
  iteration: number,
): readonly MigrationDecision[] {
  if (kind === 'keep-copying' || kind === 'nothing') return before;
  const all = [...before, { time: formatTime(atMs), decision: kind, reason, message, iteration }];
  return all.length <= DECISIONS_MAX ? all : [...all.slice(0, FIRST_KEPT), ...all.slice(FIRST_KEPT + 1)];
}
