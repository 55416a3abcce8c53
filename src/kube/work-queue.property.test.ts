import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { sleep } from '../env/ports.ts';
import { testEnv } from '../env/test.ts';
import { WorkQueue } from './work-queue.ts';

/** The queue with workers that take their time, some of whom leave: what must hold whatever they do. */

const WORKERS = 3;

const step = fc.record({
  do: fc.constantFrom('add', 'addAfter', 'addRateLimited', 'forget', 'touch'),
  key: fc.constantFrom('a', 'b', 'c', 'd', 'e'),
  delayMs: fc.integer({ min: 0, max: 50 }),
  passMs: fc.constantFrom(0, 0, 1, 7, 30),
});
const history = fc.array(step, { maxLength: 60, size: 'max' });

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

it('works on every key after it was added, not before it is due, and never twice at once', async () => {
  await fc.assert(
    fc.asyncProperty(history, fc.nat(60), fc.nat(20), async (steps, leavesAt, workMs) => {
      const env = testEnv();
      const queue = new WorkQueue({ env, name: 'test', priorityOf: (key) => key.charCodeAt(0) % 2 });
      /** Adds that no work has followed yet: when they are due, by key. */
      const owed = new Map<string, number[]>();
      const underWay = new Set<string>();
      const work = async (signal: AbortSignal): Promise<void> => {
        for (let key = await queue.next(signal); key !== undefined; key = await queue.next(signal)) {
          expect(underWay).not.toContain(key);
          expect(Math.min(...(owed.get(key) ?? []))).toBeLessThanOrEqual(env.clock.now());
          underWay.add(key);
          owed.delete(key);
          await sleep(env.clock, workMs);
          underWay.delete(key);
          queue.done(key);
        }
      };
      const owe = (key: string, delayMs: number): void => {
        owed.set(key, [...(owed.get(key) ?? []), env.clock.now() + delayMs]);
      };
      const stops = Array.from({ length: WORKERS }, () => new AbortController());
      const workers = stops.map((stop) => work(stop.signal));
      for (const [index, { do: what, key, delayMs, passMs }] of steps.entries()) {
        if (index === leavesAt) stops[0]?.abort();
        if (what === 'add' || what === 'addAfter') owe(key, what === 'add' ? 0 : delayMs);
        // Its delay is the queue's own business, but at least this long.
        if (what === 'addRateLimited') owe(key, 5);
        if (what === 'addAfter') queue.addAfter(key, delayMs);
        else queue[what as 'add' | 'addRateLimited' | 'forget' | 'touch'](key);
        await settle();
        env.clock.advance(passMs);
        await settle();
      }
      for (let round = 0; round < 200; round++) {
        env.clock.advance(100);
        await settle();
      }
      // Keys that failed often are due in minutes.
      for (let round = 0; owed.size > 0 && round < 100; round++) {
        env.clock.advance(100_000);
        await settle();
      }
      expect([...owed.keys()]).toEqual([]);
      expect([queue.size, queue.delayedSize, queue.activeSize]).toEqual([0, 0, 0]);
      for (const stop of stops) stop.abort();
      await Promise.all(workers);
    }),
    { numRuns: 200 },
  );
});
