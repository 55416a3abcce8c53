import { causesOf } from '../../api/kubevirt/evacuation.ts';
import type { EvacuationCause } from '../../api/kubevirt/evacuation-cause.ts';
import { evictionOutcomeOf, evictionStrategyOf } from '../../api/kubevirt/eviction-strategy.ts';
import { isFeatureGateEnabled } from '../../api/kubevirt/feature-gates.ts';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { Node } from '../fit/objects.ts';
import {
  deletionOf,
  DISRUPTION_GATES,
  type DisruptedPod,
  type DisruptionCause,
  disruptionOf,
  isHurried,
} from './disruption.ts';

/**
 * What becomes of the guest of a launcher pod that is being deleted: it is stopped, as its owner wants, or held, since the pod
 * was preempted or tainted away and the guest may be saved. The controller that marks guests and the agents that hold them
 * ask the same question, and both from the API alone: whoever is killed comes to the same answer afterwards.
 *
 *   deleted            hold ends            shut down          the pod's end
 *      ├── the guest runs, and may move ──┼── guest's grace ──┼── cleanup ──┤
 */

export interface DispositionGround {
  /** The pod that executes the guest. */
  readonly pod: DisruptedPod;
  readonly guest: VirtualMachineInstance;
  readonly configuration: KubeVirtConfiguration;
  /** The pod's; undefined where nobody knows. */
  readonly node: Node | undefined;
}

export interface Hold {
  readonly cause: DisruptionCause;
  /** Until when the guest is not shut down: it must have moved by then. */
  readonly untilMs: number;
  /** When it must be gone, whatever became of it. */
  readonly deadlineMs: number;
  /** Who is to move it: we, or somebody else. */
  readonly mover: 'Us' | 'External';
}

export type Disposition = 'stop' | Hold;

/** KubeVirt's default. */
const GRACE_PERIOD_SECONDS = 30;
/** What a launcher has left to clean up once its guest's own time is over; less where its own time is short. */
export const CLEANUP_SECONDS = 15;
const CLEANUP_SHARE = 0.1;
const HOLD_SECONDS = 300;
const CRITICAL_HOLD_SECONDS = 60;

/** A move that has begun when the hold ends, and is over all but a moment later, is not broken off. */
export const LAST_MOMENT_MS = 5000;

/** For how long a guest may take to shut down; one that is gone says nothing else. */
export function guestGraceMs(guest: Pick<VirtualMachineInstance, 'spec'> | undefined): number {
  return (guest?.spec.terminationGracePeriodSeconds ?? GRACE_PERIOD_SECONDS) * 1000;
}

/** For how long a launcher may hold its guest. */
export function holdSecondsOf(configuration: KubeVirtConfiguration): number {
  return configuration.migrations?.disruptionHoldSeconds ?? HOLD_SECONDS;
}

/** How much longer than others the launcher of a guest may take to end, so that it can be held; 0 where it never is. */
export function holdReserveSeconds(
  guest: Pick<VirtualMachineInstance, 'spec'>,
  configuration: KubeVirtConfiguration,
): number {
  const isOn = Object.values(DISRUPTION_GATES).some((gate) => isFeatureGateEnabled(gate, configuration));
  return isOn && evictionStrategyOf(guest, configuration) !== 'None' ? holdSecondsOf(configuration) : 0;
}

/** What becomes of the guest of a pod that is being deleted; a pod that is not has nothing to ask. */
export function dispositionOf(ground: DispositionGround): Disposition {
  const { pod, guest, configuration } = ground;
  const deletion = deletionOf(pod);
  if (!deletion || guest.metadata.deletionTimestamp !== undefined || isHurried(pod)) return 'stop';
  const marked = markedCause(pod, guest);
  const cause = marked?.kind ?? newCause(ground);
  const mover = moverOf(pod, guest, configuration);
  if (!cause || !mover) return 'stop';
  const { askedMs, endMs } = deletion;
  const totalMs = endMs - askedMs;
  const cleanupMs = cleanupMsOf(totalMs);
  const graceMs = guestGraceMs(guest);
  // A pod that was made with too little time for it still has half of that.
  const possibleMs = Math.max(totalMs - graceMs, totalMs / 2) - cleanupMs;
  const deadlineMs = Math.min(endMs, marked?.deadlineMs ?? endMs);
  const boundMs = deadlineMs < endMs ? deadlineMs - askedMs - graceMs - cleanupMs : Number.POSITIVE_INFINITY;
  const holdMs = Math.min(holdSecondsOf(configuration) * 1000, possibleMs, boundMs);
  return { cause, untilMs: askedMs + Math.max(0, holdMs), deadlineMs, mover };
}

/**
 * When a guest must be gone whose pod is being deleted. Pods of the most critical classes wait for its room no longer than
 * they have to.
 */
export function disruptionDeadlineMs({ pod, guest, configuration }: DispositionGround, isCritical: boolean): number {
  const { askedMs, endMs } = deletionOf(pod) ?? { askedMs: 0, endMs: 0 };
  if (!isCritical) return endMs;
  const holdMs = (configuration.migrations?.criticalPreemptionHoldSeconds ?? CRITICAL_HOLD_SECONDS) * 1000;
  return Math.min(endMs, askedMs + holdMs + guestGraceMs(guest) + cleanupMsOf(endMs - askedMs));
}

function cleanupMsOf(totalMs: number): number {
  return Math.min(CLEANUP_SECONDS * 1000, totalMs * CLEANUP_SHARE);
}

/** What was once recognized stays so, whatever becomes of taints, conditions and features. */
function markedCause(
  { metadata }: DisruptedPod,
  guest: VirtualMachineInstance,
): { readonly kind: DisruptionCause; readonly deadlineMs: number | undefined } | undefined {
  for (const { cause, podUID, deadline } of causesOf(guest)) {
    if (podUID === undefined || podUID !== metadata.uid || !isDisruption(cause)) continue;
    const deadlineMs = Date.parse(deadline ?? '');
    return { kind: cause, deadlineMs: Number.isNaN(deadlineMs) ? undefined : deadlineMs };
  }
  return undefined;
}

function isDisruption(cause: EvacuationCause['cause']): cause is DisruptionCause {
  return Object.hasOwn(DISRUPTION_GATES, cause);
}

function newCause({ pod, node, configuration }: DispositionGround): DisruptionCause | undefined {
  const cause = disruptionOf(pod, node);
  return cause && isFeatureGateEnabled(DISRUPTION_GATES[cause], configuration) ? cause : undefined;
}

function moverOf(
  pod: DisruptedPod,
  guest: VirtualMachineInstance,
  configuration: KubeVirtConfiguration,
): Hold['mover'] | undefined {
  const outcome = evictionOutcomeOf(guest, configuration);
  if (outcome === 'External') return 'External';
  if (outcome === 'Migrate') return 'Us';
  return evictionStrategyOf(guest, configuration) !== 'None' && isOnItsWay(pod, guest) ? 'Us' : undefined;
}

/** Whether the guest is being copied from this pod: that it could not begin now is of no matter then. */
function isOnItsWay({ metadata }: DisruptedPod, { status }: VirtualMachineInstance): boolean {
  const { sourcePod, startTimestamp, completed } = status?.migrationState ?? {};
  return startTimestamp !== undefined && completed !== true && sourcePod === metadata.name;
}
