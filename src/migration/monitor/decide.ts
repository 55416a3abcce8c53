import { isOver, isPostCopy, isSwitchingOver } from '../../api/copy-state.ts';
import { type Decision, giveUp, inMebibytes, inSeconds, keepCopying, type Trigger } from './decision.ts';
import { firstDowntimeMs, nextDowntimeMs } from './downtime.ts';
import { escalate } from './escalate.ts';
import type { MonitorOptions } from './monitor-options.ts';
import type { Monitor } from './monitor-state.ts';
import { bytesIfStopped } from './passes.ts';
import { sendingMs } from './rates.ts';
import type { Sample } from './sample.ts';

type Seen = Monitor & { readonly sample: Sample };

/** How long to wait before the link of a post-copy is mended once more. */
const RECOVERY_RETRY_MS = 10_000;
/** Room for the work around a way out, when there is a deadline from outside. */
const DEADLINE_MARGIN_MS = 5000;
/** For so long nobody knows how fast a copy is that has just begun: a guest must not be stopped for what it seems then. */
const FIRST_RATES_MS = 2000;
/** How many times the stall detector's own time a copy may make no progress while that looks for a good moment. */
const STALL_SEARCH_FACTOR = 4;

/** What to do about a copy, by all that is known of it. */
export function decide(monitor: Seen, options: MonitorOptions): Decision {
  const { state } = monitor.sample;
  if (monitor.gaveUp) return { kind: 'nothing', reason: 'GivenUp', message: `given up: ${monitor.gaveUp}` };
  if (isOver(state)) return { kind: 'nothing', reason: 'Over', message: `the copy is over: ${state}` };
  if (state === 'cancelling') return { kind: 'nothing', reason: 'Cancelling', message: 'somebody gave it up' };
  if (isPostCopy(state)) return watchPostCopy(monitor, options);
  if (isSwitchingOver(state)) return watchSwitchover(monitor, options);
  return limits(monitor, options) ?? watchWayOut(monitor, options) ?? watchCopy(monitor, options);
}

/** There is no way back from post-copy: it is mended, as often as it takes. */
function watchPostCopy(monitor: Seen, options: MonitorOptions): Decision {
  const { elapsedMs, sample, aliveAtMs, recoveredAtMs } = monitor;
  const isSilent = elapsedMs - aliveAtMs >= options.silenceTimeoutMs;
  const isBroken = sample.state === 'postcopy-paused';
  if (!isSilent && !isBroken) return keepCopying('PostCopyRunning', 'the guest runs at its target, its memory follows');
  if (recoveredAtMs !== undefined && elapsedMs - recoveredAtMs < RECOVERY_RETRY_MS) {
    return keepCopying('PostCopyRecovering', 'the link is being mended');
  }
  return isBroken
    ? { kind: 'recover', reason: 'LinkBroken', message: 'the link broke while memory follows the guest' }
    : { kind: 'recover', reason: 'LinkSilent', message: `nothing came over for ${inSeconds(elapsedMs - aliveAtMs)}` };
}

function watchSwitchover(monitor: Seen, options: MonitorOptions): Decision {
  const takenMs = monitor.elapsedMs - monitor.stateSinceMs;
  if (monitor.elapsedMs >= options.outerDeadlineMs + DEADLINE_MARGIN_MS)
    return giveUp('DeadlinePassed', `the guest had to be gone by now, and stands still for ${inSeconds(takenMs)}`);
  if (takenMs < options.switchoverTimeoutMs) return keepCopying('SwitchingOver', 'the guest stands still for the end');
  return giveUp('SwitchoverTimeout', `the guest stands still for ${inSeconds(takenMs)} and the end does not come`);
}

/** What ends a copy in any case while the guest is at the source. */
function limits(monitor: Seen, options: MonitorOptions): Decision | undefined {
  const { elapsedMs, sample } = monitor;
  if (elapsedMs >= options.outerDeadlineMs) return giveUp('DeadlinePassed', 'the guest had to be gone by now');
  if (elapsedMs >= options.finalDeadlineMs) {
    return giveUp('CompletionTimeout', `${inSeconds(elapsedMs)} are more than its size allows, in any way`);
  }
  const isConnecting = sample.state === 'setup' || (sample.state === 'none' && !sample.disks);
  if (isConnecting) {
    const takenMs = elapsedMs - monitor.stateSinceMs;
    return takenMs >= options.setupTimeoutMs
      ? giveUp('SetupTimeout', `nothing is copied after ${inSeconds(takenMs)}`)
      : keepCopying('Preparing', 'the two sides connect');
  }
  const silentMs = elapsedMs - monitor.aliveAtMs;
  if (silentMs >= options.silenceTimeoutMs) return giveUp('LinkSilent', `nothing went over for ${inSeconds(silentMs)}`);
  return undefined;
}

