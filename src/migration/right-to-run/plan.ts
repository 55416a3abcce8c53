import type { RightToRun } from '../../api/kubevirt/right-to-run.ts';
import type { Attempt, ImagePlace } from './attempt.ts';
import type { Entry } from './entry.ts';
import type { ImageStamp } from './image-stamps.ts';

/** What one agent tells the other, on their own channel and again through the API. Any of it may be lost or repeated. */
export interface Message {
  readonly kind: 'grant' | 'taken' | 'refused' | 'aborted' | 'please-refuse' | 'is-it-over';
  readonly attempt: Attempt;
  readonly isPostCopy?: boolean;
  /** Of a grant: the guest's owner holds it, and whoever takes it does not let it run. */
  readonly isPaused?: boolean;
}

/**
 * What to tell the machine:
 * - `start`: start it paused, with the epoch on its order; `start-incoming`: likewise, to receive a guest;
 * - `cancel-migration`: give up copying; it fails where post-copy runs, and does nothing where no copy is under way;
 * - `continue`: execute the guest;
 * - `hold`: have a guest back whose copy was over when it was given up, and do not execute it;
 * - `close-exports`: let nobody write its disks from outside any more;
 * - `kill`: end it now.
 */
export type MachineCommand =
  | 'start'
  | 'start-incoming'
  | 'cancel-migration'
  | 'continue'
  | 'hold'
  | 'close-exports'
  | 'kill';

/**
 * One thing to do. A `journal` or a `stamp` step is done when it is durable. A `record` step is done when the API server has changed
 * the record from exactly `from` to `to`. When a step fails the rest is dropped, and everything is decided anew from
 * what is then seen.
 */
export type Step =
  | { readonly kind: 'journal'; readonly entry: Entry }
  | { readonly kind: 'record'; readonly from: RightToRun | undefined; readonly to: RightToRun }
  | { readonly kind: 'machine'; readonly command: MachineCommand }
  | { readonly kind: 'stamp'; readonly stamps: readonly NewStamp[] }
  | { readonly kind: 'discard-images'; readonly attempt: Attempt }
  | { readonly kind: 'send'; readonly message: Message };

/** What is to be written beside an image. */
export interface NewStamp extends Pick<ImageStamp, 'state' | 'epoch' | 'migrationUID'> {
  readonly image: ImagePlace;
}

/** Why something is not done. The codes are stable; the words are for people. */
export type RefusalCode =
  | 'AlreadyRunning'
  | 'GrantedAway'
  | 'HeldByAnother'
  | 'JournalMissing'
  | 'MachineUnknown'
  | 'NotCompleted'
  | 'NotHolder'
  | 'NotOutOfService'
  | 'NotReceived'
  | 'NotReserved'
  | 'NotRunning'
  | 'NotTheSuccessor'
  | 'OutOfService'
  | 'Overtaken'
  | 'PostCopyRunning'
  | 'Quarantined'
  | 'Refused'
  | 'StaleImage'
  | 'SuccessorUnsettled';

/** A "no", with its reason. */
export interface Refusal {
  readonly code: RefusalCode;
  readonly message: string;
}

/** Steps to do in this order, or why there are none. No steps and no refusal: all is as it should be. */
export interface Plan {
  readonly steps: readonly Step[];
  readonly refusal?: Refusal;
}

/** Nothing is to be done. */
export const IDLE: Plan = { steps: [] };

export const plan = (...steps: readonly Step[]): Plan => ({ steps });
export const refuse = (code: RefusalCode, message: string): Plan => ({ steps: [], refusal: { code, message } });

export const journal = (entry: Entry): Step => ({ kind: 'journal', entry });
export const machine = (command: MachineCommand): Step => ({ kind: 'machine', command });
export const send = (
  kind: Message['kind'],
  attempt: Attempt,
  more: Pick<Message, 'isPostCopy' | 'isPaused'> = {},
): Step => ({ kind: 'send', message: { kind, attempt, ...more } });
export const change = (from: RightToRun | undefined, to: RightToRun): Step => ({ kind: 'record', from, to });
