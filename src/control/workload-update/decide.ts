import { isMarked } from '../../api/kubevirt/evacuation.ts';
import { isMigratable } from '../../api/kubevirt/eviction-strategy.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { WORKLOAD_UPDATE_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { isMovable, ownState } from '../../migration/phase/facts.ts';
import type { UpdateNeed } from './update-need.ts';
import type { UpdateStrategy } from './update-strategy.ts';

/**
 * Which guests get another launcher next. They move, where they can and may; those that cannot are evicted, a few at a
 * time, where that is allowed. A change that was taken back takes its migration along.
 */

/** A guest that needs an update, or has a migration that was made for one. */
export interface Workload {
  readonly guest: VirtualMachineInstance;
  readonly need: UpdateNeed | undefined;
  /** Whether it is in a pod that was made for all of that, and only its status is yet to say so. */
  readonly isServed: boolean;
  /** All migrations of the guest. */
  readonly migrations: readonly VirtualMachineInstanceMigration[];
  /** Whether the pod that it is in is about to end. */
  readonly isPodEnding: boolean;
}

export interface UpdateFacts {
  readonly workloads: readonly Workload[];
  readonly strategy: UpdateStrategy;
  /** How many migrations the cluster carries out at once. */
  readonly migrationsMax: number;
  /** Migrations of anybody that are under way, and those of ours that are not over. */
  readonly migrationsUnderWay: number;
  /** When guests were last evicted; undefined where they never were. */
  readonly evictedMs: number | undefined;
  readonly nowMs: number;
}

export interface UpdatePlan {
  readonly moved: readonly Workload[];
  readonly evicted: readonly Workload[];
  /** Migrations of ours that are for nothing any more. */
  readonly canceled: readonly { readonly guest: VirtualMachineInstance; readonly migration: Migration }[];
  /** When more can be evicted. */
  readonly wakeAtMs: number | undefined;
}

type Migration = VirtualMachineInstanceMigration;

/** What to do now. */
export function decide(facts: UpdateFacts): UpdatePlan {
  const { workloads, strategy, migrationsMax, migrationsUnderWay, evictedMs, nowMs } = facts;
  const idle = workloads.filter(isIdle);
  const movable = strategy.isMovingAllowed ? idle.filter(({ guest }) => isMigratable(guest)) : [];
  const free = Math.max(0, migrationsMax - migrationsUnderWay);
  const doomed = strategy.isEvictingAllowed ? idle.filter((each) => isEvictable(each, strategy)) : [];
  const nextBatchMs = evictedMs === undefined ? nowMs : evictedMs + strategy.batchIntervalMs;
  const isBatchDue = nowMs >= nextBatchMs;
  const evicted = isBatchDue ? inOrder(doomed).slice(0, strategy.evictionsPerBatch) : [];
  return {
    moved: inOrder(movable).slice(0, free),
    evicted,
    canceled: workloads.flatMap((workload) => {
      const { guest, migrations } = workload;
      return migrations.filter((each) => isForNothing(each, workload)).map((migration) => ({ guest, migration }));
    }),
    wakeAtMs:
      doomed.length > evicted.length ? (isBatchDue ? nowMs + strategy.batchIntervalMs : nextBatchMs) : undefined,
  };
}

/** Whether a migration was made by the updater. Anybody can write annotations; causes are our own components' alone. */
export function isUpdate({ metadata, spec }: Migration): boolean {
  return Object.hasOwn(metadata.annotations ?? {}, WORKLOAD_UPDATE_ANNOTATION) && spec.cause === 'WorkloadUpdate';
}

/** Whether nobody moves the guest already, nor is about to: that move serves this, too. */
function isIdle({ guest, need, isServed, migrations, isPodEnding }: Workload): boolean {
  if (!need || isServed || isPodEnding || !isMovable(guest) || guest.status?.rightToRun?.successor) return false;
  const isAsked = migrations.some((each) => !isFinalMigration(each));
  return !isAsked && !isMarked(guest);
}

/** Changes wait until the guest can move: nobody asked for it to stop. */
function isEvictable({ guest, need }: Workload, { isMovingAllowed }: UpdateStrategy): boolean {
  return need?.isOutdated === true && !(isMovingAllowed && isMigratable(guest));
}

/** Whoever was not tried for longest goes first, so that those that fail are in nobody's way; then those whom somebody waits for. */
function inOrder(workloads: readonly Workload[]): readonly Workload[] {
  const ranked = workloads.map((workload) => ({ workload, triedMs: lastTriedMs(workload) }));
  const changes = ({ workload }: { readonly workload: Workload }): number => (workload.need?.changes.length ? 0 : 1);
  return ranked
    .toSorted((a, b) => a.triedMs - b.triedMs || changes(a) - changes(b) || compareKeys(a.workload, b.workload))
    .map(({ workload }) => workload);
}

function lastTriedMs({ migrations }: Workload): number {
  const tries = migrations.filter(isUpdate).map(({ metadata }) => Date.parse(metadata.creationTimestamp ?? ''));
  return Math.max(0, ...tries.filter((ms) => !Number.isNaN(ms)));
}

function compareKeys({ guest: a }: Workload, { guest: b }: Workload): number {
  const [keyA, keyB] = [a, b].map(({ metadata }) => `${metadata.namespace ?? ''}/${metadata.name ?? ''}`);
  return (keyA ?? '') < (keyB ?? '') ? -1 : 1;
}

/** A guest that is about to run at its target may as well do so. */
function isForNothing(migration: Migration, { guest, need }: Workload): boolean {
  if (need || isMarked(guest) || !isUpdate(migration) || isFinalMigration(migration)) return false;
  if (migration.metadata.deletionTimestamp !== undefined) return false;
  return !ownState({ migration, guest })?.targetNodeDomainReadyTimestamp;
}
