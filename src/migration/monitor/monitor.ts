import { unreachable } from '../../api/unreachable.ts';
import { decide } from './decide.ts';
import type { Decision } from './decision.ts';
import { type Estimate, estimate, percentDone } from './estimate.ts';
import type { MonitorOptions } from './monitor-options.ts';
import { type Monitor, takeIn } from './monitor-state.ts';
import type { Sample } from './sample.ts';

/**
 * Watches a copy and decides whether it goes on.
 *
 * A pre-copy sends memory in passes: the first sends all of it, each later one what the guest wrote during the one before.
 * It ends by itself when what is left can be sent within the downtime that is allowed. A guest that writes faster than
 * can be sent never lets that happen, and a link that is cut in silence leaves the hypervisor waiting for ever. So each
 * look at the copy comes here, and what to do about it comes out: nothing, a longer downtime, post-copy, a pause, or an
 * end. Nothing here acts, and nothing asks for the time.
 *
 * - Every way out has a time by which it must have worked, and is taken once: a copy ends in bounded time.
 * - A copy is given up once; after that nothing is decided any more.
 * - In post-copy there is no way back, so that nothing but mending the link is ever decided.
 * - Percents never fall.
 */
export interface Observation {
  readonly monitor: Monitor;
  readonly decision: Decision;
  readonly percent: number;
  readonly estimate: Estimate;
}

/**
 * Takes in one look at a copy, at so many milliseconds since it began; without a sample where the hypervisor did not answer.
 * Options may differ from those of the last time, as deadlines do. What is decided counts as done: where it
 * could not be, the monitor of before is the one to go on with, and options say what is not possible.
 */
export function observe(before: Monitor, options: MonitorOptions, elapsedMs: number, seen?: Sample): Observation {
  const monitor = takeIn(before, options, elapsedMs, seen);
  const decision = decide(monitor, options);
  const after = applied(monitor, options, decision);
  const expected = estimate(monitor.sample, {
    elapsedMs: after.elapsedMs,
    passes: after.passes,
    rates: after.rates,
    sizeBytes: options.sizeBytes,
    isGuestStopped: after.pausedAtMs !== undefined,
    downtimeLimitMs: after.downtime.limitMs ?? 0,
    boundMs: Math.min(options.finalDeadlineMs, options.outerDeadlineMs) - after.elapsedMs,
  });
  const percent = percentDone(before.percent, after.elapsedMs, monitor.sample, expected, options.sizeBytes);
  return { monitor: { ...after, percent }, decision, percent, estimate: expected };
}

/** The monitor once the decision is carried out. */
function applied(monitor: Monitor, options: MonitorOptions, decision: Decision): Monitor {
  const { elapsedMs } = monitor;
  switch (decision.kind) {
    case 'set-downtime': {
      const isStep = decision.reason === 'FirstDowntime' || decision.reason === 'DowntimeStep';
      return {
        ...monitor,
        downtime: {
          limitMs: decision.downtimeMs,
          steppedAtMs: decision.reason === 'DowntimeStep' ? elapsedMs : monitor.downtime.steppedAtMs,
        },
        endAwaitedUntilMs: isStep ? monitor.endAwaitedUntilMs : elapsedMs + options.switchoverTimeoutMs,
      };
    }
    case 'post-copy':
      return { ...monitor, postCopyAtMs: elapsedMs };
    case 'pause':
      return { ...monitor, pausedAtMs: elapsedMs };
    case 'recover':
      return { ...monitor, recoveredAtMs: elapsedMs };
    case 'give-up':
      return { ...monitor, gaveUp: decision.reason };
    case 'throttle':
      return { ...monitor, throttle: { ...monitor.throttle, isRecorded: true } };
    case 'keep-copying':
    case 'nothing':
      return monitor;
    default:
      return unreachable(decision);
  }
}
