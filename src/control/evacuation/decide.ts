import { causesOf, isMarked, type Mark, withCause, withoutCauses } from '../../api/kubevirt/evacuation.ts';
import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import { evictionOutcomeOf } from '../../api/kubevirt/eviction-strategy.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { MigrationCause } from '../../api/kubevirt/migration-cause.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import {
  isFinalMigration,
  type VirtualMachineInstanceMigration,
} from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { EVACUATION_ANNOTATION } from '../../api/kubevirt/well-known.ts';
import { formatTime } from '../../api/meta.ts';
import { type Disposition, dispositionOf } from '../../migration/disruption/disposition.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { hasDrainTaint } from '../../migration/eviction/drain-taint.ts';
import { isHandedOff, sourceNodeOf } from '../../migration/phase/facts.ts';
import type { LauncherPod } from '../resources.ts';
import { isFinal } from '../vmi/phase.ts';

/**
 * What becomes of a guest that has to leave its node: the mark that says so for as long as its causes last, and the
 * migration that it leaves by. A guest whose owner has somebody else see to that is marked, and left alone.
 */

export interface EvacuationFacts {
  readonly guest: VirtualMachineInstance;
  /** The node that the guest is on; where it is not known nothing is concluded from it. */
  readonly node: Node | undefined;
  readonly configuration: KubeVirtConfiguration;
  /** All migrations of the guest, also those that are over. */
  readonly migrations: readonly VirtualMachineInstanceMigration[];
  /** All launcher pods of the guest. */
  readonly pods: readonly LauncherPod[];
  readonly nowMs: number;
}

/** Whether there is anything to be done for a guest, ever: one that is over or about to be deleted goes anyway. */
export function isLeavable(guest: VirtualMachineInstance): boolean {
  return !isFinal(guest) && guest.metadata.deletionTimestamp === undefined;
}

/** The mark as it should be. */
export function markAfter(facts: EvacuationFacts): Mark {
  const { guest, node, configuration, nowMs } = facts;
  const outcome = evictionOutcomeOf(guest, configuration);
  // Whom nobody keeps from being evicted is not moved either: it may not be possible any more. One that is held all the same
  // is on its way, and whoever holds it goes by its mark.
  const isLeft = !isWhereMarked(guest) || (outcome === 'Evict' && !isHeld(facts));
  const kept = isLeft ? withoutCauses(guest, () => true) : lastingMark(facts);
  const isMovedByTaint = outcome === 'Migrate' || outcome === 'External';
  if (!isMovedByTaint || !node || !hasDrainTaint(node, configuration) || !isOnItsNode(guest)) return kept;
  const left = { ...guest, status: { ...guest.status, ...kept } } as VirtualMachineInstance;
  if (causesOf(left).some(({ cause }) => cause === 'DrainTaint')) return kept;
  return withCause(left, { cause: 'DrainTaint', since: formatTime(nowMs) });
}

/** Whether the guest is still on the node that it is marked for: its status may not say yet that it has left. */
function isWhereMarked(guest: VirtualMachineInstance): boolean {
  return isMarked(guest) && isOnItsNode(guest);
}

function isOnItsNode(guest: VirtualMachineInstance): boolean {
  return Boolean(guest.status?.nodeName) && sourceNodeOf(guest) === guest.status?.nodeName;
}

/** The mark without causes that are over. One that came without any, as KubeVirt's own do, stays until the guest has left. */
function lastingMark(facts: EvacuationFacts): Mark {
  const { guest } = facts;
  const { evacuationNodeName, evacuationCauses } = guest.status ?? {};
  if (causesOf(guest).length === 0) return { evacuationNodeName, evacuationCauses };
  return withoutCauses(guest, (cause) => isOver(cause, facts));
}

/** What cannot be undone is not withdrawn either: a pod that is being deleted ends, and its guest with it if it stays. */
function isOver({ cause, untilUncordon, podUID }: EvacuationCause, facts: EvacuationFacts): boolean {
  const { guest, node, configuration, pods } = facts;
  const holder = guest.status?.rightToRun?.holder?.podUID;
  if (podUID && holder !== undefined && podUID !== holder) return true;
  const isTerminating = pods.some(({ metadata }) => metadata.uid === holder && metadata.deletionTimestamp);
  if (isTerminating || !node) return false;
  if (cause === 'DrainTaint') return !hasDrainTaint(node, configuration);
  return untilUncordon === true && node.spec?.unschedulable !== true;
}

