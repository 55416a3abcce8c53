import type { Runner } from '../../api/kubevirt/right-to-run.ts';
import type { Attempt } from './attempt.ts';

/**
 * What an agent writes down about one launcher pod before it acts on it:
 * - `starting`: it is about to claim the epoch in the record; no machine has been started;
 * - `started`: the record names it, and the machine may be started, once; `isPaused` where the guest waits for its
 *   owner to let it run;
 * - `reserved`: it is about to name its successor in the record; `isPaused`, here and in what follows, where the guest's
 *   owner holds it, and it is not to run on either side;
 * - `granted`: the right has left; only a refusal brings it back, and in post-copy (`isPostCopy`) nothing does;
 * - `receiving`: a machine may be started that waits for the guest, and must not execute it;
 * - `taken`: the right has come, with the epoch after the attempt's;
 * - `refused`: the attempt can never be taken;
 * - `regained`: the right is this side's again, in a new epoch;
 * - `aborted`: nothing was granted, and nothing will be;
 * - `ended`: no machine of this pod executes the guest, and none ever will. `givenTo` is who took over, if anyone, and
 *   `isAcross` says that it did so for another object, with a record of its own;
 * - `machine`: what the machine itself said, as far as conclusions rest on it.
 */
export type Entry =
  | { readonly kind: 'starting'; readonly epoch: number }
  | { readonly kind: 'started'; readonly epoch: number; readonly isPaused?: true }
  | { readonly kind: 'reserved'; readonly attempt: Attempt; readonly isPaused?: true }
  | { readonly kind: 'granted'; readonly attempt: Attempt; readonly isPostCopy: boolean; readonly isPaused?: true }
  | { readonly kind: 'receiving'; readonly attempt: Attempt }
  | { readonly kind: 'taken'; readonly attempt: Attempt; readonly isPostCopy?: true; readonly isPaused?: true }
  | { readonly kind: 'refused'; readonly attempt: Attempt }
  | { readonly kind: 'regained'; readonly epoch: number }
  | { readonly kind: 'aborted'; readonly attempt: Attempt }
  | { readonly kind: 'ended'; readonly epoch: number; readonly givenTo?: Runner; readonly isAcross?: true }
  | { readonly kind: 'machine'; readonly event: MachineEventName };

/** QEMU's MIGRATION (completed or failed), STOP and RESUME. */
export type MachineEventName = 'completed' | 'failed' | 'stopped' | 'resumed';
