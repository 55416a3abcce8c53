/** What the monitor decides, each with one word for why and a sentence for people. */

/** Why nothing is done at the moment. */
export type KeepReason =
  | 'Preparing'
  | 'CopyingDisks'
  | 'FirstPass'
  | 'Converging'
  | 'NotConverging'
  | 'AwaitingMinimum'
  | 'Throttling'
  | 'AwaitingSwitchover'
  | 'SwitchingOver'
  | 'GuestPaused'
  | 'PostCopyStarting'
  | 'PostCopyRunning'
  | 'PostCopyRecovering';

/** What made the monitor look for a way out. */
export type Trigger = 'OverTime' | 'DeadlineNear' | 'Stalled' | 'NoProgress' | 'SwitchoverTimeout';

/** Why a copy is given up. */
export type GiveUpReason =
  | 'SetupTimeout'
  | 'LinkSilent'
  | 'NoProgress'
  | 'CannotConverge'
  | 'CompletionTimeout'
  | 'DeadlinePassed'
  | 'SwitchoverTimeout';

/**
 * What to do:
 * - `keep-copying`: nothing;
 * - `set-downtime`: let the guest stand still for so long at the end;
 * - `throttle`: nothing, the hypervisor has begun to slow the guest down; said once, to be recorded;
 * - `post-copy`: let the guest go over before its memory;
 * - `pause`: stop the guest, so that the rest can be copied;
 * - `recover`: mend the link of a post-copy (let go of it on both sides, and connect again);
 * - `give-up`: cancel; the guest goes on at the source. Decided once, nothing follows;
 * - `nothing`: the copy is over, or was given up.
 */
export type Decision =
  | { readonly kind: 'keep-copying'; readonly reason: KeepReason; readonly message: string }
  | {
      readonly kind: 'set-downtime';
      readonly downtimeMs: number;
      readonly reason: 'FirstDowntime' | 'DowntimeStep' | Trigger;
      readonly message: string;
    }
  | { readonly kind: 'throttle'; readonly percent: number; readonly reason: 'GuestThrottled'; readonly message: string }
  | { readonly kind: 'post-copy' | 'pause'; readonly reason: Trigger; readonly message: string }
  | { readonly kind: 'recover'; readonly reason: 'LinkSilent' | 'LinkBroken'; readonly message: string }
  | { readonly kind: 'give-up'; readonly reason: GiveUpReason; readonly message: string }
  | { readonly kind: 'nothing'; readonly reason: 'Over' | 'GivenUp' | 'Cancelling'; readonly message: string };

/** Nothing is to be done, and why. */
export function keepCopying(reason: KeepReason, message: string): Decision {
  return { kind: 'keep-copying', reason, message };
}

/** The copy is given up, and why. */
export function giveUp(reason: GiveUpReason, message: string): Decision {
  return { kind: 'give-up', reason, message };
}

/** An amount as people read it. */
export function inMebibytes(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** A time as people read it. */
export function inSeconds(milliseconds: number): string {
  return Number.isFinite(milliseconds) ? `${(milliseconds / 1000).toFixed(1)} s` : 'forever';
}
