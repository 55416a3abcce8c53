import type { MigrationPhase } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { type MigrationFacts, phaseBeganMs } from './facts.ts';
import { failure, type MigrationFailure } from './failure.ts';

/** What can be decided of a migration. */

/** What has to be done, besides writing down the phase, and before that. */
export type MigrationStep =
  | { readonly kind: 'create-target' }
  /** Gives the migration to the agents of both nodes, or of the one that is on this side. */
  | { readonly kind: 'hand-off' }
  /** Lets the target's agent hear of it. */
  | { readonly kind: 'announce' }
  /** Tells the other half, by the guest's status, what this side is and has. */
  | { readonly kind: 'describe' }
  /** Makes the guest that waits what the one that comes is. */
  | { readonly kind: 'adopt' }
  /** Asks the agent of this side to stop. */
  | { readonly kind: 'request-abort'; readonly reason: AbortReason }
  /** Ends on the guest what nobody has begun: the agents keep their hands off from then on. */
  | { readonly kind: 'withdraw'; readonly failure: MigrationFailure };

export type AbortReason =
  | 'Canceled'
  | 'GuestDeleted'
  | 'NoNews'
  | 'PeerFailed'
  | 'PreparationTimeout'
  | 'StartTimeout'
  | 'TargetPodDown';

export interface MigrationDecision {
  /** The phase once the step was made. */
  readonly phase: MigrationPhase;
  readonly step?: MigrationStep;
  /** Why it failed. */
  readonly failure?: MigrationFailure;
  /** When it has to be looked at again although nothing happens. */
  readonly wakeAtMs?: number;
}

/** A phase that may take so long, counted from when it began. */
export function within(
  phase: MigrationPhase,
  { migration, nowMs }: MigrationFacts,
  timeoutMs: number,
  late: MigrationFailure,
): MigrationDecision {
  const atMs = (phaseBeganMs(migration, phase) ?? nowMs) + timeoutMs;
  return nowMs >= atMs ? { phase: 'Failed', failure: late } : { phase, wakeAtMs: atMs };
}

/** It has failed, and there is nothing to take back. */
export function failed(...cause: Parameters<typeof failure>): MigrationDecision {
  return { phase: 'Failed', failure: failure(...cause) };
}

/** It has failed once that was said to the agents, none of whom has begun. */
export function withdrawn(cause: MigrationFailure): MigrationDecision {
  return { phase: 'Failed', failure: cause, step: { kind: 'withdraw', failure: cause } };
}
