import { beforeAll, expect, it } from 'vitest';
import { IS_KUBERNETES } from './kubernetes/wanted.ts';

/** Whether every cell of long tables is run. */
export const IS_FULL = process.env['GODWIT_TEST_FULL'] === '1';

/** What the draws of this run begin with: the same number draws the same again. */
export const SEED = Number(process.env['GODWIT_TEST_SEED'] ?? 1) || 1;

/** Whether guests that move do so by two migrations each. */
export const IS_PAIRED = process.env['GODWIT_TEST_PAIRED'] === '1';
/** How much of a long table is tried by pairs in a full run, beside all of it without: so many times a sample. */
const PAIRED_TIMES = 2;

/** All of the values in a full run; otherwise so many of them, in their order, as the run's seed draws them. */
export function sample<T>(values: readonly T[], sampleSize: number): T[] {
  if (IS_FULL && !IS_PAIRED) return [...values];
  const count = IS_FULL ? sampleSize * PAIRED_TIMES : sampleSize;
  let state = SEED;
  const left = values.map((_, index) => index);
  const drawn = Array.from({ length: Math.min(count, values.length) }, () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return left.splice(Math.floor((state / 2 ** 32) * left.length), 1)[0] ?? 0;
  });
  return drawn.toSorted((one, other) => one - other).map((index) => values[index] as T);
}

type Define = (name: string, body: () => Promise<void> | void) => void;

/** As many of a table as are tried in a short run; all of them on real Kubernetes, where it shows what such a cluster has to show. */
export function allOnKubernetes(count: number, sampleSize: number): [count: number, sampleSize: number] {
  return [count, IS_KUBERNETES ? count : sampleSize];
}

/**
 * Defines tests as `it` does: of the so many of a table that are each long, only some in a short run, as the run's seed draws them.
 * Each has to do without the others. With `describe` it is groups of tests that are drawn.
 */
export function someOf(count: number, sampleSize: number, define: Define = it): Define {
  const drawn = new Set(sample([...Array.from({ length: count }).keys()], sampleSize));
  let defined = 0;
  beforeAll(() => expect(defined).toBe(count));
  return (name, body) => {
    if (drawn.has(defined++)) define(name, body);
  };
}
