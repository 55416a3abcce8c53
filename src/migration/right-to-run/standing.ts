import type { RightToRun, Runner } from '../../api/kubevirt/right-to-run.ts';
import { unreachable } from '../../api/unreachable.ts';
import { type Attempt, epochOfTake, isSameAttempt } from './attempt.ts';
import type { Entry, MachineEventName } from './entry.ts';

/** Where a launcher pod stands by its agent's journal alone. */
export type Standing =
  | { readonly kind: 'none' }
  | { readonly kind: 'starting'; readonly epoch: number }
  | Holding
  | Granted
  | { readonly kind: 'receiving'; readonly attempt: Attempt }
  | { readonly kind: 'refused'; readonly attempt: Attempt }
  | Ended;

/** The right is here. */
export interface Holding {
  readonly kind: 'holding';
  readonly epoch: number;
  /** Whether the guest has yet to be continued; a guest that stops later was stopped by its owner. */
  readonly mustContinue: boolean;
  /** Whether the machine said that all of the guest has gone over, and has not resumed it since. */
  readonly isCompleted: boolean;
  readonly reserved?: Attempt;
  /** Whether the guest's owner held it when its successor was reserved. */
  readonly isPaused?: true;
  /** The volumes that came with the right. */
  readonly volumes?: RightToRun['volumes'];
  /** How the right came, where it was taken: its source may ask for as long as it has not heard. */
  readonly taken?: Attempt;
  /** Whether the right came before all of the guest's memory had. */
  readonly isPostCopy?: true;
  /** Whether it was to go to another object in this epoch: then an admin may have reclaimed it. */
  readonly wasAcross?: true;
}

/** The right was let go of, and may come back. */
export interface Granted {
  readonly kind: 'granted';
  readonly attempt: Attempt;
  readonly isPostCopy: boolean;
  readonly isPaused?: true;
  readonly taken?: Attempt;
}

/** Nothing is left here. */
export interface Ended {
  readonly kind: 'ended';
  readonly epoch: number;
  readonly givenTo?: Runner;
  readonly isAcross?: true;
  /** Whether the right had gone before all of the guest's memory had. */
  readonly isPostCopy?: true;
  readonly taken?: Attempt;
  readonly wasAcross?: true;
}

/** The standing of a pod of which nothing is written. */
export const NO_STANDING: Standing = { kind: 'none' };

const holding = (epoch: number, mustContinue: boolean): Holding => ({
  kind: 'holding',
  epoch,
  mustContinue,
  isCompleted: false,
});

/** Throws when the entry cannot follow: a journal that says so was not written by this protocol. */
export function advance(standing: Standing, entry: Entry): Standing {
  switch (entry.kind) {
    case 'starting':
      return demand(standing.kind === 'none' || standing.kind === 'starting', standing, entry, {
        kind: 'starting',
        epoch: entry.epoch,
      });
    case 'started':
      return demand(
        standing.kind === 'starting' && standing.epoch === entry.epoch,
        standing,
        entry,
        holding(entry.epoch, entry.isPaused !== true),
      );
    case 'reserved':
      if (standing.kind !== 'holding' || standing.reserved !== undefined) return impossible(standing, entry);
      return { ...standing, isCompleted: false, reserved: entry.attempt, ...paused(entry) };
    case 'granted':
      return demand(isReserved(standing, entry.attempt), standing, entry, {
        kind: 'granted',
        attempt: entry.attempt,
        isPostCopy: entry.isPostCopy,
        ...paused(entry),
        ...stillTaken(standing),
      });
    case 'aborted':
      return demand(isReserved(standing, entry.attempt), standing, entry, {
        ...holding(standing.kind === 'holding' ? standing.epoch : 0, !isPaused(standing)),
        ...stillTaken(standing),
        ...wasAcross(standing),
      });
    case 'receiving':
      return demand(standing.kind === 'none', standing, entry, { kind: 'receiving', attempt: entry.attempt });
    case 'taken':
      return demand(isReceiving(standing, entry.attempt), standing, entry, {
        ...holding(epochOfTake(entry.attempt), entry.isPaused !== true),
        taken: entry.attempt,
        ...(entry.isPostCopy ? { isPostCopy: true } : {}),
        ...(entry.attempt.volumes === undefined ? {} : { volumes: entry.attempt.volumes }),
      });
    case 'refused':
      return demand(isReceiving(standing, entry.attempt), standing, entry, {
        kind: 'refused',
        attempt: entry.attempt,
      });
    case 'regained':
      return demand(standing.kind === 'granted' || standing.kind === 'holding', standing, entry, {
        ...holding(
          entry.epoch,
          standing.kind === 'granted' ? !isPaused(standing) : standing.kind === 'holding' && standing.mustContinue,
        ),
        ...stillTaken(standing),
      });
    case 'ended':
      return {
        kind: 'ended',
        epoch: entry.epoch,
        ...(entry.givenTo === undefined ? {} : { givenTo: entry.givenTo }),
        ...(entry.isAcross ? { isAcross: true } : {}),
        ...(hasLeftAhead(standing) ? { isPostCopy: true } : {}),
        ...stillTaken(standing),
        ...wasAcross(standing),
      };
    case 'machine':
      return standing.kind === 'holding' ? heard(standing, entry.event) : standing;
    default:
      return unreachable(entry);
  }
}

