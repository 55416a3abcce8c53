import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { seededRandom } from '../env/test.ts';
import { Backoff } from './backoff.ts';

it('doubles up to the maximum, each delay in its upper half, until it is reset', () => {
  fc.assert(
    fc.property(
      fc.nat(),
      fc.integer({ min: 1, max: 1_000 }),
      fc.integer({ min: 1, max: 100_000 }),
      (seed, baseMs, maxMs) => {
        const backoff = new Backoff(seededRandom(seed), { baseMs, maxMs });
        for (let round = 0; round < 2; round++) {
          for (let attempt = 0; attempt < 40; attempt++) {
            const limitMs = Math.min(maxMs, baseMs * 2 ** attempt);
            const delayMs = backoff.next();
            expect(delayMs).toBeGreaterThanOrEqual(limitMs / 2);
            expect(delayMs).toBeLessThanOrEqual(limitMs);
          }
          backoff.reset();
        }
      },
    ),
  );
});

it('stays at the maximum however long it goes on', () => {
  const backoff = new Backoff({ ...seededRandom(1), number: () => 0 }, { baseMs: 800, maxMs: 30_000 });
  for (let attempt = 0; attempt < 5_000; attempt++) backoff.next();
  expect(backoff.next()).toBe(15_000);
});
