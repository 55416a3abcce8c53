import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { DevicePlace } from '../../hypervisor/machine.ts';
import { type Attempt, isSameAttempt } from '../../migration/right-to-run/attempt.ts';
import type { Message } from '../../migration/right-to-run/plan.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { MachineFact } from '../../migration/right-to-run/view.ts';
import type { Copy } from './copy.ts';
import type { CopyFailure } from './copy-options.ts';
import type { SourceFacts } from './migration-report.ts';
import type { Opened, Peer, PeerAnswer, WantedMethod } from './peer.ts';

/** What is known of one migration away from here, besides what the journal says. Lost with the agent. */
export interface Leaving {
  readonly attempt: Attempt;
  peer: Peer | undefined;
  isOpening: boolean;
  openTries: number;
  opened:
    | { readonly opened: Opened; readonly method: WantedMethod; readonly disks: readonly DevicePlace[] }
    | undefined;
  isStarting: boolean;
  /** Whether the protocol has given it up: from then on nobody would end a copy that begins. */
  isCalledOff: boolean;
  copy: Copy | undefined;
  /** What is told of the copy. */
  told: SourceFacts['copy'];
  failure: string | undefined;
  /** When the guest will be gone from here for another reason; undefined for never, and may change. */
  deadlineMs: number | undefined;
  /** Whether it was known to be cancelled. */
  isCancelled: boolean;
  /** Why the copy came to nothing, as it was when it did. */
  cause: string | undefined;
  peerMachine: MachineFact;
  readonly letters: Message[];
  /** Since when the target is asked in vain whether it has the guest. */
  askedSinceMs: number | undefined;
  undelivered: { readonly message: Message; readonly sinceMs: number } | undefined;
}

/** A migration of which nothing is known but where it goes. */
export function newLeaving(attempt: Attempt, peer: Peer | undefined): Leaving {
  return {
    attempt,
    peer,
    isOpening: false,
    openTries: 0,
    opened: undefined,
    isStarting: false,
    isCalledOff: false,
    copy: undefined,
    told: undefined,
    failure: undefined,
    deadlineMs: undefined,
    isCancelled: false,
    cause: undefined,
    peerMachine: 'unknown',
    letters: [],
    askedSinceMs: undefined,
    undelivered: undefined,
  };
}

/** Remembers what its target has answered. */
export function hear(leaving: Leaving, { machine, letters }: PeerAnswer): void {
  leaving.peerMachine = machine;
  for (const letter of letters) {
    const isNew = !leaving.letters.some(({ kind }) => kind === letter.kind);
    if (isNew && isSameAttempt(letter.attempt, leaving.attempt)) leaving.letters.push(letter);
  }
}

/** Why a copy came to nothing that somebody called off. */
export const CANCELLED = 'the migration was cancelled';

/** Why a copy came to nothing. One that ended because it was cancelled may look as if it had failed. */
export function causeOf(failure: CopyFailure | undefined, isCancelled: boolean): string | undefined {
  const isOwn = failure && failure.reason !== 'CopyFailed' && failure.reason !== 'MirrorFailed';
  return isCancelled && !isOwn ? CANCELLED : failure?.message;
}

/** The attempt that a source is in the middle of. */
export function leavingAttempt(standing: Standing): Attempt | undefined {
  if (standing.kind === 'granted') return standing.attempt;
  return standing.kind === 'holding' ? standing.reserved : undefined;
}

/** The options of a guest's migration, as they were frozen. */
export function configurationOf(guest: VirtualMachineInstance | undefined) {
  return guest?.status?.migrationState?.migrationConfiguration ?? {};
}

/** Where the agent of the target is reached, once that was said. */
export function peerOf(
  state: MigrationState | undefined,
  { target, sourceMigrationUID, across }: Attempt,
): Peer | undefined {
  const [port] = Object.keys(state?.targetDirectMigrationNodePorts ?? {});
  const address = state?.targetNodeAddress;
  if (state?.migrationUid !== sourceMigrationUID || address === undefined || port === undefined) return undefined;
  const keys = across ? { keys: state.targetState?.agentKeys ?? [] } : {};
  return { node: target.node, address, port: Number(port), ...keys };
}

/** By which keys the source of an attempt is known, for as long as the guest at the target is in that very migration. */
export function sourceKeysOf(attempt: Attempt, guest: VirtualMachineInstance | undefined): readonly string[] {
  const { migrationUid, sourceState } = guest?.status?.migrationState ?? {};
  return migrationUid === attempt.sourceMigrationUID ? (sourceState?.agentKeys ?? []) : [];
}
