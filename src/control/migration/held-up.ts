import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { backoffUntilMs } from '../../migration/phase/backoff.ts';
import { isMovable, ownState } from '../../migration/phase/facts.ts';
import { isFree } from '../../migration/phase/within-cluster.ts';
import type { LauncherPod } from '../resources.ts';
import { targetPodFacts } from './target-pod.ts';

/** Why a migration could not use a slot now, and so stands in no line for one. */
export type HeldUp =
  /** The cluster's own tries wait a while after a failure. */
  | { readonly kind: 'Backoff'; readonly untilMs: number }
  /** Nobody executes the guest, who could hand it over. */
  | { readonly kind: 'NotMovable' }
  /** Its node is still at an earlier move of the guest, whose migration is gone. */
  | { readonly kind: 'Busy'; readonly node: string }
  | { readonly kind: 'Quota' }
  /** Its target pod fits on no node. */
  | { readonly kind: 'NoNode' };

export interface HeldUpFacts {
  readonly migration: VirtualMachineInstanceMigration;
  readonly guest: VirtualMachineInstance | undefined;
  /** The pod that the guest would move to. */
  readonly pod: LauncherPod | undefined;
  /** Whether it is one of two halves. */
  readonly isHalf: boolean;
  /** All migrations of the guest. */
  readonly others: Iterable<VirtualMachineInstanceMigration>;
  /** Whether a quota is known to leave no room for its pod. */
  readonly isOverQuota: boolean;
  /** When the guest must be gone. */
  readonly deadlineMs: number | undefined;
  readonly nowMs: number;
}

/** What holds a migration up; undefined where it could go at once if it had its slots. */
export function heldUp(facts: HeldUpFacts): HeldUp | undefined {
  const { migration, guest, pod, isHalf, others, isOverQuota, deadlineMs, nowMs } = facts;
  // One that fits nowhere may do so for long: meanwhile others may go, and it gets its slots again when it has a node.
  if (pod && targetPodFacts(pod).isUnschedulable) return { kind: 'NoNode' };
  // It could not be handed off: it would keep slots for nothing that it has for good.
  const busy = busyNode(migration, guest);
  if (busy !== undefined) return { kind: 'Busy', node: busy };
  if (pod) return undefined;
  const untilMs = backoffUntilMs(migration, others, deadlineMs);
  if (untilMs !== undefined && untilMs > nowMs) return { kind: 'Backoff', untilMs };
  if (!guest || (!isMovable(guest) && !isHalf)) return { kind: 'NotMovable' };
  return isOverQuota ? { kind: 'Quota' } : undefined;
}

/** The node that is at something else with the guest. */
function busyNode(
  migration: VirtualMachineInstanceMigration,
  guest: VirtualMachineInstance | undefined,
): string | undefined {
  if (!guest || !isMovable(guest) || isFree(guest) || ownState({ migration, guest })) return undefined;
  return guest.status?.rightToRun?.holder?.node;
}
