import type { CopyState } from '../../api/copy-state.ts';

/** What the monitor is told of a copy, as the source's hypervisor says it. */

export interface MemorySample {
  readonly totalBytes: number;
  /** What is left of this pass. */
  readonly remainingBytes: number;
  /** What went over the wire. */
  readonly transferredBytes: number;
  /** What the guest writes; 0 until the first pass is over. */
  readonly dirtyBytesPerSecond: number;
  /** The pass that it is in, the first of which is 1. */
  readonly passes: number;
}

/** A disk that is whole counts as copied, though what the guest writes to it goes on being copied. */
export interface DisksSample {
  readonly totalBytes: number;
  readonly copiedBytes: number;
}

/** One look at a copy. Best taken whenever a pass begins or the state changes, and now and then in between. */
export interface Sample {
  readonly state: CopyState;
  /** Known once memory is copied. */
  readonly memory?: MemorySample;
  /** Present where disks are copied, too. */
  readonly disks?: DisksSample;
  /** How much of the guest's time is taken from it so that it writes less. */
  readonly throttlePercent?: number;
}
