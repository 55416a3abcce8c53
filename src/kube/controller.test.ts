import assert from 'node:assert/strict';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../api/status.ts';
import type { LogFields, Logger } from '../env/ports.ts';
import { silentLogger, testEnv } from '../env/test.ts';
import {
  Controller,
  type ControllerOptions,
  type Reconcile,
  ReconcileTimeoutError,
  soonest,
  TerminalError,
} from './controller.ts';
import { KubeMetrics } from './metrics.ts';

async function settle(): Promise<void> {
  for (let turn = 0; turn < 50; turn++) await Promise.resolve();
}

function recordingLogger(lines: string[]): Logger {
  const write = (level: string) => (message: string, fields?: LogFields) =>
    void lines.push(`${level} ${message} ${fields?.key as string}: ${fields?.error as string}`);
  const log: Logger = { ...silentLogger, warn: write('warn'), error: write('error'), child: () => log };
  return log;
}

/** A controller at work. */
function running(reconcile: Reconcile, options: Partial<ControllerOptions> = {}) {
  const lines: string[] = [];
  const env = { ...testEnv(), log: recordingLogger(lines) };
  const metrics = new KubeMetrics(env.clock);
  const controller = new Controller({ name: 'test', env, reconcile, metrics, ...options });
  const stop = new AbortController();
  const ended = controller.run(stop.signal);
  const counts = async (): Promise<Record<string, number>> => {
    const pattern = /^controller_runtime_(\w+)\{controller="test"(?:,result="(\w+)")?\} (\d+)$/gm;
    const all = [...(await metrics.render()).matchAll(pattern)].map(([, name, result, value]) => [
      result ?? name,
      Number(value),
    ]);
    return Object.fromEntries(all.filter(([, value]) => value !== 0)) as Record<string, number>;
  };
  const advance = async (ms: number): Promise<void> => {
    await settle();
    env.clock.advance(ms);
    await settle();
  };
  return { controller, clock: env.clock, stop, ended, lines, counts, advance };
}

