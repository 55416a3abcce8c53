import type { MigrationProgress } from '../../api/kubevirt/migration-progress.ts';
import type { MigrationDecision } from '../../api/kubevirt/migration-state.ts';
import type { Clock } from '../../env/ports.ts';
import type { Decision } from '../../migration/monitor/decision.ts';
import { firstDowntimeMs } from '../../migration/monitor/downtime.ts';
import { type MonitorOptions, monitorOptions } from '../../migration/monitor/monitor-options.ts';
import { type Monitor, newMonitor, type Resumed } from '../../migration/monitor/monitor-state.ts';
import { type Observation, observe } from '../../migration/monitor/monitor.ts';
import { progressStatus } from '../../migration/monitor/progress-status.ts';
import type { Sample } from '../../migration/monitor/sample.ts';
import type { MigrationOptions } from '../../migration/policies/options.ts';
import { withDecision } from './copy-decisions.ts';

export interface CopyWatchOptions {
  readonly clock: Clock;
  readonly options: MigrationOptions;
  readonly ramBytes: number;
  readonly isPostCopyPossible: boolean;
  /** When the copy began. */
  readonly startedAtMs: number;
  /** By when the guest must have gone over, as it is now; undefined while there is no such time. */
  readonly deadlineMs?: (() => number | undefined) | undefined;
  /** What was known of it before this watch. */
  readonly resumed?: Omit<Resumed, 'elapsedMs'>;
  readonly decisions?: readonly MigrationDecision[];
}

/** Watches one copy: what the monitor makes of each look at it, and what the status of its guest says of that. */
export class CopyWatch {
  readonly #clock: Clock;
  readonly #options: MigrationOptions;
  readonly #ramBytes: number;
  readonly #startedAtMs: number;
  readonly #deadlineMs: CopyWatchOptions['deadlineMs'];
  #diskBytes = 0;
  #isPostCopyPossible: boolean;
  #monitor: Monitor;
  #pending: Observation | undefined;
  #progress: MigrationProgress | undefined;
  #decisions: readonly MigrationDecision[];

  constructor(options: CopyWatchOptions) {
    this.#clock = options.clock;
    this.#options = options.options;
    this.#ramBytes = options.ramBytes;
    this.#isPostCopyPossible = options.isPostCopyPossible;
    this.#startedAtMs = options.startedAtMs;
    this.#deadlineMs = options.deadlineMs;
    this.#monitor = newMonitor({ ...options.resumed, elapsedMs: this.#elapsedMs() });
    this.#decisions = options.decisions ?? [];
  }

  /** Undefined before the first look. */
  get progress(): MigrationProgress | undefined {
    return this.#progress;
  }

  get decisions(): readonly MigrationDecision[] {
    return this.#decisions;
  }

  /** For how long the guest may stand still at first. */
  get firstDowntimeMs(): number {
    return firstDowntimeMs(this.#monitorOptions());
  }

  /** What to do after one more look; without a sample where there was no answer. It counts once it was carried out. */
  consider(sample: Sample | undefined): Decision {
    // What a hypervisor says of a disk that it has just begun with may be too little.
    this.#diskBytes = Math.max(this.#diskBytes, sample?.disks?.totalBytes ?? 0);
    // Of disks that are over nothing is said any more.
    const disks = sample?.disks ?? { totalBytes: this.#diskBytes, copiedBytes: this.#diskBytes };
    const whole = sample && this.#diskBytes > 0 ? { ...sample, disks } : sample;
    this.#pending = observe(this.#monitor, this.#monitorOptions(), this.#elapsedMs(), whole);
    return this.#pending.decision;
  }

  /** What was decided last has been done. */
  carriedOut(): void {
    const observation = this.#pending;
    if (!observation) return;
    this.#pending = undefined;
    this.#monitor = observation.monitor;
    const nowMs = this.#clock.now();
    this.#progress = progressStatus(observation, nowMs);
    this.#decisions = withDecision(this.#decisions, observation.decision, nowMs, this.#progress.iteration ?? 0);
  }

  /** There is no post-copy in this copy, though it seemed so. */
  forbidPostCopy(): void {
    this.#isPostCopyPossible = false;
  }

  #elapsedMs(): number {
    return Math.max(0, this.#clock.now() - this.#startedAtMs);
  }

  #monitorOptions(): MonitorOptions {
    const sizeBytes = this.#ramBytes + this.#diskBytes;
    const deadlineMs = this.#deadlineMs?.();
    return monitorOptions(this.#options, {
      sizeBytes,
      isPostCopyPossible: this.#isPostCopyPossible,
      ...(deadlineMs === undefined ? {} : { outerDeadlineMs: deadlineMs - this.#startedAtMs }),
    });
  }
}
