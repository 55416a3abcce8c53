import { describe, expect, it } from 'vitest';
import type { Clock } from '../env/ports.ts';
import { ManualClock, silentLogger, testEnv } from '../env/test.ts';
import { WorkQueue } from './work-queue.ts';

const never = new AbortController().signal;

function queueOf(options: Partial<ConstructorParameters<typeof WorkQueue>[0]> = {}): {
  queue: WorkQueue;
  clock: ManualClock;
} {
  const env = testEnv();
  return { queue: new WorkQueue({ env, name: 'test', ...options }), clock: env.clock };
}

/** The keys that a worker gets, in order, each done at once. */
function collect(queue: WorkQueue, signal = never): string[] {
  const keys: string[] = [];
  void (async () => {
    for (let key = await queue.next(signal); key !== undefined; key = await queue.next(signal)) {
      keys.push(key);
      queue.done(key);
    }
    keys.push('stopped');
  })();
  return keys;
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
}

/** Counts the timers that are set and not yet cancelled or fired. */
class CountingClock implements Clock {
  readonly inner = new ManualClock();
  pending = 0;
  set = 0;

  now(): number {
    return this.inner.now();
  }

  setTimer(callback: () => void, delayMs: number): { cancel(): void } {
    this.pending++;
    this.set++;
    let isPending = true;
    const end = (): void => {
      if (isPending) this.pending--;
      isPending = false;
    };
    const timer = this.inner.setTimer(() => {
      end();
      callback();
    }, delayMs);
    return {
      cancel: () => {
        end();
        timer.cancel();
      },
    };
  }
}