describe('a controller', () => {
  it('reconciles a key when it is enqueued, and once for many times', async () => {
    const keys: string[] = [];
    const { controller, counts } = running(async (key) => void keys.push(key));
    for (const key of ['a', 'b', 'a']) controller.enqueue(key);
    await settle();
    expect(keys).toEqual(['a', 'b']);
    expect(await counts()).toMatchObject({ success: 2, max_concurrent_reconciles: 1 });
  });

  it('takes keys that came before it ran', async () => {
    const keys: string[] = [];
    const controller = new Controller({ name: 'test', env: testEnv(), reconcile: async (key) => void keys.push(key) });
    controller.enqueue('early');
    void controller.run(new AbortController().signal);
    await settle();
    expect(keys).toEqual(['early']);
    await expect(controller.run(new AbortController().signal)).rejects.toThrow('runs already');
  });

  it('works on as many keys at once as it has workers, and never twice on one', async () => {
    const underWay: string[] = [];
    const { controller, counts } = running(
      (key) => {
        expect(underWay).not.toContain(key);
        underWay.push(key);
        return new Promise(() => undefined);
      },
      { workers: 2 },
    );
    for (const key of ['a', 'b', 'c']) controller.enqueue(key);
    await settle();
    controller.enqueue('a');
    await settle();
    expect(underWay).toEqual(['a', 'b']);
    expect(await counts()).toMatchObject({ active_workers: 2 });
  });

  it('reconciles a key again that changed meanwhile', async () => {
    let release = (): void => undefined;
    let calls = 0;
    const { controller } = running(() => {
      calls++;
      return new Promise((resolve) => (release = resolve));
    });
    controller.enqueue('a');
    await settle();
    controller.enqueue('a');
    await settle();
    expect(calls).toBe(1);
    release();
    await settle();
    expect(calls).toBe(2);
  });

  it('goes by priority, asked anew', async () => {
    const priorities: Record<string, number> = { b: 1 };
    const keys: string[] = [];
    let release = (): void => undefined;
    const { controller } = running(
      (key) => {
        keys.push(key);
        return key === 'first' ? new Promise((resolve) => (release = resolve)) : Promise.resolve();
      },
      { priorityOf: (key) => priorities[key] ?? 0 },
    );
    controller.enqueue('first');
    await settle();
    for (const key of ['a', 'b', 'c']) controller.enqueue(key);
    priorities.c = 2;
    controller.touch('c');
    release();
    await settle();
    expect(keys).toEqual(['first', 'c', 'b', 'a']);
  });

  it('tries again after an error, later each time, and says so', async () => {
    let calls = 0;
    const { controller, advance, lines, counts } = running(async () => {
      if (++calls < 4) throw new ApiError(409, 'Conflict', 'stale');
    });
    controller.enqueue('a');
    await settle();
    expect(calls).toBe(1);
    for (const delayMs of [5, 10, 20]) {
      const before = calls;
      await advance(delayMs - 1);
      expect(calls).toBe(before);
      await advance(1);
      expect(calls).toBe(before + 1);
    }
    expect(lines).toEqual(['warn reconcile failed a: ApiError: stale']);
    expect(controller.queue.failuresOf('a')).toBe(0);
    expect(await counts()).toMatchObject({ error: 3, success: 1, reconcile_errors_total: 3 });
    expect(await counts()).not.toHaveProperty('reconcile_panics_total');
  });

  it('says nothing of one conflict, which the next try knows more about', async () => {
    let calls = 0;
    const { controller, advance, lines, counts } = running(async () => {
      if (++calls === 1) throw new ApiError(409, 'Conflict', 'stale');
    });
    controller.enqueue('a');
    await advance(1000);
    expect(calls).toBe(2);
    expect(lines).toEqual([]);
    expect(await counts()).toMatchObject({ error: 1, success: 1 });
  });

  it('says why a key fails once, until the reason is another, or it has succeeded', async () => {
    const reasons = ['x', 'x', 'y', 'y', 'x', undefined, 'x', 'x'];
    const { controller, advance, lines } = running(async (key) => {
      const reason = key === 'a' ? reasons.shift() : 'x';
      if (reason !== undefined) throw new Error(reason);
      return { requeueAfterMs: 1 };
    });
    controller.enqueue('a');
    for (let tries = 0; tries < 7; tries++) await advance(1000);
    expect(reasons).toEqual([]);
    const told = (reason: string, key = 'a') => `warn reconcile failed ${key}: Error: ${reason}`;
    expect(lines).toEqual([told('x'), told('y'), told('x'), told('x')]);
    controller.enqueue('b');
    await settle();
    expect(lines.at(-1)).toBe(told('x', 'b'));
  });

  it('does not try again after a terminal error, until something changes', async () => {
    let calls = 0;
    const { controller, advance, lines, counts } = running(async () => {
      calls++;
      throw new TerminalError('hopeless', new Error('why'));
    });
    controller.enqueue('a');
    await advance(3_600_000);
    expect(calls).toBe(1);
    expect(lines).toEqual(['error reconcile failed for good a: TerminalError: hopeless; caused by Error: why']);
    expect(await counts()).toMatchObject({ error: 1, reconcile_errors_total: 1, terminal_reconcile_errors_total: 1 });
    controller.enqueue('a');
    await settle();
    expect(calls).toBe(2);
  });

  it.each<[string, () => never]>([
    [
      'a text',
      () => {
        throw 'text' as unknown;
      },
    ],
    [
      'nothing',
      () => {
        throw undefined as unknown;
      },
    ],
    [
      'a null',
      () => {
        throw null as unknown;
      },
    ],
    ['a mistake with types', () => (undefined as unknown as { x: { y: never } }).x.y],
    [
      'a range error',
      () => {
        throw new RangeError('deep');
      },
    ],
    ['a broken assertion', () => assert.fail('never')],
  ])('survives %s being thrown, counts it, and tries again', async (_name, fail) => {
    let calls = 0;
    const { controller, advance, counts } = running(((key: string) => {
      calls++;
      if (key === 'bad' && calls === 1) fail();
      return Promise.resolve();
    }) as Reconcile);
    controller.enqueue('bad');
    controller.enqueue('good');
    await settle();
    expect(calls).toBe(2);
    await advance(5);
    expect(calls).toBe(3);
    expect(await counts()).toMatchObject({
      error: 1,
      success: 2,
      reconcile_panics_total: 1,
      reconcile_errors_total: 1,
    });
  });

  it('calls again when the result asks for it, or earlier when something else does', async () => {
    let calls = 0;
    const { controller, advance, counts } = running(async () => {
      calls++;
      return calls <= 2 ? { requeueAfterMs: 1000 } : {};
    });
    controller.enqueue('a');
    await advance(999);
    expect(calls).toBe(1);
    await advance(1);
    expect(calls).toBe(2);
    controller.enqueue('a', { afterMs: 100 });
    await advance(100);
    expect(calls).toBe(3);
    await advance(10_000);
    expect(calls).toBe(3);
    expect(await counts()).toMatchObject({ requeue_after: 2, success: 1 });
  });

  it.each([
    [0, 2],
    [-5, 2],
    [Number.POSITIVE_INFINITY, 1],
    [undefined, 1],
  ])('takes a result of %s at its word', async (requeueAfterMs, expected) => {
    let calls = 0;
    const { controller } = running(async () => (++calls === 1 ? { requeueAfterMs } : undefined));
    controller.enqueue('a');
    await settle();
    expect(calls).toBe(expected);
  });

  it('takes a result that is no number for a bug', async () => {
    const { controller, counts } = running(async () => ({ requeueAfterMs: Number.NaN }));
    controller.enqueue('a');
    await settle();
    expect(await counts()).toMatchObject({ error: 1, reconcile_panics_total: 1 });
  });

  it('forgets failures when it asks to be called again', async () => {
    let calls = 0;
    const { controller, advance } = running(async () => {
      if (++calls === 1) throw new Error('once');
      return { requeueAfterMs: 1000 };
    });
    controller.enqueue('a');
    await advance(5);
    expect(controller.queue.failuresOf('a')).toBe(0);
  });

  it('aborts what takes too long, and counts that as an error, not as a stop', async () => {
    const reasons: unknown[] = [];
    const { controller, advance, counts, lines } = running(
      (_key, signal) =>
        new Promise((_resolve, reject) => {
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason);
            reject(new Error('cancelled'));
          });
        }),
      { reconcileTimeoutMs: 1000 },
    );
    controller.enqueue('a');
    await advance(1000);
    expect(reasons).toEqual([expect.any(ReconcileTimeoutError)]);
    expect(await counts()).toMatchObject({ error: 1 });
    expect(lines[1]).toContain(
      'ReconcileTimeoutError: the reconcile took longer than 1000 ms; caused by Error: cancelled',
    );
    await advance(5);
    expect(await counts()).toMatchObject({ active_workers: 1 });
  });

  it('holds on to a key whose reconcile does not heed the signal', async () => {
    let calls = 0;
    let release = (): void => undefined;
    const { controller, advance, counts } = running(() => {
      calls++;
      return new Promise((resolve) => (release = resolve));
    });
    controller.enqueue('a');
    await advance(60_000);
    controller.enqueue('a');
    await settle();
    expect(calls).toBe(1);
    release();
    await advance(1);
    expect(calls).toBe(2);
    expect(await counts()).toMatchObject({ success: 1 });
  });

  it('waits for its workers when it stops, and begins nothing new', async () => {
    const log: string[] = [];
    let release = (): void => undefined;
    const { controller, stop, ended, counts } = running((key, signal) => {
      log.push(key);
      signal.addEventListener('abort', () => log.push(`abort ${String(signal.reason)}`));
      return new Promise((_resolve, reject) => (release = () => reject(new Error('cut short'))));
    });
    void ended.then(() => log.push('ended'));
    controller.enqueue('a');
    controller.enqueue('b');
    await settle();
    stop.abort('stop');
    await settle();
    expect(log).toEqual(['a', 'abort stop']);
    release();
    await ended;
    await settle();
    expect(log).toEqual(['a', 'abort stop', 'ended']);
    expect(await counts()).toEqual({ max_concurrent_reconciles: 1 });
    expect(controller.queue.size).toBe(2);
  });

  it('lets the process do other things during a long burst', async () => {
    let clock: { advance(ms: number): void } | undefined;
    let calls = 0;
    const world = running(async () => {
      calls++;
      clock?.advance(1);
    });
    clock = world.clock;
    for (let key = 0; key < 100; key++) world.controller.enqueue(`${key}`);
    for (let turn = 0; turn < 1000; turn++) await Promise.resolve();
    expect(calls).toBe(20);
    await world.advance(1);
    for (let turn = 0; turn < 1000; turn++) await Promise.resolve();
    expect(calls).toBe(40);
  });
});

describe('the soonest of several results', () => {
  it.each([
    [[], {}],
    [[undefined, {}], {}],
    [[{ requeueAfterMs: 5 }, { requeueAfterMs: 3 }, {}], { requeueAfterMs: 3 }],
    [[{ requeueAfterMs: 0 }, { requeueAfterMs: 3 }], { requeueAfterMs: 0 }],
    [[{ requeueAfterMs: Number.POSITIVE_INFINITY }], {}],
  ])('of %j is %j', (results, expected) => expect(soonest(results)).toEqual(expected));
});
