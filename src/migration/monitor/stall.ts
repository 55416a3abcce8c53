import type { StallOptions } from './monitor-options.ts';

/**
 * Whether passes still get smaller, and where to end a copy whose passes do not.
 *
 * A copy stalls when a pass is not smaller, by the margin, than the smallest of those that began before the window. Then
 * the least is lost where a pass is as small as the smallest one; such a pass is waited for, but with ever less patience:
 * each time it runs out, a pass as small as the smallest since the stall will do, by a margin twice as wide, and the next
 * time is shorter. (Waiting for the smallest of each time alone would end on the crest of a slow wave.)
 */
export interface Stall {
  /** Smallest of the passes that began before the window. */
  readonly smallestBefore: number;
  /** Passes of the window that were smaller than all before them, oldest first. */
  readonly recent: readonly { readonly atMs: number; readonly bytes: number }[];
  readonly search: Search | undefined;
}

interface Search {
  /** A pass as small as this is waited for. */
  readonly wantedBytes: number;
  readonly untilMs: number;
  readonly patienceMs: number;
  readonly margin: number;
  /** Smallest pass since the stall began. */
  readonly smallestBytes: number;
}

/** - `improving`: passes get smaller; `waiting`: they do not, and a smaller one may come; `act`: it gets no better. */
export type StallVerdict = 'improving' | 'waiting' | 'act';

/** With less patience than this nothing is waited for. */
const PATIENCE_MS_MIN = 1000;

/** Before the first pass. */
export const NO_STALL: Stall = { smallestBefore: Number.POSITIVE_INFINITY, recent: [], search: undefined };

/** Takes in a pass that begins with so many bytes, and says what to make of it. */
export function updateStall(
  before: Stall,
  atMs: number,
  bytes: number,
  options: StallOptions,
): { readonly stall: Stall; readonly verdict: StallVerdict } {
  const windowStartMs = atMs - options.progressTimeoutMs;
  const isOld = (pass: { readonly atMs: number }): boolean => pass.atMs <= windowStartMs;
  const left = before.recent.filter(isOld).map((pass) => pass.bytes);
  const smallestBefore = Math.min(before.smallestBefore, ...left);
  const kept = before.recent.filter((pass) => !isOld(pass));
  const smallest = Math.min(smallestBefore, kept.at(-1)?.bytes ?? Number.POSITIVE_INFINITY);
  const recent = bytes < smallest ? [...kept, { atMs, bytes }] : kept;
  const passes = { smallestBefore, recent };
  if (smallestBefore === Number.POSITIVE_INFINITY || bytes < smallestBefore * (1 - options.margin)) {
    return { stall: { ...passes, search: undefined }, verdict: 'improving' };
  }
  if (!options.searchesMinima) return { stall: { ...passes, search: undefined }, verdict: 'act' };
  const search = relaxed(before.search ?? firstSearch(atMs, smallest, options), atMs, bytes, options);
  const isSmallEnough = bytes <= search.wantedBytes * (1 + search.margin) || search.patienceMs < PATIENCE_MS_MIN;
  return { stall: { ...passes, search }, verdict: isSmallEnough ? 'act' : 'waiting' };
}

function firstSearch(atMs: number, smallest: number, options: StallOptions): Search {
  const patienceMs = options.progressTimeoutMs * options.patienceDecayFactor;
  return {
    wantedBytes: smallest,
    untilMs: atMs + patienceMs,
    patienceMs,
    margin: options.margin,
    smallestBytes: Number.POSITIVE_INFINITY,
  };
}

/** The search after one more pass. */
function relaxed(search: Search, atMs: number, bytes: number, options: StallOptions): Search {
  const smallestBytes = Math.min(search.smallestBytes, bytes);
  if (atMs < search.untilMs) return { ...search, smallestBytes };
  const patienceMs = search.patienceMs * options.patienceDecayFactor;
  return {
    wantedBytes: smallestBytes,
    untilMs: atMs + patienceMs,
    patienceMs,
    margin: search.margin * 2,
    smallestBytes,
  };
}
