import { assert, asyncProperty, integer, subarray, uniqueArray } from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Plan, PlannedAction, Strike } from './plan.ts';
import { shrink } from './shrink.ts';

const strike = (atMs: number): Strike => ({ atMs, what: 'kill', victim: 0, durationMs: 0 });
const action = (atMs: number): PlannedAction => ({ atMs, what: 'createPods', stream: `action/${atMs}` });
const times = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1);

const plan: Plan = {
  seed: 1,
  scenario: 'pods',
  horizonMs: 1000,
  faults: ['crash', 'stale', 'slow', 'replicas'],
  strikes: times(40).map(strike),
  actions: times(100).map(action),
};

describe('shrinking', () => {
  it('keeps what the failure needs, and nothing else', async () => {
    await assert(
      asyncProperty(
        uniqueArray(integer({ min: 1, max: 40 }), { maxLength: 3 }),
        uniqueArray(integer({ min: 1, max: 100 }), { maxLength: 4 }),
        subarray([...plan.faults]),
        async (strikes, actions, faults) => {
          const has = (items: readonly { readonly atMs: number }[], atMs: number): boolean =>
            items.some((item) => item.atMs === atMs);
          const fails = async (candidate: Plan): Promise<number | undefined> =>
            strikes.every((atMs) => has(candidate.strikes, atMs)) &&
            actions.every((atMs) => has(candidate.actions, atMs)) &&
            faults.every((fault) => candidate.faults.includes(fault))
              ? Math.max(0, ...strikes, ...actions)
              : undefined;
          const small = await shrink(plan, 500, { fails, runsMax: 10_000 });
          expect(small.strikes.map(({ atMs }) => atMs)).toEqual(strikes.sort((a, b) => a - b));
          expect(small.actions.map(({ atMs }) => atMs)).toEqual(actions.sort((a, b) => a - b));
          expect([...small.faults].sort()).toEqual([...faults].sort());
        },
      ),
      { numRuns: 50 },
    );
  });

  it('shortens a run that does not settle', async () => {
    const fails = async ({ horizonMs }: Plan): Promise<number | undefined> =>
      horizonMs >= 100 ? horizonMs + 5000 : undefined;
    const { horizonMs } = await shrink(plan, 6000, { fails, runsMax: 1000 });
    expect(horizonMs).toBeGreaterThanOrEqual(100);
    expect(horizonMs).toBeLessThan(110);
  });

  it('tries no more often than it may, and answers a plan that was seen to fail', async () => {
    let runs = 0;
    const seen: Plan[] = [plan];
    const fails = async (candidate: Plan): Promise<number | undefined> => {
      if (++runs % 3 !== 0) return undefined;
      seen.push(candidate);
      return 10;
    };
    expect(seen).toContain(await shrink(plan, 500, { fails, runsMax: 17 }));
    expect(runs).toBe(17);
  });
});