/** What has to be done about migrations, given the mark as it is. */
export interface MoveDecision {
  /** Whether the guest needs a migration that it has not. */
  readonly isNeeded: boolean;
  /** Migrations that were made to empty a node, and are for nothing. */
  readonly canceled: readonly VirtualMachineInstanceMigration[];
  /** Why a guest that has to leave cannot. */
  readonly obstacle?: string;
}

/** Decides on migrations. One that is not over serves this cause, too, whoever wanted it. */
export function decideMove(facts: EvacuationFacts): MoveDecision {
  const { guest, node, configuration, migrations, pods } = facts;
  const outcome = evictionOutcomeOf(guest, configuration);
  const isDue = isWhereMarked(guest);
  const unfinished = migrations.filter((each) => !isFinalMigration(each));
  const isTainted = node !== undefined && isOnItsNode(guest) && hasDrainTaint(node, configuration);
  return {
    isNeeded:
      isDue && outcome === 'Migrate' && unfinished.length === 0 && !hasOtherPods(guest, pods) && !isShutDown(facts),
    canceled: isDue && outcome !== 'External' ? [] : unfinished.filter((each) => isIdle(each, guest)),
    ...((isDue || isTainted) && outcome === 'Refuse' ? { obstacle: notMigratable(guest) } : {}),
  };
}

/** Whether the guest's pod is being deleted, and nobody waits for the guest to move: then it is shut down. */
function isShutDown(facts: EvacuationFacts): boolean {
  const disposition = endingOf(facts);
  return disposition !== undefined && (disposition === 'stop' || disposition.untilMs <= facts.nowMs);
}

/** Whether the guest's pod is being deleted, and waits for the guest to move. */
function isHeld(facts: EvacuationFacts): boolean {
  const disposition = endingOf(facts);
  return disposition !== undefined && disposition !== 'stop';
}

/** What becomes of the guest with its pod; undefined where that is not being deleted. */
function endingOf({ guest, pods, node, configuration }: EvacuationFacts): Disposition | undefined {
  const holder = guest.status?.rightToRun?.holder?.podUID;
  const pod = pods.find(({ metadata }) => metadata.uid === holder && metadata.deletionTimestamp !== undefined);
  return pod && dispositionOf({ pod, guest, configuration, node });
}

/** Pods that are not about to end, besides the one that the guest is in: of a move that nobody has tidied up after yet. */
function hasOtherPods({ status }: VirtualMachineInstance, pods: readonly LauncherPod[]): boolean {
  const isAlive = (pod: LauncherPod): boolean =>
    pod.metadata.deletionTimestamp === undefined && !['Succeeded', 'Failed'].includes(pod.status?.phase ?? '');
  const holder = status?.rightToRun?.holder?.podUID;
  return pods.filter((pod) => isAlive(pod) || pod.metadata.uid === holder).length > 1;
}

/** Whether a migration was made to empty a node, and can be taken back without anybody noticing. */
function isIdle(migration: VirtualMachineInstanceMigration, guest: VirtualMachineInstance): boolean {
  const isAlive = migration.metadata.deletionTimestamp === undefined;
  return isAlive && isEvacuation(migration) && !isHandedOff({ migration, guest });
}

const EVACUATION_CAUSES: ReadonlySet<MigrationCause> = new Set<MigrationCause>([
  'APIEviction',
  'Preemption',
  'NoExecuteTaint',
  'DrainTaint',
  'Descheduler',
]);

/** Whether a migration was made to empty a node. Anybody can write annotations; causes are our own components' alone. */
export function isEvacuation({ metadata, spec }: VirtualMachineInstanceMigration): boolean {
  const isNoted = Object.hasOwn(metadata.annotations ?? {}, EVACUATION_ANNOTATION);
  return isNoted && spec.cause !== undefined && EVACUATION_CAUSES.has(spec.cause);
}

/** Why a guest cannot be live-migrated, in the words of whoever found that out. */
export function notMigratable({ status }: VirtualMachineInstance): string {
  const condition = status?.conditions?.find(({ type }) => type === 'LiveMigratable');
  if (!condition) return 'it is not known yet whether it can be live-migrated';
  const words = [condition.reason, condition.message].filter(Boolean).join(': ');
  return words === '' ? 'it cannot be live-migrated' : words;
}
