/** The best that a node can be for one of the things that are scored; the worst is zero. */
export const SCORE_MAX = 100;

/** Stretches raw scores so that the highest becomes the best; all of them stay where none is above zero. */
export function stretched(scores: readonly number[]): number[] {
  const highest = Math.max(0, ...scores);
  return highest === 0 ? [...scores] : scores.map((score) => Math.floor((score * SCORE_MAX) / highest));
}

/** The same the other way round: the lowest raw score is the best. */
export function stretchedReversed(scores: readonly number[]): number[] {
  return stretched(scores).map((score) => SCORE_MAX - score);
}
