import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../env/test.ts';
import { type Before, lexicographic } from './indexed-heap.ts';
import { KeySchedule } from './key-schedule.ts';
import { QueueStats } from './queue-stats.ts';

/** The queue as one would explain it: a list of keys, searched and sorted for every question. */
class NaiveSchedule {
  readonly #priorities: ReadonlyMap<string, number>;
  #queued: { key: string; dueMs: number; sequence: number; priority: number | undefined }[] = [];
  readonly #worked = new Set<string>();
  #sequence = 0;

  constructor(priorities: ReadonlyMap<string, number>) {
    this.#priorities = priorities;
  }

  add(key: string, dueMs: number, nowMs: number): void {
    const known = this.#queued.find((item) => item.key === key);
    if (known && known.priority !== undefined) known.priority = this.#priorityOf(key);
    else if (dueMs <= nowMs) {
      this.#queued = this.#queued.filter((item) => item !== known);
      this.#queued.push({ key, dueMs: nowMs, sequence: this.#sequence++, priority: this.#priorityOf(key) });
    } else if (known) known.dueMs = Math.min(known.dueMs, dueMs);
    else this.#queued.push({ key, dueMs, sequence: this.#sequence++, priority: undefined });
  }

  touch(key: string): void {
    const known = this.#queued.find((item) => item.key === key);
    if (known && known.priority !== undefined) known.priority = this.#priorityOf(key);
  }

  take(nowMs: number): string | undefined {
    this.promote(nowMs);
    const [best] = this.#queued
      .filter((item) => item.priority !== undefined && !this.#worked.has(item.key))
      .sort((a, b) => (b.priority ?? 0) - (a.priority ?? 0) || a.sequence - b.sequence);
    if (!best) return undefined;
    this.#queued = this.#queued.filter((item) => item !== best);
    this.#worked.add(best.key);
    return best.key;
  }

  done(key: string): void {
    this.#worked.delete(key);
    this.touch(key);
  }

  promote(nowMs: number): void {
    const due = this.#queued
      .filter((item) => item.priority === undefined && item.dueMs <= nowMs)
      .sort((a, b) => a.dueMs - b.dueMs || a.sequence - b.sequence);
    for (const item of due) {
      item.priority = this.#priorityOf(item.key);
      item.sequence = this.#sequence++;
    }
  }

  get worked(): string[] {
    return [...this.#worked];
  }

  counts(): object {
    const delayed = this.#queued.filter((item) => item.priority === undefined);
    return {
      ready: this.#queued.length - delayed.length,
      delayed: delayed.length,
      worked: this.#worked.size,
      nextDueMs: delayed.length === 0 ? undefined : Math.min(...delayed.map((item) => item.dueMs)),
    };
  }

  depths(): Record<string, number> {
    const depths: Record<string, number> = {};
    for (const { priority } of this.#queued) {
      if (priority !== undefined) depths[priority] = (depths[priority] ?? 0) + 1;
    }
    return depths;
  }

  #priorityOf(key: string): number {
    return this.#priorities.get(key) ?? 0;
  }
}

const key = fc.constantFrom('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
const priority = fc.integer({ min: -2, max: 2 });
const command = fc.oneof(
  { weight: 4, arbitrary: fc.record({ do: fc.constant('add' as const), key, delayMs: fc.constant(0) }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constant('add' as const), key, delayMs: fc.integer({ min: 1, max: 20 }) }),
  },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('change' as const), key, priority, isTouched: fc.boolean() }) },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('take' as const) }) },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('done' as const), which: fc.nat() }) },
  { weight: 2, arbitrary: fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 15 }) }) },
);

