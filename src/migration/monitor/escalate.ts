import {
  type Decision,
  giveUp,
  type GiveUpReason,
  inMebibytes,
  inSeconds,
  keepCopying,
  type Trigger,
} from './decision.ts';
import type { MonitorOptions } from './monitor-options.ts';
import type { Monitor } from './monitor-state.ts';
import { bytesIfStopped } from './passes.ts';
import { sendingMs } from './rates.ts';
import { isRising } from './throttle.ts';

/**
 * What is done about a copy that will not end by itself, the mildest first:
 *
 * 1. what is left fits into the longest downtime: allow it, and wait for the end for a while;
 * 2. post-copy, where allowed, if what is left can be sent twice before any deadline: there is no way back from it;
 * 3. pause the guest, where allowed, if what is left can be sent before any deadline;
 * 4. what is left nearly fits: as 1;
 * 5. the guest is slowed down more and more: wait for that, unless the time is over;
 * 6. give up.
 */
export function escalate(monitor: Monitor, options: MonitorOptions, trigger: Trigger): Decision {
  const memory = monitor.sample?.memory;
  const leftBytes = memory && bytesIfStopped(monitor.passes, monitor.elapsedMs, memory);
  const neededMs = leftBytes === undefined ? Number.POSITIVE_INFINITY : sendingMs(monitor.rates, leftBytes);
  const availableMs = Math.min(options.finalDeadlineMs, options.outerDeadlineMs) - monitor.elapsedMs;
  const why = `${reasons[trigger]}; ${inMebibytes(leftBytes ?? 0)} are left and take ${inSeconds(neededMs)}`;
  if (canAwaitEnd(monitor, neededMs, options.downtimeMsMax)) return awaitEnd(options, trigger, why);
  // Disks that are not over yet cannot be hurried: a guest must not stand still, or be gone, before they are.
  if (options.allowsDisruption && Number.isFinite(neededMs) && !hasDisksLeft(monitor)) {
    if (options.allowsPostCopy && 2 * neededMs <= availableMs)
      return { kind: 'post-copy', reason: trigger, message: why };
    if (neededMs <= availableMs) return { kind: 'pause', reason: trigger, message: why };
  }
  if (canAwaitEnd(monitor, neededMs, options.downtimeMsMax * options.preCopyPossibleFactor)) {
    return awaitEnd(options, trigger, why);
  }
  if (trigger === 'DeadlineNear') return keepCopying('NotConverging', why);
  const isPatient = trigger === 'Stalled' || trigger === 'NoProgress';
  if (isPatient && options.allowsAutoConverge && isRising(monitor.throttle, monitor.elapsedMs)) {
    return keepCopying('Throttling', `the guest is slowed down by ${monitor.throttle.percent} percent; ${why}`);
  }
  return giveUp(verdicts[trigger], why);
}

const reasons: Readonly<Record<Trigger, string>> = {
  OverTime: 'the copy takes longer than its size allows',
  DeadlineNear: 'the guest has to be gone soon',
  Stalled: 'the passes over memory get no smaller',
  NoProgress: 'the copy came no closer to its end for too long',
  SwitchoverTimeout: 'the end did not come though the longest downtime was allowed',
};

const verdicts: Readonly<Record<Exclude<Trigger, 'DeadlineNear'>, GiveUpReason>> = {
  OverTime: 'CompletionTimeout',
  Stalled: 'CannotConverge',
  NoProgress: 'NoProgress',
  SwitchoverTimeout: 'SwitchoverTimeout',
};

/** The end is waited for but once: a second time would be no better. */
function canAwaitEnd(monitor: Monitor, neededMs: number, limitMs: number): boolean {
  return monitor.endAwaitedUntilMs === undefined && neededMs <= limitMs;
}

function awaitEnd(options: MonitorOptions, trigger: Trigger, why: string): Decision {
  return { kind: 'set-downtime', downtimeMs: options.downtimeMsMax, reason: trigger, message: why };
}

function hasDisksLeft({ sample }: Monitor): boolean {
  return sample?.disks !== undefined && sample.disks.copiedBytes < sample.disks.totalBytes;
}