/** Whether what was decided before comes to its end. */
function watchWayOut(monitor: Seen, options: MonitorOptions): Decision | undefined {
  const { elapsedMs, postCopyAtMs, pausedAtMs, endAwaitedUntilMs } = monitor;
  if (postCopyAtMs !== undefined) {
    const takenMs = elapsedMs - postCopyAtMs;
    if (takenMs < options.switchoverTimeoutMs) return keepCopying('PostCopyStarting', 'the guest is about to go over');
    return giveUp('SwitchoverTimeout', `post-copy has not started after ${inSeconds(takenMs)}`);
  }
  if (pausedAtMs !== undefined) {
    if (elapsedMs - Math.max(pausedAtMs, monitor.passes.progressedAtMs) >= options.progressTimeoutMs) {
      return giveUp('NoProgress', 'the guest was paused, and yet the copy comes no closer to its end');
    }
    return keepCopying('GuestPaused', 'the guest is paused so that the rest can be copied');
  }
  if (endAwaitedUntilMs === undefined) return undefined;
  if (elapsedMs >= endAwaitedUntilMs) return escalate(monitor, options, 'SwitchoverTimeout');
  // A deadline from outside does not wait for the end to come by itself.
  const wayOut = isDeadlineNear(monitor, options, 0) ? escalate(monitor, options, 'DeadlineNear') : undefined;
  if (wayOut && wayOut.kind !== 'keep-copying') return wayOut;
  return keepCopying('AwaitingSwitchover', 'the end may come with every pass');
}

/** The copy goes its way: is it a good one? */
function watchCopy(monitor: Seen, options: MonitorOptions): Decision {
  const trigger = triggerOf(monitor, options);
  const wayOut = trigger && escalate(monitor, options, trigger);
  if (wayOut && wayOut.kind !== 'keep-copying') return wayOut;
  return adjustDowntime(monitor, options) ?? recordThrottle(monitor) ?? wayOut ?? describe(monitor);
}

function triggerOf(monitor: Seen, options: MonitorOptions): Trigger | undefined {
  const { elapsedMs, passes, sample } = monitor;
  if (elapsedMs >= options.completionDeadlineMs) return 'OverTime';
  if (isDeadlineNear(monitor, options, DEADLINE_MARGIN_MS)) return 'DeadlineNear';
  if (passes.begins && monitor.stallVerdict === 'act') return 'Stalled';
  const patienceMs = options.stall
    ? Math.max(options.progressTimeoutMs, STALL_SEARCH_FACTOR * options.stall.progressTimeoutMs)
    : options.progressTimeoutMs;
  return sample.memory && elapsedMs - passes.progressedAtMs >= patienceMs ? 'NoProgress' : undefined;
}

/** Whether a way out must be taken now, since the next pass may leave too little time for it. */
function isDeadlineNear(
  { elapsedMs, rates, passes, sample }: Seen,
  options: MonitorOptions,
  marginMs: number,
): boolean {
  const { memory } = sample;
  const speed = rates?.sentBytesPerSecond ?? 0;
  if (passes.pass <= 1 && elapsedMs - passes.startedAtMs < FIRST_RATES_MS) return false;
  if (!memory || speed <= 0 || !Number.isFinite(options.outerDeadlineMs)) return false;
  const nextPassBytes = Math.min(memory.totalBytes, (memory.dirtyBytesPerSecond / speed) * passes.startBytes);
  const leftBytes = bytesIfStopped(passes, elapsedMs, memory);
  const neededMs = sendingMs(rates, Math.max(leftBytes, nextPassBytes));
  return options.outerDeadlineMs - elapsedMs <= 2 * neededMs + marginMs;
}

function adjustDowntime(monitor: Seen, options: MonitorOptions): Decision | undefined {
  const { downtime, elapsedMs, passes, sample } = monitor;
  if (!sample.memory) return undefined;
  if (downtime.limitMs === undefined) {
    const downtimeMs = firstDowntimeMs(options);
    const message = `the guest may stand still for ${downtimeMs} ms at the end`;
    return { kind: 'set-downtime', downtimeMs, reason: 'FirstDowntime', message };
  }
  const downtimeMs = nextDowntimeMs(downtime, elapsedMs, options);
  if (downtimeMs === undefined) return undefined;
  const message = `the guest may stand still for ${downtimeMs} ms, after ${passes.pass} passes`;
  return { kind: 'set-downtime', downtimeMs, reason: 'DowntimeStep', message };
}

function recordThrottle({ throttle }: Seen): Decision | undefined {
  if (throttle.percent === 0 || throttle.isRecorded) return undefined;
  const message = `the guest writes too fast, and is slowed down by ${throttle.percent} percent`;
  return { kind: 'throttle', percent: throttle.percent, reason: 'GuestThrottled', message };
}

function describe({ sample, passes, stallVerdict, stall }: Seen): Decision {
  const { memory } = sample;
  if (!memory) return keepCopying('CopyingDisks', 'disks are copied first');
  const left = `${inMebibytes(memory.remainingBytes)} of pass ${memory.passes} are left`;
  if (memory.passes <= 1) return keepCopying('FirstPass', left);
  if (stallVerdict === 'waiting' && stall.search) {
    return keepCopying('AwaitingMinimum', `a pass of ${inMebibytes(stall.search.wantedBytes)} is waited for; ${left}`);
  }
  return keepCopying(passes.isSmallest ? 'Converging' : 'NotConverging', left);
}
