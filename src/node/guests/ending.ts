import type { EventReason } from '../../api/event-reasons.ts';
import { isAcross, sidesOf } from '../../api/kubevirt/migration-sides.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { formatTime } from '../../api/meta.ts';
import type { Clock, Logger } from '../../env/ports.ts';
import type { Machine, MachineStatus } from '../../hypervisor/hypervisor.ts';
import type { Result } from '../../kube/controller.ts';
import type { EventRecorder } from '../../kube/event-recorder.ts';
import { LAST_MOMENT_MS } from '../../migration/disruption/disposition.ts';
import type { Standing } from '../../migration/right-to-run/standing.ts';
import type { LauncherPod } from './launcher-pod.ts';
import type { Machines } from './machines.ts';
import { powerOff, shutdownTimes } from './power-off.ts';
import type { Scene } from './scene.ts';

export interface EndingOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly recorder: Pick<EventRecorder, 'event'>;
  readonly machines: Machines;
}

/** A machine that does not answer may answer whoever asks next: so it is looked at again. */
const AGAIN: Result = { requeueAfterMs: 2000 };

/** How soon it is looked again whether a move that is not to go on has ended. */
const SOON: Result = { requeueAfterMs: 250 };

const TOO_LATE = 'The guest has not moved by the time it had for it, and is shut down';
const BY_KUBELET =
  'The kubelet ends the launcher pod by itself, as it does before its node shuts down or when that is short of something: the guest is shut down';

/** For so long a guest waits for memory whose source has ended. */
const STARVED_MS = 15_000;

/**
 * For so long a machine is called that does not answer, before it is ended by force: one that was not reached once may answer the next
 * time. While its guest moves, what it holds may be all that there is of it, and its main loop stands still for longer.
 */
const MUTE_MS = 15_000;
const MUTE_MOVING_MS = 60_000;

/** Ends the machines of guests whose owners want them gone, and of those that can go on no more. */
export class Ending {
  readonly #options: EndingOptions;
  /** When guests were first asked to shut down, and when their power buttons were last pressed. */
  readonly #asked = new Map<string, { readonly firstMs: number; readonly lastMs: number }>();
  /** Pods of whose guests it was said that they are held. */
  readonly #held = new Set<string>();
  /** Since when guests wait for memory that nobody has any more. */
  readonly #starvedMs = new Map<string, number>();
  /** Since when machines do not answer. */
  readonly #muteMs = new Map<string, number>();
  #leavingMs: number | undefined;

  constructor(options: EndingOptions) {
    this.#options = options;
  }

  /** From now on every guest is to end, within its grace period. */
  leave(): void {
    this.#leavingMs ??= this.#options.clock.now();
  }

