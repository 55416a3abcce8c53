/**
 * How the copy of a guest is, on either side:
 * - `none`: there was none;
 * - `setup`: a target listens, or a source connects;
 * - `active`: memory is copied while the guest runs;
 * - `pre-switchover`: the source has stopped its guest, and waits to be told;
 * - `device`: the rest is on its way;
 * - `postcopy-active`: the guest's state is over, and its memory follows;
 * - `postcopy-paused`: the link broke, and waits to be mended;
 * - `postcopy-recover`: it is being mended;
 * - `completed`: all is over. A source that says so never goes on by itself;
 * - `failed`, `cancelled`: the source goes on with its guest, by itself unless it was stopped for post-copy.
 */
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
