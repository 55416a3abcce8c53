import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { MachineStatus } from '../../hypervisor/hypervisor.ts';
import { guestGraceMs, type Hold, LAST_MOMENT_MS } from '../../migration/disruption/disposition.ts';
import { deletionOf, disruptionOf } from '../../migration/disruption/disruption.ts';
import type { LauncherPod } from './launcher-pod.ts';

/**
 * How a guest is ended whose owner wants it gone: its power button is pressed, and pressed again, since a guest that is
 * still booting hears nothing; when its time is over, the machine is ended whatever the guest does. All times are those
 * that the API tells, so that an agent which is started anew gives nobody more time: neither to guests that are to end, nor
 * to those that are held because they may be saved.
 */

const PRESS_EVERY_MS = 5000;

/** - `press`: press the button, and look again after a while; `wait`: just look again; `quit`: end the machine now. */
export type PowerOff =
  | { readonly kind: 'press' | 'wait'; readonly lookAgainAfterMs: number }
  | { readonly kind: 'quit' };

/** From when on a guest is shut down, and by when it must be. */
export interface ShutdownTimes {
  readonly fromMs: number;
  readonly byMs: number;
}

export interface ShutdownGround {
  /** Undefined where it is gone. */
  readonly guest: VirtualMachineInstance | undefined;
  /** Undefined where it is gone. */
  readonly pod: LauncherPod | undefined;
  /** For how long the pod holds its guest, where it does. */
  readonly hold?: Hold | undefined;
  /** Since when the node is being left by all its guests. */
  readonly leavingMs?: number | undefined;
  /** Since when its kubelet ends the pod by itself: for how long that takes it does not say. */
  readonly endingMs?: number | undefined;
  /** When the guest was first asked to shut down, by this agent. */
  readonly askedMs?: number | undefined;
}

/** When a guest is to be shut down; undefined while nobody wants it gone. A pod that is gone leaves no time. */
export function shutdownTimes(ground: ShutdownGround, nowMs: number): ShutdownTimes | undefined {
  const { guest, pod, leavingMs, endingMs } = ground;
  const graceMs = guestGraceMs(guest);
  const times: ShutdownTimes[] = [];
  if (!pod) times.push({ fromMs: nowMs, byMs: nowMs });
  for (const sinceMs of [leavingMs, endingMs])
    if (sinceMs !== undefined) times.push({ fromMs: sinceMs, byMs: sinceMs + graceMs });
  const ofPod = pod && podTimes(pod, graceMs, ground, nowMs);
  if (ofPod) times.push(ofPod);
  const ofGuest = guest?.metadata.deletionTimestamp;
  if (ofGuest !== undefined) {
    const fromMs = Date.parse(ofGuest);
    times.push({ fromMs, byMs: fromMs + graceMs });
  }
  if (times.length === 0) return undefined;
  return {
    fromMs: Math.min(...times.map(({ fromMs }) => fromMs)),
    byMs: Math.min(...times.map(({ byMs }) => byMs)),
  };
}

function podTimes(
  pod: LauncherPod,
  graceMs: number,
  { hold, askedMs }: ShutdownGround,
  nowMs: number,
): ShutdownTimes | undefined {
  const deletion = deletionOf(pod);
  if (!deletion) return undefined;
  const { askedMs: deletedMs, endMs } = deletion;
  if (hold) return { fromMs: hold.untilMs, byMs: Math.min(endMs, hold.untilMs + LAST_MOMENT_MS + graceMs) };
  // A guest that was held until something changed hears only now that it is to go, and nothing says when that was.
  if (disruptionOf(pod, undefined)) return { fromMs: deletedMs, byMs: Math.min(endMs, (askedMs ?? nowMs) + graceMs) };
  // Part of the pod's time is for cleaning up.
  return { fromMs: deletedMs, byMs: deletedMs + Math.min(endMs - deletedMs, graceMs) };
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