  /** Does what is due, and answers when to come again. */
  async bring(scene: Scene, standing: Standing): Promise<Result> {
    const { podUID, pod, guest, endingMs } = scene;
    // What has not arrived yet is not lost: it stays where it came from.
    const hold = standing.kind === 'holding' ? scene.hold : undefined;
    const { clock, log, machines } = this.#options;
    const isMoving = standing.kind === 'receiving' || (standing.kind === 'holding' && standing.reserved !== undefined);
    const source = standing.kind === 'holding' && pod && guest ? sourceOf(pod, guest) : undefined;
    const mayMigrate = isMoving || standing.kind === 'granted' || source !== undefined;
    const { fact, status, migration } = await machines.look(podUID, mayMigrate);
    const machine = machines.get(podUID);
    if (machine && status === undefined) this.#muteMs.set(podUID, this.#muteMs.get(podUID) ?? clock.now());
    else this.#muteMs.delete(podUID);
    if (status === 'shut-down') return {};
    if (machine && guest && source && migration === 'postcopy-paused' && !source.isThere)
      return this.#endStarved(podUID, guest, machine);
    this.#starvedMs.delete(podUID);
    if (!machine) return fact === 'unknown' ? AGAIN : {};
    if (!guest) {
      // It was let go of though nobody here said that it ended: its right was seized, or somebody did so by force. Another
      // of its kind may start anywhere by now, and every moment counts.
      log.warn('a guest is gone from the API, and its machine is ended', { pod: podUID });
      await machine.kill();
      return {};
    }
    // Part of the guest, or all of it, is somewhere else: that is settled first, and who has it then ends it.
    if (standing.kind === 'granted' || (isMoving && (fact === 'postmigrate' || fact === 'postcopy'))) return {};
    const nowMs = clock.now();
    // A pod that is gone says something only where the guest's record names it: else the API's data may be of another time.
    const isMissing = !pod && guest.status?.rightToRun?.holder?.podUID !== podUID;
    const askedMs = this.#asked.get(podUID)?.firstMs;
    const times = isMissing
      ? undefined
      : shutdownTimes({ guest, pod, hold, leavingMs: this.#leavingMs, endingMs, askedMs }, nowMs);
    if (times === undefined || nowMs < times.fromMs) {
      if (status !== 'failed') return times ? this.#hold(podUID, guest, times.fromMs) : {};
      await machine.quit();
      return {};
    }
    const { byMs } = times;
    // A move that is under way is ended first: its guest may stand still, and hears nothing then.
    const isOnItsWay = standing.kind === 'holding' && standing.reserved !== undefined && nowMs < byMs;
    const isLastMoment = hold !== undefined && nowMs < hold.untilMs + LAST_MOMENT_MS;
    if (isOnItsWay && (isLastMoment || (status !== undefined && status !== 'running'))) return SOON;
    if (hold && nowMs >= hold.untilMs) this.#tellOnce(podUID, guest, 'MoveTooLate', TOO_LATE);
    if (endingMs !== undefined) this.#tellOnce(podUID, guest, 'EndedByKubelet', BY_KUBELET);
    if (status !== undefined) return this.#powerOff(podUID, guest, machine, byMs, status);
    // A machine that answers no more cannot be asked to end.
    const calledUntilMs = (this.#muteMs.get(podUID) ?? nowMs) + (isMoving ? MUTE_MOVING_MS : MUTE_MS);
    if (Math.max(byMs, calledUntilMs) <= nowMs) await machine.kill();
    return AGAIN;
  }

  /** Leaves a guest alone that may yet be saved. */
  #hold(podUID: string, guest: VirtualMachineInstance, untilMs: number): Result {
    const { clock, recorder } = this.#options;
    const message = `The launcher pod is being deleted, and holds its guest until ${formatTime(untilMs)} so that it can move`;
    if (!this.#held.has(podUID)) recorder.event(guest, 'Normal', 'ShutdownHeld', message);
    this.#held.add(podUID);
    return { requeueAfterMs: Math.max(1, untilMs - clock.now()) };
  }

  /** Tells why a guest is shut down, before it is asked to for the first time. */
  #tellOnce(podUID: string, guest: VirtualMachineInstance, reason: EventReason, message: string): void {
    if (!this.#asked.has(podUID)) this.#options.recorder.event(guest, 'Warning', reason, message);
  }

  /**
   * The rest of the guest's memory was at its source, which has ended: the guest waits for it for ever, and can only start
   * afresh. A link that is only broken is mended meanwhile.
   */
  async #endStarved(podUID: string, guest: VirtualMachineInstance, machine: Machine): Promise<Result> {
    const { clock, log, recorder } = this.#options;
    const sinceMs = this.#starvedMs.get(podUID) ?? clock.now();
    this.#starvedMs.set(podUID, sinceMs);
    const leftMs = sinceMs + STARVED_MS - clock.now();
    if (leftMs > 0) return { requeueAfterMs: leftMs };
    const message = 'the source of the guest has ended before all of its memory was over: the guest is lost';
    log.warn(message, { pod: podUID });
    recorder.event(guest, 'Warning', 'PostCopyLost', message);
    await machine.kill();
    return {};
  }

  async #powerOff(
    podUID: string,
    guest: VirtualMachineInstance,
    machine: Machine,
    byMs: number,
    status: MachineStatus,
  ): Promise<Result> {
    const { clock, recorder } = this.#options;
    const nowMs = clock.now();
    const asked = this.#asked.get(podUID);
    const what = powerOff({ deadlineMs: byMs, nowMs, status, pressedMs: asked?.lastMs });
    if (what.kind === 'quit') {
      recorder.event(guest, 'Normal', 'Deleted', 'Signaled Deletion');
      await machine.quit();
      return {};
    }
    if (what.kind === 'press') {
      await machine.powerDown();
      if (!asked) recorder.event(guest, 'Normal', 'ShuttingDown', 'Signaled Graceful Shutdown');
      this.#asked.set(podUID, { firstMs: asked?.firstMs ?? nowMs, lastMs: nowMs });
    }
    return { requeueAfterMs: what.lookAgainAfterMs };
  }

  /** Forgets a pod that is gone. */
  forget(podUID: string): void {
    this.#asked.delete(podUID);
    this.#held.delete(podUID);
    this.#starvedMs.delete(podUID);
    this.#muteMs.delete(podUID);
  }
}

/** Where the guest of a pod has just come from, and whether a pod of it is still there; undefined once all is over. */
function sourceOf(pod: LauncherPod, guest: VirtualMachineInstance): { readonly isThere: boolean } | undefined {
  const { status } = guest;
  const { targetPod, sourceNode, sourceState, completed } = status?.migrationState ?? {};
  if (targetPod === undefined || targetPod !== pod.metadata.name || completed === true) return undefined;
  if (!sidesOf(guest).isTarget) return undefined;
  // Nobody here sees a pod that is elsewhere; its side says that it has ended, or that all is over.
  if (isAcross(guest)) return { isThere: sourceState?.verdict === undefined && sourceState?.hasEnded !== true };
  return { isThere: Object.values(status?.activePods ?? {}).includes(sourceNode ?? '') };
}
