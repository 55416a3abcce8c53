import type { KubeVirtCondition } from '../../api/kubevirt/condition.ts';
import type { MigrationState } from '../../api/kubevirt/migration-state.ts';
import {
  isFinalMigration,
  type MigrationPhase,
  type VirtualMachineInstanceMigration,
  type VirtualMachineInstanceMigrationStatus,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { migrationRole } from '../../api/kubevirt/validate-migration.ts';
import { formatTime } from '../../api/meta.ts';
import { effectivePriority } from '../slots/order.ts';
import type { AbortReason } from './decision.ts';
import { type MigrationFacts, ownState, sourceNodeOf } from './facts.ts';
import type { MigrationFailure } from './failure.ts';

/** What a migration's status says, given what was decided. */

/** What was decided and learned, besides the facts. */
export interface StatusInput {
  readonly phase: MigrationPhase;
  readonly failure?: MigrationFailure | undefined;
  /** What a quota has against the target pod. */
  readonly quotaRefusal?: string | undefined;
  /** Why no node takes the target pod, node by node. */
  readonly unfitness?: string | undefined;
  /** Why the source's agent was asked to stop, where nobody deleted the migration. */
  readonly abort?: AbortReason | undefined;
  /** The pod that the guest is in. */
  readonly sourcePod?: string | undefined;
}

/** Seconds between two looks at progress are enough for people, and each costs a write. */
const PROGRESS_INTERVAL_MS = 5000;
/** How long a copy goes on before how far it is is worth a write: of one that is over by then, that is. */
const FIRST_PROGRESS_MS = 1000;

/** The fields of the status as they should be; what should be absent is undefined. */
export function statusAfter(facts: MigrationFacts, input: StatusInput): VirtualMachineInstanceMigrationStatus {
  const { migration, causes, nowMs } = facts;
  const { status = {} } = migration;
  const state = ownState(facts);
  const isNewPhase = input.phase !== status.phase;
  const isProgressDue = isNewPhase || hasProgressed(status, state);
  return {
    phase: input.phase,
    phaseTransitionTimestamps: isNewPhase
      ? transitions(migration, input.phase, state, nowMs)
      : status.phaseTransitionTimestamps,
    conditions: conditionsAfter(facts, input),
    causes: [...causes],
    effectivePriority: effectivePriority(migration.spec.priority, causes),
    progress: isProgressDue ? (state?.progress ?? status.progress) : status.progress,
    migrationState: isProgressDue ? stateAfter(facts, input) : status.migrationState,
  };
}

/** The way that a migration goes if all goes well. */
const WAY: readonly MigrationPhase[] = [
  'Pending',
  'Scheduling',
  'Scheduled',
  'PreparingTarget',
  'TargetReady',
  'Running',
  'Succeeded',
];

type Transition = NonNullable<VirtualMachineInstanceMigrationStatus['phaseTransitionTimestamps']>[number];

/** Before all that, halves look for each other. */
const FIRST = { local: [], source: ['Synchronizing'], target: ['WaitingForSync'] } as const;

/** When phases began, each once: also those that were over before anybody looked. */
function transitions(
  { spec, status }: VirtualMachineInstanceMigration,
  phase: MigrationPhase,
  state: MigrationState | undefined,
  nowMs: number,
): Transition[] {
  const { phaseTransitionTimestamps: known = [] } = status ?? {};
  const startedAt = state?.startTimestamp ?? undefined;
  const way: readonly MigrationPhase[] = [...FIRST[migrationRole(spec)], ...WAY];
  const passed: readonly MigrationPhase[] =
    phase === 'Failed' ? (startedAt ? ['Running'] : []) : way.slice(0, way.indexOf(phase));
  const missed = [...passed, phase].filter((wanted) => !known.some((each) => each.phase === wanted));
  const now = formatTime(nowMs);
  const momentOf = (each: MigrationPhase): string => (each === 'Running' && phase !== each ? (startedAt ?? now) : now);
  return [...known, ...missed.map((each) => ({ phase: each, phaseTransitionTimestamp: momentOf(each) }))];
}

function hasProgressed(
  { progress }: VirtualMachineInstanceMigrationStatus,
  state: MigrationState | undefined,
): boolean {
  if (!state?.progress) return false;
  const [sinceMs, intervalMs] = progress
    ? [Date.parse(progress.time ?? ''), PROGRESS_INTERVAL_MS]
    : [Date.parse(state.startTimestamp ?? ''), FIRST_PROGRESS_MS];
  // Where nobody said since when, it is due.
  return !(Date.parse(state.progress.time ?? '') - sinceMs < intervalMs);
}

/** What the guest says of this migration; before it says anything, where the guest is, and why nothing came of it. */
function stateAfter(facts: MigrationFacts, { failure, sourcePod }: StatusInput): MigrationState {
  const { migration, guest, nowMs } = facts;
  const state = toldState(facts);
  const before = migration.status?.migrationState ?? {};
  const { uid = '' } = migration.metadata;
  const sourceNode = sourceNodeOf(guest);
  const isTarget = migrationRole(migration.spec) === 'target';
  const early = isTarget
    ? { ...before, targetState: { ...before.targetState, migrationUID: uid } }
    : {
        ...before,
        migrationUid: uid,
        ...(sourceNode === undefined ? {} : { sourceNode }),
        ...(sourcePod === undefined ? {} : { sourcePod }),
      };
  const known = state ?? early;
  if (!failure) return known;
  const { failureReason = failure.message, endTimestamp = formatTime(nowMs) } = known;
  return { ...known, failed: true, completed: true, failureReason, endTimestamp };
}

/** What the guest says of this migration, but for what its agents have to say to each other alone. */
function toldState(facts: Pick<MigrationFacts, 'migration' | 'guest'>): MigrationState | undefined {
  const state = ownState(facts);
  if (!state) return undefined;
  const { sourceLetter: _fromSource, targetLetter: _fromTarget, ...told } = state;
  return told;
}

function conditionsAfter(facts: MigrationFacts, input: StatusInput): KubeVirtCondition[] | undefined {
  const { migration, nowMs } = facts;
  const wanted = new Map<string, KubeVirtCondition | undefined>([
    [ABORT, abortCondition(facts, input, findCondition(migration, ABORT))],
    [QUOTA, quotaCondition(input, findCondition(migration, QUOTA))],
    [UNFIT, input.unfitness === undefined ? undefined : isTrue(UNFIT, 'NoNodeFits', input.unfitness)],
    [FAILED, input.failure && isTrue(FAILED, input.failure.reason, input.failure.message)],
  ]);
  const others = (migration.status?.conditions ?? []).filter(({ type }) => !wanted.has(type));
  const own = [...wanted].flatMap(([type, condition]): KubeVirtCondition[] => {
    if (!condition) return [];
    const lastTransitionTime = findCondition(migration, type)?.lastTransitionTime ?? formatTime(nowMs);
    return [{ ...condition, lastTransitionTime }];
  });
  return others.length + own.length === 0 ? undefined : [...others, ...own];
}

/** KubeVirt's conditions, and two of our own in its manner. All of them are there only while they are true. */
const ABORT = 'migrationAbortRequested';
const QUOTA = 'migrationRejectedByResourceQuota';
const UNFIT = 'migrationTargetPodUnschedulable';
const FAILED = 'migrationFailed';

const ABORT_MESSAGES: Readonly<Record<AbortReason, string>> = {
  Canceled: 'the migration was deleted: it stops, and the guest stays where it is',
  TargetPodDown: 'the target pod has ended: the source was asked to stop',
  GuestDeleted: 'the guest is to be deleted: it ends where it is',
  NoNews: 'the source has told nothing of the copy for too long: it was asked to stop',
  PeerFailed: 'the other half failed: the agent of this side was asked to stop',
  PreparationTimeout: 'the target node did not prepare the guest in time: it was asked to stop',
  StartTimeout: 'the source node did not begin in time: the target node was asked to stop',
};
/** Why one that was deleted comes to its end all the same. */
const LATE_MESSAGES = {
  PostCopy:
    'the guest runs at the target already, with part of its memory still at the source: the migration goes on to its end',
  GoneOver: 'the guest had been given to the target before the migration was deleted: it stays there',
} as const;

function abortCondition(
  facts: MigrationFacts,
  { phase, abort }: StatusInput,
  old: KubeVirtCondition | undefined,
): KubeVirtCondition | undefined {
  if (facts.migration.metadata.deletionTimestamp === undefined)
    return abort ? isTrue(ABORT, abort, ABORT_MESSAGES[abort]) : old;
  const late = lateness(ownState(facts), phase);
  return late ? isTrue(ABORT, late, LATE_MESSAGES[late]) : isTrue(ABORT, 'Canceled', ABORT_MESSAGES.Canceled);
}

/** What it is too late for to stop; undefined while it can be stopped, or was. */
function lateness(state: MigrationState | undefined, phase: MigrationPhase): keyof typeof LATE_MESSAGES | undefined {
  if (phase !== 'Running' && phase !== 'Succeeded') return undefined;
  if (state?.mode === 'PostCopy') return 'PostCopy';
  // What the target says that it has taken may be on record a moment later.
  const isTaken = state?.completed === true && state.failed !== true;
  return phase === 'Succeeded' || isTaken ? 'GoneOver' : undefined;
}

/** It stays for as long as the migration waits, and goes when there is a pod. */
function quotaCondition(
  { phase, quotaRefusal }: StatusInput,
  old: KubeVirtCondition | undefined,
): KubeVirtCondition | undefined {
  if (quotaRefusal !== undefined) return isTrue(QUOTA, 'ExceededQuota', quotaRefusal);
  return phase === 'Pending' ? old : undefined;
}

function isTrue(type: string, reason: string, message: string): KubeVirtCondition {
  return { type, status: 'True', reason, message };
}

function findCondition({ status }: VirtualMachineInstanceMigration, type: string): KubeVirtCondition | undefined {
  return status?.conditions?.find((condition) => condition.type === type);
}

/** What is left to say of a migration that is over: all that the agents told of it, also what came late. */
export function finalState(facts: Pick<MigrationFacts, 'migration' | 'guest'>): MigrationState | undefined {
  const { status } = facts.migration;
  const state = toldState(facts);
  if (!isFinalMigration(facts.migration) || !state || state.completed !== true) return status?.migrationState;
  return status?.phase === 'Failed' ? { ...status.migrationState, ...state } : state;
}
