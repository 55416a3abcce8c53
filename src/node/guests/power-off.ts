import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { MachineStatus } from '../../hypervisor/hypervisor.ts';
import type { LauncherPod } from './launcher-pod.ts';

/**
 * How a guest is ended whose owner wants it gone: its power button is pressed, and pressed again, since a guest that is
 * still booting hears nothing; when its time is over, the machine is ended whatever the guest does. All times are those
 * that the API tells, so that an agent which is started anew gives nobody more time.
 */

/** KubeVirt's default. */
const GRACE_PERIOD_SECONDS = 30;
const PRESS_EVERY_MS = 5000;

/** - `press`: press the button, and look again after a while; `wait`: just look again; `quit`: end the machine now. */
export type PowerOff =
  | { readonly kind: 'press' | 'wait'; readonly lookAgainAfterMs: number }
  | { readonly kind: 'quit' };

/** When the guest's time is over; undefined while nobody wants it gone. A pod that is gone leaves no time. */
export function deadlineMs(
  guest: VirtualMachineInstance | undefined,
  pod: LauncherPod | undefined,
  nowMs: number,
  /** Since when the node is being left by all its guests. */
  leavingMs?: number,
): number | undefined {
  const graceMs = (guest?.spec.terminationGracePeriodSeconds ?? GRACE_PERIOD_SECONDS) * 1000;
  const deadlines: number[] = [];
  if (!pod) deadlines.push(nowMs);
  if (leavingMs !== undefined) deadlines.push(leavingMs + graceMs);
  const { deletionTimestamp: ofPod, deletionGracePeriodSeconds: podSeconds = 0 } = pod?.metadata ?? {};
  if (ofPod !== undefined) {
    // A pod says when its time is over, not when it was deleted. Part of that time is for cleaning up.
    const podGraceMs = podSeconds * 1000;
    deadlines.push(Date.parse(ofPod) - podGraceMs + Math.min(podGraceMs, graceMs));
  }
  const ofGuest = guest?.metadata.deletionTimestamp;
  if (ofGuest !== undefined) deadlines.push(Date.parse(ofGuest) + graceMs);
  return deadlines.length === 0 ? undefined : Math.min(...deadlines);
}

/** What to do about a machine that is to end. */
export function powerOff(options: {
  readonly deadlineMs: number;
  readonly nowMs: number;
  readonly status: MachineStatus;
  /** When the button was last pressed, by this agent. */
  readonly pressedMs: number | undefined;
}): PowerOff {
  const { nowMs, status, pressedMs } = options;
  const leftMs = options.deadlineMs - nowMs;
  // A guest that stands still hears no button, and whoever holds it has not asked for it to go on.
  if (leftMs <= 0 || status !== 'running') return { kind: 'quit' };
  const sinceMs = pressedMs === undefined ? PRESS_EVERY_MS : nowMs - pressedMs;
  if (sinceMs >= PRESS_EVERY_MS) return { kind: 'press', lookAgainAfterMs: Math.min(leftMs, PRESS_EVERY_MS) };
  return { kind: 'wait', lookAgainAfterMs: Math.min(leftMs, PRESS_EVERY_MS - sinceMs) };
}
