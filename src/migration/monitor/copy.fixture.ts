import type { CopyState } from '../../api/copy-state.ts';
import type { Decision } from './decision.ts';
import type { MonitorOptions } from './monitor-options.ts';
import { type Monitor, newMonitor } from './monitor-state.ts';
import { type Observation, observe } from './monitor.ts';
import type { Sample } from './sample.ts';

const MIB = 2 ** 20;

/** A guest and its link, in numbers. */
export interface CopyModel {
  readonly totalBytes: number;
  /** Bytes that the guest writes each second, by the time; and where they are: it writes no more than these again and again. */
  readonly dirtyBytesPerSecond: (elapsedMs: number) => number;
  readonly workingSetBytes?: number;
  readonly linkBytesPerSecond: (elapsedMs: number) => number;
  /** The hypervisor slows the guest down by 10 more percent with each pass that is no smaller. */
  readonly throttles?: boolean;
  readonly sampleEveryMs?: number;
}

/** One look, and what came of it. */
export interface Look extends Observation {
  readonly elapsedMs: number;
  readonly sample: Sample;
}

/**
 * Copies the memory of a guest as QEMU does, as the monitor tells it to, until it is over or the time is: passes, the end
 * when what is left fits into the downtime, a pause, post-copy, and a link on which nothing moves.
 */
export function runCopy(model: CopyModel, options: MonitorOptions, untilMs: number): Look[] {
  const copy = new ModelCopy(model);
  const looks: Look[] = [];
  let monitor: Monitor = newMonitor();
  for (let elapsedMs = 0; elapsedMs <= untilMs; elapsedMs += model.sampleEveryMs ?? 400) {
    const sample = copy.at(elapsedMs);
    const observation = observe(monitor, options, elapsedMs, sample);
    monitor = observation.monitor;
    copy.obey(observation.decision);
    looks.push({ ...observation, elapsedMs, sample });
    if (sample.state === 'completed' || observation.decision.kind === 'give-up') break;
  }
  return looks;
}

/** What was decided, without the times at which nothing was. */
export function decisionsOf(looks: readonly Look[]): string[] {
  return looks.flatMap(({ decision }) =>
    decision.kind === 'keep-copying' || decision.kind === 'nothing' ? [] : [`${decision.kind} ${decision.reason}`],
  );
}

class ModelCopy {
  readonly #model: CopyModel;
  #state: CopyState = 'active';
  #elapsedMs = 0;
  #remaining: number;
  #transferred = 0;
  #dirty = 0;
  #passes = 1;
  #passStart: number;
  #downtimeMs = 0;
  #throttlePercent = 0;
  #isPaused = false;

  constructor(model: CopyModel) {
    this.#model = model;
    this.#remaining = model.totalBytes;
    this.#passStart = model.totalBytes;
  }

  obey(decision: Decision): void {
    if (decision.kind === 'set-downtime') this.#downtimeMs = decision.downtimeMs;
    if (decision.kind === 'pause') this.#isPaused = true;
    if (decision.kind === 'post-copy') this.#state = 'postcopy-active';
  }

  at(elapsedMs: number): Sample {
    const stepMs = 20;
    while (this.#elapsedMs < elapsedMs && this.#state !== 'completed') this.#advance(stepMs);
    return {
      state: this.#state,
      memory: {
        totalBytes: this.#model.totalBytes,
        remainingBytes: this.#remaining,
        transferredBytes: this.#transferred,
        dirtyBytesPerSecond: this.#passes > 1 ? this.#dirtyRate() : 0,
        passes: this.#passes,
      },
      throttlePercent: this.#throttlePercent,
    };
  }

  #dirtyRate(): number {
    return this.#model.dirtyBytesPerSecond(this.#elapsedMs) * (1 - this.#throttlePercent / 100);
  }

  #advance(stepMs: number): void {
    const link = this.#model.linkBytesPerSecond(this.#elapsedMs);
    this.#elapsedMs += stepMs;
    const sent = Math.min(this.#remaining, (link * stepMs) / 1000);
    this.#remaining -= sent;
    this.#transferred += sent;
    if (!this.#isPaused && this.#state === 'active') {
      const most = this.#model.workingSetBytes ?? this.#model.totalBytes;
      this.#dirty = Math.min(most, this.#dirty + (this.#dirtyRate() * stepMs) / 1000);
    }
    if (this.#remaining > 0 || link === 0) return;
    const isLast = this.#state !== 'active' || (this.#dirty / link) * 1000 <= this.#downtimeMs;
    if (isLast) {
      this.#transferred += this.#dirty;
      this.#state = 'completed';
      return;
    }
    if (this.#model.throttles && this.#dirty * 2 > this.#passStart) {
      this.#throttlePercent = Math.min(99, this.#throttlePercent === 0 ? 20 : this.#throttlePercent + 10);
    }
    this.#passes += 1;
    this.#passStart = Math.max(this.#dirty, 1);
    this.#remaining = this.#passStart;
    this.#dirty = 0;
  }
}

/** So many MiB. */
export const mib = (count: number): number => count * MIB;