describe('a work queue', () => {
  it('hands a key to a worker that waits', async () => {
    const { queue } = queueOf();
    const next = queue.next(never);
    queue.add('a');
    expect(await next).toBe('a');
    expect([queue.size, queue.activeSize]).toEqual([0, 1]);
    queue.done('a');
    expect(queue.activeSize).toBe(0);
  });

  it('gives the most urgent of the keys that come in one go to the first worker', async () => {
    const { queue } = queueOf({ priorityOf: (key) => Number(key) });
    const [first, second] = [queue.next(never), queue.next(never)];
    for (const key of ['1', '3', '2']) queue.add(key);
    expect(await Promise.all([first, second])).toEqual(['3', '2']);
    expect(queue.tryNext()).toBe('1');
  });

  it('never gives a key to two workers', async () => {
    const { queue } = queueOf();
    const [first, second] = [queue.next(never), queue.next(never)];
    queue.add('a');
    expect(await first).toBe('a');
    queue.add('a');
    queue.add('b');
    expect(await second).toBe('b');
    const third = queue.next(never);
    queue.done('a');
    expect(await third).toBe('a');
  });

  it('keeps the earliest time of those that a key was added for', async () => {
    const { queue, clock } = queueOf();
    const keys = collect(queue);
    queue.addAfter('a', 1000);
    queue.addAfter('a', 100);
    queue.addAfter('a', 500);
    expect([queue.size, queue.delayedSize]).toEqual([0, 1]);
    clock.advance(99);
    await settle();
    expect(keys).toEqual([]);
    clock.advance(1);
    await settle();
    expect(keys).toEqual(['a']);
    clock.advance(10_000);
    await settle();
    expect(keys).toEqual(['a']);
  });

  it('works at once on a delayed key that is added without a delay', async () => {
    const { queue } = queueOf();
    const keys = collect(queue);
    queue.addAfter('a', 1000);
    queue.add('a');
    await settle();
    expect(keys).toEqual(['a']);
    expect(queue.delayedSize).toBe(0);
  });

  it('waits for the end of the work on a key that falls due meanwhile', async () => {
    const { queue, clock } = queueOf();
    queue.add('a');
    expect(await queue.next(never)).toBe('a');
    queue.addAfter('a', 10);
    const keys = collect(queue);
    await settle();
    clock.advance(20);
    await settle();
    expect(keys).toEqual([]);
    queue.done('a');
    await settle();
    expect(keys).toEqual(['a']);
  });

  it('adds nothing for a delay without end', () => {
    const { queue } = queueOf();
    queue.addAfter('a', Number.POSITIVE_INFINITY);
    expect(queue.delayedSize).toBe(0);
    expect(() => queue.addAfter('a', Number.NaN)).toThrow('no number');
  });

  it('backs off with every failure until the key is forgotten', async () => {
    const { queue, clock } = queueOf();
    const keys = collect(queue);
    for (const delayMs of [5, 10, 20]) {
      queue.addRateLimited('a');
      clock.advance(delayMs - 1);
      await settle();
      expect(keys).toEqual([]);
      clock.advance(1);
      await settle();
      expect(keys.splice(0)).toEqual(['a']);
    }
    expect(queue.failuresOf('a')).toBe(3);
    queue.forget('a');
    queue.addRateLimited('a');
    clock.advance(5);
    await settle();
    expect(keys).toEqual(['a']);
  });

  it('holds the retries of all keys to the overall rate', () => {
    const { queue, clock } = queueOf();
    for (let key = 0; key < 150; key++) queue.addRateLimited(`${key}`);
    clock.advance(5);
    expect([queue.size, queue.delayedSize]).toEqual([100, 50]);
    clock.advance(995);
    expect(queue.size).toBe(110);
    clock.advance(4000);
    expect(queue.size).toBe(150);
  });

  it('ends the wait when the signal aborts, with keys left or not', async () => {
    const { queue } = queueOf();
    const stop = new AbortController();
    const next = queue.next(stop.signal);
    stop.abort();
    expect(await next).toBeUndefined();
    queue.add('a');
    expect(await queue.next(stop.signal)).toBeUndefined();
    expect(queue.size).toBe(1);
    expect(await queue.next(never)).toBe('a');
  });

  it('loses no key to a worker that stops just then', async () => {
    const { queue } = queueOf();
    const stop = new AbortController();
    const [stopping, staying] = [queue.next(stop.signal), queue.next(never)];
    queue.add('a');
    stop.abort();
    expect(await stopping).toBeUndefined();
    expect(await staying).toBe('a');
  });

  it('sets one timer, for what falls due first, and none that nobody waits for', async () => {
    const clock = new CountingClock();
    const { queue } = queueOf({ env: { clock, log: silentLogger } });
    for (let key = 0; key < 1000; key++) queue.addAfter(`${key}`, 1000 + key);
    expect(clock.set).toBe(0);
    const stop = new AbortController();
    const keys = collect(queue, stop.signal);
    expect([clock.set, clock.pending]).toEqual([1, 1]);
    queue.addAfter('first', 10);
    expect([clock.set, clock.pending]).toEqual([2, 1]);
    clock.inner.advance(10);
    await settle();
    expect(keys).toEqual(['first']);
    expect(clock.pending).toBe(1);
    stop.abort();
    await settle();
    expect(keys).toEqual(['first', 'stopped']);
    expect(clock.pending).toBe(0);
  });

  it('is not stopped by a clock that is set back', async () => {
    const inner = new ManualClock();
    let offsetMs = 0;
    const clock: Clock = { now: () => inner.now() + offsetMs, setTimer: inner.setTimer.bind(inner) };
    const { queue } = queueOf({ env: { clock, log: silentLogger } });
    const keys = collect(queue);
    queue.addAfter('a', 1000);
    offsetMs = -3_600_000;
    inner.advance(2000);
    await settle();
    expect(keys).toEqual(['a']);
  });

  it('takes a key whose priority cannot be told for an ordinary one, and says so', () => {
    const errors: string[] = [];
    const log = { ...silentLogger, error: (message: string) => void errors.push(message) };
    const { queue } = queueOf({
      env: { clock: new ManualClock(), log },
      priorityOf: (key) => {
        if (key === 'broken') throw new Error('no');
        return key === 'odd' ? Number.NaN : 1;
      },
    });
    for (const key of ['broken', 'odd', 'good']) queue.add(key);
    expect([queue.tryNext(), queue.tryNext(), queue.tryNext()]).toEqual(['good', 'broken', 'odd']);
    expect(errors).toEqual(['the priority of a key cannot be told', 'the priority of a key is no number']);
  });

  it('treats names of object members like any others', () => {
    const { queue } = queueOf();
    for (const key of ['__proto__', 'constructor']) queue.add(key);
    expect([queue.tryNext(), queue.tryNext(), queue.tryNext()]).toEqual(['__proto__', 'constructor', undefined]);
  });
});
