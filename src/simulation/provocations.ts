import type { Plan, PlannedAction, Strike } from './plan.ts';
import type { ActionName } from './user.ts';

/** Plans in which planted bugs have to show. */

const CRASH_EVERY_MS = 2 * 60_000;

/** The server crashes all the time. */
export function withServerCrashes(plan: Plan): Plan {
  const count = Math.ceil(plan.horizonMs / CRASH_EVERY_MS);
  const crashes = Array.from({ length: count }, (_, index): Strike => {
    return { atMs: (index + 1) * CRASH_EVERY_MS, what: 'crash-server', victim: 0, durationMs: 0 };
  });
  return { ...plan, strikes: [...plan.strikes, ...crashes] };
}

const DEATH_EVERY_MS = 20_000;
/** Far enough from any simple fraction that everybody's turn comes. */
const GOLDEN_RATIO = 0.618;

/** One component after the other is killed, all the time. */
export function withDeaths(plan: Plan): Plan {
  const count = Math.ceil(plan.horizonMs / DEATH_EVERY_MS);
  const deaths = Array.from({ length: count }, (_, index): Strike => {
    return { atMs: (index + 1) * DEATH_EVERY_MS, what: 'kill', victim: (index * GOLDEN_RATIO) % 1, durationMs: 0 };
  });
  return { ...plan, strikes: [...plan.strikes, ...deaths] };
}

/** What the user does, and when. */
export type Act = readonly [atMs: number, what: ActionName];

/** A short run in which nothing happens but this, and what strikes. */
export function onlyWith(plan: Plan, horizonMs: number, acts: readonly Act[], strikes: readonly Strike[] = []): Plan {
  const actions = acts.map(([atMs, what], index): PlannedAction => ({ atMs, what, stream: `provoked/${index}` }));
  return { ...plan, horizonMs, faults: [], strikes, actions };
}

/** The same again and again. */
export function repeated(what: ActionName, times: number, fromMs: number, everyMs: number): readonly Act[] {
  return Array.from({ length: times }, (_, index) => [fromMs + index * everyMs, what] as const);
}

/** Godwit's own controllers. */
export const CONTROLLERS = /^controllers/;

/** What holds migrations, and guests, in the paths of requests. */
export const MIGRATIONS = '/virtualmachineinstancemigrations';
export const GUESTS = '/virtualmachineinstances';
