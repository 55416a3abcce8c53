import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import type { TargetPod } from './facts.ts';
import { failure, type MigrationFailure } from './failure.ts';

/**
 * How long each phase may take. Waiting for slots is not bounded: who waits costs nothing, and can be deleted. The copy
 * itself is bounded by the options of the migration, which its source sees to.
 */

/** KubeVirt's, for a pod that fits nowhere, and for one that does not start. */
const UNSCHEDULABLE_MS = 5 * 60_000;
const PENDING_MS = 15 * 60_000;
/** Annotations by which KubeVirt lets both be changed, in seconds. */
const UNSCHEDULABLE_ANNOTATION = 'kubevirt.io/migrationUnschedulablePodTimeoutSeconds';
const PENDING_ANNOTATION = 'kubevirt.io/migrationPendingPodTimeoutSeconds';
/** For a slot at a node that is full: long, since others have to end before, and each may be large. */
export const SLOT_TIMEOUT_MS = 60 * 60_000;
/** For agents to end what is left of an earlier move, once the pod is up: as long as a source may say nothing. */
export const BUSY_TIMEOUT_MS = 10 * 60_000;
/** For images to be fetched and QEMU to be started at the target. */
export const PREPARATION_TIMEOUT_MS = 5 * 60_000;
/** For the source to compare both sides and to reserve. */
export const START_TIMEOUT_MS = 2 * 60_000;
/** A source that says nothing for so long is asked to stop; it tells of its progress every few seconds. */
export const NEWS_TIMEOUT_MS = 10 * 60_000;

/** For the halves of a pair to find each other, and for what arrives early to be kept. */
export function syncTimeoutMs({ migrations }: KubeVirtConfiguration): number {
  return (migrations?.syncTimeoutSeconds ?? SYNC_TIMEOUT_SECONDS) * 1000;
}

const SYNC_TIMEOUT_SECONDS = 600;
/** For the same, of a guest that has to leave its node. */
export const EVACUATION_PATIENCE_MS = 60_000;
/** For the other side to have its pod up: all that its own deadlines allow for, and then some for the news of it. */
export const TARGET_TIMEOUT_MS = SLOT_TIMEOUT_MS + 30 * 60_000;
/** For the source to begin, as its target sees it: the source gives up before. */
export const SOURCE_START_TIMEOUT_MS = 10 * 60_000;
/** A target that hears nothing of a copy for so long gives up. Its source goes on without a word if only the halves are cut. */
export const SOURCE_NEWS_TIMEOUT_MS = 30 * 60_000;

export interface Deadline {
  readonly atMs: number;
  readonly failure: MigrationFailure;
}

/** When a target pod must have been started, and what it means if it has not. */
export function podDeadline(migration: VirtualMachineInstanceMigration, pod: TargetPod): Deadline {
  const key = `${migration.metadata.namespace}/${pod.name}`;
  const pendingMs = pod.createdMs + secondsOf(migration, PENDING_ANNOTATION, PENDING_MS);
  const unschedulableMs = pod.createdMs + secondsOf(migration, UNSCHEDULABLE_ANNOTATION, UNSCHEDULABLE_MS);
  if (pod.isUnschedulable && unschedulableMs < pendingMs)
    return { atMs: unschedulableMs, failure: failure('TargetPodUnschedulable', key) };
  return { atMs: pendingMs, failure: failure('TargetPodPending', key) };
}

function secondsOf({ metadata }: VirtualMachineInstanceMigration, name: string, defaultMs: number): number {
  const text = metadata.annotations?.[name];
  return text !== undefined && /^\d{1,9}$/.test(text) ? Number(text) * 1000 : defaultMs;
}
