import { credible, type Sign, signsOfLife } from './guests.ts';

/** Proofs from the guest itself that it went from one machine to another: the same one, whole, and never in two at once. */

/** A machine that a guest ran in, told by its log, and what it counted there. */
export interface Stay {
  readonly place: string;
  readonly first: number;
  readonly last: number;
}

/**
 * A line that is cut in two by the move is whole on neither side, and those that a damaged byte made incredible count for
 * nothing. More than that is a guest that ran where nobody heard it.
 */
const LINES_LOST_MAX = 4;

/**
 * The machines that a boot of a guest ran in, one after the other. Throws where it ran in two at once, went back in time,
 * was not heard for a while, or found its memory or disk to be other than it left it.
 */
export function oneLife(boot: string, logs: ReadonlyMap<string, string>): Stay[] {
  const stays = [...logs]
    .map(([place, log]) => stayOf(place, boot, credible(signsOfLife(log))))
    .filter((stay) => stay !== undefined)
    .toSorted((one, other) => one.first - other.first);
  for (const [index, stay] of stays.slice(1).entries()) expectNext(`from one machine to the next`, stays[index], stay);
  return stays;
}

function stayOf(place: string, boot: string, all: readonly Sign[]): Stay | undefined {
  const signs = all.filter((sign) => sign.boot === boot);
  for (const { count, memory, disk } of signs)
    if (memory !== 'ok' || (disk !== 'ok' && disk !== 'none'))
      throw new Error(`the guest is not whole: memory=${memory} disk=${disk} at count=${count} in ${place}`);
  for (const [index, { count }] of signs.slice(1).entries()) {
    const before = signs[index]?.count ?? 0;
    expectNext(`in ${place}`, { place, first: before, last: before }, { place, first: count, last: count });
  }
  const [first, last] = [signs[0], signs.at(-1)];
  return first && last ? { place, first: first.count, last: last.count } : undefined;
}

function expectNext(where: string, before: Stay | undefined, after: Stay): void {
  if (!before) return;
  if (after.first <= before.last)
    throw new Error(`the guest ran twice ${where}: count=${after.first} comes after count=${before.last}`);
  if (after.first - before.last > 1 + LINES_LOST_MAX)
    throw new Error(`the guest ran unheard ${where}: count=${after.first} comes right after count=${before.last}`);
}