describe('the order of keys', () => {
  it('is that of the naive queue, whatever happens when', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 120, size: 'max' }), (commands) => {
        const priorities = new Map<string, number>();
        const stats = new QueueStats();
        const schedule = new KeySchedule((key) => priorities.get(key) ?? 0, { stats, idleCountMin: 2 });
        const naive = new NaiveSchedule(priorities);
        let nowMs = 1000;
        for (const step of commands) {
          if (step.do === 'add') {
            for (const queue of [schedule, naive]) queue.add(step.key, nowMs + step.delayMs, nowMs);
          } else if (step.do === 'change') {
            priorities.set(step.key, step.priority);
            if (step.isTouched) for (const queue of [schedule, naive]) queue.touch(step.key);
          } else if (step.do === 'take') {
            expect(schedule.take(nowMs)).toBe(naive.take(nowMs));
          } else if (step.do === 'done') {
            const worked = naive.worked[step.which % Math.max(1, naive.worked.length)];
            if (worked !== undefined) for (const queue of [schedule, naive]) queue.done(worked, nowMs);
          } else nowMs += step.ms;
          const { readyCount: ready, delayedCount: delayed, workedCount: worked, nextDueMs } = schedule;
          expect({ ready, delayed, worked, nextDueMs }).toEqual(naive.counts());
          expect(Object.fromEntries([...stats.depths].filter(([, depth]) => depth > 0))).toEqual(naive.depths());
        }
      }),
      { numRuns: 500 },
    );
  });

  it('never hides a ready key behind a delayed one of higher priority', () => {
    const schedule = new KeySchedule((key) => (key === 'urgent' ? 100 : 0));
    schedule.add('urgent', 50, 0);
    schedule.add('plain', 0, 0);
    expect(schedule.take(0)).toBe('plain');
    expect(schedule.take(49)).toBeUndefined();
    expect(schedule.take(50)).toBe('urgent');
  });

  it('takes a key that has fallen due before a ready one of lower priority, without a timer', () => {
    const schedule = new KeySchedule((key) => (key === 'urgent' ? 1 : 0));
    schedule.add('urgent', 50, 0);
    schedule.add('plain', 0, 0);
    expect(schedule.take(50)).toBe('urgent');
  });

  it('lets a priority fall as well as rise, and keeps the place in the line', () => {
    const priorities = new Map([['a', 5]]);
    const schedule = new KeySchedule((key) => priorities.get(key) ?? 0);
    for (const key of ['a', 'b', 'c']) schedule.add(key, 0, 0);
    priorities.set('a', 0);
    schedule.add('a', 0, 1);
    priorities.set('c', -1);
    schedule.touch('c');
    schedule.add('d', 0, 2);
    expect([1, 2, 3, 4].map(() => schedule.take(3))).toEqual(['a', 'b', 'd', 'c']);
  });

  it('asks for the priority anew when a delayed key falls due', () => {
    const priorities = new Map([['late', 9]]);
    const schedule = new KeySchedule((key) => priorities.get(key) ?? 0);
    schedule.add('late', 10, 0);
    priorities.set('late', -9);
    schedule.add('plain', 0, 0);
    expect(schedule.take(10)).toBe('plain');
  });

  it('runs a key again that was added while it was worked on, but not before it is done', () => {
    const schedule = new KeySchedule(() => 0);
    schedule.add('a', 0, 0);
    expect(schedule.take(0)).toBe('a');
    schedule.add('a', 0, 1);
    schedule.add('b', 0, 2);
    expect(schedule.readyCount).toBe(2);
    expect(schedule.take(2)).toBe('b');
    expect(schedule.take(2)).toBeUndefined();
    schedule.done('a', 3);
    expect(schedule.take(3)).toBe('a');
  });

  it('refuses the end of work that nobody began', () => {
    const schedule = new KeySchedule(() => 0);
    expect(() => schedule.done('a', 0)).toThrow('not worked on');
    schedule.add('a', 0, 0);
    expect(() => schedule.done('a', 0)).toThrow('not worked on');
  });

  it('remembers at most as many idle keys as there are others, and a few', () => {
    const schedule = new KeySchedule(() => 0, { idleCountMin: 10 });
    for (let index = 0; index < 1000; index++) schedule.add(`${index}`, 0, 0);
    for (let left = 999; left >= 0; left--) {
      schedule.done(schedule.take(0) as string, 0);
      expect(schedule.knownCount).toBeLessThanOrEqual(left + Math.max(10, left + 1));
    }
    expect(schedule.knownCount).toBe(10);
  });

  it('leaves no key half queued where the priority cannot be told', () => {
    let isBroken = true;
    const schedule = new KeySchedule(() => {
      if (isBroken) throw new Error('broken');
      return 0;
    });
    expect(() => schedule.add('a', 0, 0)).toThrow('broken');
    expect(schedule.readyCount).toBe(0);
    schedule.add('b', 5, 0);
    expect(() => schedule.take(5)).toThrow('broken');
    expect(schedule.delayedCount).toBe(1);
    isBroken = false;
    expect(schedule.take(5)).toBe('b');
  });
});

describe('the cost of an operation', () => {
  /** Comparisons of the dearest operation there was, at `count` keys, ready and delayed ones alike. */
  function comparisonsMax(count: number, priorityCount: number): number {
    let comparisons = 0;
    let most = 0;
    const counting: Before = (...pair) => {
      comparisons++;
      return lexicographic(...pair);
    };
    const random = seededRandom(count);
    const anyPriority = (): number => Math.floor(random.number() * priorityCount);
    const anyDue = (): number => (random.number() < 0.5 ? 0 : 1000 + random.number() * 1e6);
    const priorities = new Map<string, number>();
    const priorityOf = (key: string): number => priorities.get(key) ?? (Number(key.slice(5)) * 7919) % priorityCount;
    const schedule = new KeySchedule(priorityOf, { isBefore: counting });
    const measured = (operation: () => void): void => {
      comparisons = 0;
      operation();
      most = Math.max(most, comparisons);
    };
    const keys = Array.from({ length: count }, (_, index) => `name-${index}`);
    for (const key of keys) schedule.add(key, anyDue(), 0);
    for (let step = 0; step < 20_000; step++) {
      const key = keys[Math.floor(random.number() * count)] as string;
      priorities.set(key, anyPriority());
      const kind = step % 4;
      if (kind === 0) measured(() => schedule.touch(key));
      else if (kind === 1) measured(() => schedule.add(key, anyDue(), 0));
      else {
        let taken: string | undefined;
        measured(() => (taken = schedule.take(0)));
        if (taken === undefined) continue;
        const worked = taken;
        measured(() => schedule.done(worked, 0));
        measured(() => schedule.add(worked, anyDue(), 0));
      }
    }
    return most;
  }

  it.each([
    { count: 1000, priorityCount: 10 },
    { count: 1000, priorityCount: 1e9 },
    { count: 100_000, priorityCount: 10 },
    { count: 100_000, priorityCount: 1e9 },
    { count: 1_000_000, priorityCount: 10 },
  ])('is a few comparisons per level of a heap: $count keys, $priorityCount priorities', ({ count, priorityCount }) => {
    // One step down a heap compares four children and the item. A key that changes its priority may leave one heap and
    // enter another, and so may the lines that it leaves and enters.
    const levels = Math.ceil(Math.log(count) / Math.log(4)) + 1;
    expect(comparisonsMax(count, priorityCount)).toBeLessThanOrEqual(2 * 5 * levels);
  });
});