/** What a journal's entries about one pod amount to. */
export function standingOf(entries: Iterable<Entry>): Standing {
  let standing = NO_STANDING;
  for (const entry of entries) standing = advance(standing, entry);
  return standing;
}

/** Whether the guest left, or is leaving, ahead of its memory. */
export function hasLeftAhead(standing: Standing): boolean {
  return (standing.kind === 'granted' || standing.kind === 'ended') && standing.isPostCopy === true;
}

const paused = ({ isPaused: is }: { readonly isPaused?: true }): { readonly isPaused?: true } =>
  is ? { isPaused: true } : {};

/**
 * How the right came from another object, whatever has become of it since: its source cannot read that in this one's
 * record, and may ask for as long as it has not heard.
 */
function stillTaken(standing: Standing): { readonly taken?: Attempt } {
  if (!('taken' in standing) || standing.taken?.across === undefined) return {};
  const { volumes: _volumes, images: _images, ...taken } = standing.taken;
  return { taken };
}

function wasAcross(standing: Standing): { readonly wasAcross?: true } {
  const attempt =
    standing.kind === 'holding' ? standing.reserved : standing.kind === 'granted' ? standing.attempt : undefined;
  const isKept = standing.kind === 'holding' && standing.wasAcross === true;
  return isKept || attempt?.across !== undefined ? { wasAcross: true } : {};
}

function isPaused(standing: Standing): boolean {
  return (standing.kind === 'holding' || standing.kind === 'granted') && standing.isPaused === true;
}

function heard(standing: Holding, event: MachineEventName): Holding {
  switch (event) {
    case 'completed':
      return { ...standing, isCompleted: true };
    case 'resumed':
      return { ...standing, isCompleted: false, mustContinue: false };
    case 'failed':
      return { ...standing, isCompleted: false };
    case 'stopped':
      return standing;
    default:
      return unreachable(event);
  }
}

function isReserved(standing: Standing, attempt: Attempt): boolean {
  return standing.kind === 'holding' && standing.reserved !== undefined && isSameAttempt(standing.reserved, attempt);
}

function isReceiving(standing: Standing, attempt: Attempt): boolean {
  return standing.kind === 'receiving' && isSameAttempt(standing.attempt, attempt);
}

function demand(isPossible: boolean, standing: Standing, entry: Entry, next: Standing): Standing {
  return isPossible ? next : impossible(standing, entry);
}

function impossible(standing: Standing, entry: Entry): never {
  throw new Error(`the journal has "${entry.kind}" after "${standing.kind}"`);
}
