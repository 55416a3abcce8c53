import { median } from '../figures.ts';

/** What a move of a guest took, by this host's clock, from when it was asked for. */
export interface Move {
  /** Until the guest was heard at its target. */
  readonly totalMs: number;
  /** Until whoever moved it says that it is over. */
  readonly settledMs: number;
  /** From its last line at the source to its first at the target; the time between two lines is in it. */
  readonly downtimeMs: number;
}

/** Each figure's own median. */
export function medianMove(moves: readonly Move[]): Move {
  const of = (field: keyof Move): number => median(moves.map((move) => move[field]));
  return { totalMs: of('totalMs'), settledMs: of('settledMs'), downtimeMs: of('downtimeMs') };
}
