import type { CopyState } from '../../api/copy-state.ts';
import type { GiveUpReason } from './decision.ts';
import { awaitSteps, type Downtime, NO_DOWNTIME } from './downtime.ts';
import { noPasses, type Passes, updatePasses } from './passes.ts';
import type { MonitorOptions } from './monitor-options.ts';
import { type Rates, updateRates } from './rates.ts';
import type { Sample } from './sample.ts';
import { NO_STALL, type Stall, type StallVerdict, updateStall } from './stall.ts';
import { NO_THROTTLE, type Throttle, updateThrottle } from './throttle.ts';

/** All that the monitor remembers of a copy. Times are since the copy began. */
export interface Monitor {
  readonly elapsedMs: number;
  /** What was seen last; undefined before the first look. */
  readonly sample: Sample | undefined;
  readonly stateSinceMs: number;
  /** When the copy last gave a sign of life: a byte, a pass, another state. */
  readonly aliveAtMs: number;
  readonly rates: Rates | undefined;
  readonly passes: Passes;
  readonly stall: Stall;
  readonly stallVerdict: StallVerdict;
  readonly throttle: Throttle;
  readonly downtime: Downtime;
  /** When the guest was to be paused. */
  readonly pausedAtMs: number | undefined;
  /** When post-copy was to start. */
  readonly postCopyAtMs: number | undefined;
  /** Until when the end is waited for, after the longest downtime was allowed for it. */
  readonly endAwaitedUntilMs: number | undefined;
  /** When the link of a post-copy was to be mended last. */
  readonly recoveredAtMs: number | undefined;
  readonly gaveUp: GiveUpReason | undefined;
  readonly percent: number;
}

/** What is known of a copy that began before whoever watches it now. */
export type Resumed = Partial<Pick<Monitor, 'elapsedMs' | 'percent' | 'pausedAtMs' | 'postCopyAtMs'>>;

/** A copy of which nothing was seen yet, at least not by this watcher. */
export function newMonitor(resumed: Resumed = {}): Monitor {
  const { elapsedMs = 0, percent = 0, pausedAtMs, postCopyAtMs } = resumed;
  return {
    elapsedMs,
    sample: undefined,
    stateSinceMs: elapsedMs,
    aliveAtMs: elapsedMs,
    rates: undefined,
    passes: noPasses(elapsedMs),
    stall: NO_STALL,
    stallVerdict: 'improving',
    throttle: NO_THROTTLE,
    downtime: NO_DOWNTIME,
    pausedAtMs,
    postCopyAtMs,
    endAwaitedUntilMs: undefined,
    recoveredAtMs: undefined,
    gaveUp: undefined,
    percent,
  };
}

/** What is known after one more look, or after a look to which there was no answer. Clocks that run back stand still. */
export function takeIn(
  before: Monitor,
  options: MonitorOptions,
  atMs: number,
  seen: Sample | undefined,
): Monitor & { readonly sample: Sample } {
  const elapsedMs = Math.max(before.elapsedMs, atMs);
  if (!seen) return { ...before, elapsedMs, sample: before.sample ?? { state: 'none' } };
  const sample = sane(seen, before.sample);
  const passes = updatePasses(before.passes, elapsedMs, sample);
  const stalled =
    passes.begins && options.stall && updateStall(before.stall, elapsedMs, passes.startBytes, options.stall);
  return {
    ...before,
    elapsedMs,
    sample,
    stateSinceMs: sample.state === before.sample?.state ? before.stateSinceMs : elapsedMs,
    aliveAtMs: isAlive(before.sample, sample) ? elapsedMs : before.aliveAtMs,
    rates: copies(sample.state) ? updateRates(before.rates, elapsedMs, sample, options.averageWeight) : before.rates,
    passes,
    downtime: awaitSteps(before.downtime, elapsedMs, passes.pass, options),
    stall: stalled ? stalled.stall : before.stall,
    stallVerdict: stalled ? stalled.verdict : before.stallVerdict,
    throttle: updateThrottle(before.throttle, elapsedMs, sample.throttlePercent ?? 0),
  };
}

/** A hypervisor that is about to end answers with zeros at times: what it said before counts then. */
function sane(sample: Sample, before: Sample | undefined): Sample {
  const isBlank = sample.memory !== undefined && sample.memory.totalBytes <= 0;
  return isBlank || sample.memory === undefined ? { ...sample, memory: before?.memory } : sample;
}

function copies(state: CopyState): boolean {
  return state === 'none' || state === 'active' || state === 'postcopy-active';
}

function isAlive(before: Sample | undefined, now: Sample): boolean {
  return (
    before?.state !== now.state ||
    before.memory?.transferredBytes !== now.memory?.transferredBytes ||
    before.memory?.remainingBytes !== now.memory?.remainingBytes ||
    before.memory?.passes !== now.memory?.passes ||
    before.disks?.copiedBytes !== now.disks?.copiedBytes
  );
}
