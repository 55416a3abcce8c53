/** What the monitor is told of a copy, as the source's hypervisor says it. */

/** How the copy is; the words are the hypervisor's. */
export type CopyState =
  | 'none'
  | 'setup'
  | 'active'
  | 'pre-switchover'
  | 'device'
  | 'postcopy-active'
  | 'postcopy-paused'
  | 'postcopy-recover'
  | 'completed'
  | 'failed'
  | 'cancelling'
  | 'cancelled';

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

/** Whether nothing will come of this state any more. */
export function isOver(state: CopyState): boolean {
  return state === 'completed' || state === 'failed' || state === 'cancelled';
}

/** Whether the guest may be at its target already, so that there is no way back. */
export function isPostCopy(state: CopyState): boolean {
  return state === 'postcopy-active' || state === 'postcopy-paused' || state === 'postcopy-recover';
}

/** Whether the guest stands still, and the end of the copy is under way. */
export function isSwitchingOver(state: CopyState): boolean {
  return state === 'pre-switchover' || state === 'device';
}
