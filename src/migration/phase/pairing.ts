import type { HalfVerdict } from '../../api/kubevirt/migration-halves.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { MigrationPhase } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { EVACUATION_PATIENCE_MS } from './deadlines.ts';
import { type MigrationDecision, within, withdrawn } from './decision.ts';
import type { MigrationFacts } from './facts.ts';
import { failure, type MigrationFailure } from './failure.ts';

/** What the decisions about both halves have in common. */

/** On a guest, while the other half cannot be heard: since when, and why. */
const UNHEARD = 'DecentralizedLiveMigrationFailure';

/** It has failed; where the guest has a state of it, that says so first, and the agents keep their hands off. */
export function closed(state: MigrationState | undefined, cause: MigrationFailure): MigrationDecision {
  return state ? withdrawn(cause) : { phase: 'Failed', failure: cause };
}

/** Why the other half failed, if it did. */
export function peerFailure(side: { readonly verdict?: HalfVerdict } | undefined): MigrationFailure | undefined {
  const verdict = side?.verdict;
  if (verdict?.phase !== 'Failed') return undefined;
  return failure('PeerFailed', verdict.message ?? verdict.reason ?? '');
}

/** Whether a half has not got further than to wait. */
export function isMeanwhile(phase: MigrationPhase): boolean {
  return phase === '' || phase === 'Synchronizing' || phase === 'WaitingForSync' || phase === 'Pending';
}

/**
 * It waits for its other half: for as long as what arrives early is kept, but a guest that has to leave its node is not kept
 * there for that.
 */
export function seeking(phase: 'Synchronizing' | 'WaitingForSync', facts: MigrationFacts): MigrationDecision {
  if (!facts.isEvacuated) return within(phase, facts, facts.syncTimeoutMs, failure('SyncTimeout'));
  return within(phase, facts, EVACUATION_PATIENCE_MS, failure('Superseded', 'its other half was not heard of'));
}

/** What is decided, unless the other half has been out of reach for so long that nobody waits for it any more. */
export function orLost(
  { nowMs, syncTimeoutMs }: MigrationFacts,
  { status }: VirtualMachineInstance,
  state: MigrationState | undefined,
  decision: MigrationDecision,
): MigrationDecision {
  const trouble = status?.conditions?.find(({ type, status: is }) => type === UNHEARD && is === 'True');
  const sinceMs = Date.parse(trouble?.lastTransitionTime ?? '');
  if (!trouble || Number.isNaN(sinceMs) || decision.failure) return decision;
  const atMs = sinceMs + syncTimeoutMs;
  if (nowMs >= atMs) return closed(state, failure('PeerLost', trouble.message));
  return { ...decision, wakeAtMs: Math.min(atMs, decision.wakeAtMs ?? atMs) };
}
