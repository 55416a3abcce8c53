import { progressSummary, type MigrationProgress } from '../../api/kubevirt/migration-progress.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { guestKeyOf } from '../../control/migration/keys.ts';
import { isConditionTrue } from '../../kube/conditions.ts';
import { ownState } from '../../migration/phase/facts.ts';

/** What is seen of a migration while it is watched; pure. */

export interface WatchedMove {
  /** The guest, by namespace and name. */
  readonly machine: string;
  readonly phase: string;
  readonly sourceNode: string | undefined;
  readonly targetNode: string | undefined;
  readonly progress: MigrationProgress | undefined;
  /** How long it will take, for people; empty while there is nothing to say. */
  readonly summary: string;
  /** What was last decided about the copy. */
  readonly decision: string;
  /** What it waits for, or what is wrong with it. */
  readonly trouble: string;
}

/** Conditions that say why it goes no further. */
const TROUBLES = ['migrationTargetPodUnschedulable', 'migrationRejectedByResourceQuota', 'migrationAbortRequested'];

/** The migration as it is, by its own word and its guest's, which is told sooner. */
export function watchedMove(
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance | undefined,
): WatchedMove {
  const { phase = '', conditions, progress: known, migrationState } = migration.status ?? {};
  const state = ownState({ migration, guest }) ?? migrationState;
  const progress = state?.progress ?? known;
  const decision = state?.decisions?.at(-1);
  const trouble = conditions?.find(({ type }) => TROUBLES.includes(type) && isConditionTrue(conditions, type));
  const isWaiting = phase === '' || phase === 'Pending';
  return {
    machine: guestKeyOf(migration),
    phase: phase === '' ? 'New' : phase,
    sourceNode: state?.sourceNode ?? migrationState?.sourceNode,
    targetNode: state?.targetNode ?? migrationState?.targetNode,
    progress,
    summary: progress ? (progress.summary ?? progressSummary(progress)) : '',
    decision: decision ? (decision.message ?? `${decision.decision}: ${decision.reason}`) : '',
    trouble: trouble?.message ?? (isWaiting ? "it waits for its turn ('godwit queue' says for what)" : ''),
  };
}

/** So much of the past is drawn. */
const SAMPLES_MAX = 60;

/** What was heard of a copy's speed over time. Values never change: one more sample is another history. */
export interface SpeedHistory {
  readonly throughput: readonly number[];
  readonly dirtyRate: readonly number[];
  /** When the last sample was taken. */
  readonly time: string;
}

export const NO_HISTORY: SpeedHistory = { throughput: [], dirtyRate: [], time: '' };

/** The history with what is new. */
export function historyAfter(before: SpeedHistory, progress: MigrationProgress | undefined): SpeedHistory {
  if (!progress?.time || progress.time === before.time) return before;
  const { throughputBytesPerSecond = 0, dirtyRateBytesPerSecond = 0, time } = progress;
  return {
    throughput: [...before.throughput, throughputBytesPerSecond].slice(-SAMPLES_MAX),
    dirtyRate: [...before.dirtyRate, dirtyRateBytesPerSecond].slice(-SAMPLES_MAX),
    time,
  };
}
