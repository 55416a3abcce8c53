import type { Plan, Strike } from './plan.ts';

const CRASH_EVERY_MS = 2 * 60_000;

/** The server crashes all the time. */
export function withServerCrashes(plan: Plan): Plan {
  const count = Math.ceil(plan.horizonMs / CRASH_EVERY_MS);
  const crashes = Array.from({ length: count }, (_, index): Strike => {
    return { atMs: (index + 1) * CRASH_EVERY_MS, what: 'crash-server', victim: 0, durationMs: 0 };
  });
  return { ...plan, strikes: [...plan.strikes, ...crashes] };
}
