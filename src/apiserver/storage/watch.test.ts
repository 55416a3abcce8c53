import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../env/test.ts';
import { MemoryEngine } from './memory-engine.ts';
import { type Change, ExpiredRevision, Store } from './store.ts';
import { type BucketWatch, SlowWatcher, watchBucket, type WatchOptions } from './watch.ts';

async function openStore(historyChangesMax = 1000, clock?: ManualClock): Promise<Store> {
  const onFatal = (error: Error): void => expect.fail(error.message);
  return Store.open(new MemoryEngine(), { onFatal, historyChangesMax, ...(clock && { clock }) });
}

async function put(store: Store, key: string, bucket = 'pods'): Promise<number> {
  const expected = store.latest(bucket, key)?.revision ?? 0;
  return (await store.put({ bucket, key, expected, encode: (revision) => `${key}@${revision}` })).revision;
}

function watch(store: Store, options: Partial<WatchOptions> = {}): BucketWatch {
  return watchBucket(store, 'pods', {
    since: store.revision,
    signal: new AbortController().signal,
    bufferBytesMax: 1000,
    encode: (change) => `${change.stored.text} `,
    ...options,
  });
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await Promise.resolve();
}

const value = async (watcher: AsyncIterableIterator<string>): Promise<string> => (await watcher.next()).value;

interface Puller {
  readonly since: number;
  readonly iterator: AsyncIterator<string>;
  got: string;
  pulling: Promise<void> | undefined;
}

describe('watchBucket', () => {
  it('replays the past, then follows the present', async () => {
    const store = await openStore();
    await put(store, 'a/1');
    await put(store, 'a/2');
    await put(store, 'n', 'nodes');
    const watcher = watch(store, { since: 2 });
    await put(store, 'a/1');
    expect(await value(watcher)).toBe('a/2@3 a/1@5 ');
    const next = value(watcher);
    await put(store, 'a/3');
    expect(await next).toBe('a/3@6 ');
  });

  it('takes texts of its caller behind what is durable, and none while it replays the past', async () => {
    const store = await openStore();
    await put(store, 'a');
    const watcher = watch(store, { since: 1 });
    watcher.insert(() => 'too early ');
    expect(await value(watcher)).toBe('a@2 ');
    await put(store, 'b');
    watcher.insert(() => `up to ${store.revision} `);
    await put(store, 'c');
    expect(await value(watcher)).toBe('b@3 up to 3 c@4 ');
    const waiting = value(watcher);
    watcher.insert(() => 'alone ');
    expect(await waiting).toBe('alone ');
    await watcher.return?.();
    watcher.insert(() => 'too late ');
    expect((await watcher.next()).done).toBe(true);
  });

  it('finishes behind what is pending', async () => {
    const store = await openStore();
    const watcher = watch(store);
    const first = value(watcher);
    await put(store, 'a');
    expect(await first).toBe('a@2 ');
    await put(store, 'b');
    watcher.finish();
    await put(store, 'c');
    expect(await value(watcher)).toBe('b@3 ');
    expect((await watcher.next()).done).toBe(true);
    const idle = watch(store);
    const waiting = idle.next();
    await settle();
    idle.finish();
    expect((await waiting).done).toBe(true);
  });

  it('joins what has come since the last pull, and all of one commit', async () => {
    const store = await openStore();
    const watcher = watch(store);
    const first = value(watcher);
    await settle();
    await Promise.all(['a', 'b', 'c'].map((key) => put(store, key)));
    expect(await first).toBe('a@2 b@3 c@4 ');
    await put(store, 'd');
    await put(store, 'e');
    expect(await value(watcher)).toBe('d@5 e@6 ');
  });

  it('answers a great deal in parts', async () => {
    const store = await openStore();
    const watcher = watch(store, { bufferBytesMax: 1e6, encode: ({ key }) => key.padEnd(40_000) });
    const first = value(watcher);
    await settle();
    await Promise.all(['a', 'b', 'c', 'd', 'e'].map((key) => put(store, key)));
    const texts = [await first, await value(watcher), await value(watcher)];
    expect(texts.map((text) => text.replaceAll(/ +/g, ' '))).toEqual(['a b ', 'c d ', 'e ']);
  });

  it('begins with the opening, however much that is, before it looks at any change', async () => {
    const store = await openStore();
    const opening = Array.from({ length: 10 }, (_, index) => String(index).padEnd(40_000));
    const watcher = watch(store, { opening, bufferBytesMax: 20 });
    await put(store, 'a');
    let got = '';
    for (let pull = 0; pull < 5; pull++) got += await value(watcher);
    expect(got).toBe(opening.join(''));
    for (let index = 0; index < 9; index++) await put(store, 'b');
    expect(await value(watcher)).toMatch(/^a@2 b@3 .*b@11 $/);
  });

  it('says farewell to errors that it is told how to put', async () => {
    const store = await openStore(2);
    const ends: string[] = [];
    const farewell = (error: unknown): string | undefined => (error instanceof ExpiredRevision ? 'gone' : undefined);
    const late = watch(store, { farewell, onEnd: () => ends.push('late') });
    for (let index = 0; index < 3; index++) await put(store, 'a');
    expect(await value(late)).toBe('gone');
    expect((await late.next()).done).toBe(true);
    const slow = watch(store, { farewell, bufferBytesMax: 3, onEnd: () => ends.push('slow') });
    const first = slow.next();
    await put(store, 'a');
    await first;
    await put(store, 'a');
    await expect(slow.next()).rejects.toThrow(SlowWatcher);
    expect(ends).toEqual(['late', 'slow']);
  });

  it('leaves out other prefixes, and what encode leaves out', async () => {
    const store = await openStore();
    const encode = (change: Change): string | undefined =>
      change.revision % 2 === 0 ? `${change.stored.text} ` : undefined;
    const past = watch(store, { prefix: 'a/', encode });
    for (const key of ['a/1', 'a/2', 'a-b/1', 'b/1', 'a/3']) await put(store, key);
    expect(await value(past)).toBe('a/1@2 a/3@6 ');
    const next = value(past);
    for (const key of ['a/1', 'b/1', 'a/2', 'a/3']) await put(store, key);
    expect(await next).toBe('a/3@10 ');
  });

  it('delivers nothing before a future revision', async () => {
    const store = await openStore();
    const watcher = watch(store, { since: 3 });
    const next = value(watcher);
    for (const key of ['a', 'b', 'c']) await put(store, key);
    expect(await next).toBe('c@4 ');
  });

  it('refuses compacted revisions at once', async () => {
    const store = await openStore(2);
    for (const key of ['a', 'b', 'c', 'd']) await put(store, key);
    expect(() => watch(store, { since: 2 })).toThrow(ExpiredRevision);
    expect(await value(watch(store, { since: 3 }))).toBe('c@4 d@5 ');
  });

  it('ends a replay that the history overtakes', async () => {
    const store = await openStore(1000);
    for (let index = 0; index < 600; index++) await put(store, 'a');
    const watcher = watch(store, { since: 1 });
    expect((await value(watcher)).split(' ')).toHaveLength(501);
    for (let index = 0; index < 1000; index++) await put(store, 'a');
    await expect(watcher.next()).rejects.toThrow(ExpiredRevision);
    expect(await watcher.next()).toEqual({ done: true, value: undefined });
  });

  it('cuts off a consumer that is too slow, once', async () => {
    const store = await openStore();
    const watcher = watch(store, { bufferBytesMax: 20 });
    const first = value(watcher);
    await settle();
    await put(store, 'a');
    expect(await first).toBe('a@2 ');
    for (let index = 0; index < 6; index++) await put(store, 'a');
    await expect(watcher.next()).rejects.toThrow(SlowWatcher);
    expect(await watcher.next()).toEqual({ done: true, value: undefined });
    await put(store, 'a');
    expect(await watcher.next()).toEqual({ done: true, value: undefined });
  });

  it('gives a consumer that is waiting all of one commit, however large', async () => {
    const store = await openStore();
    const watcher = watch(store, { bufferBytesMax: 20 });
    const first = value(watcher);
    await settle();
    await Promise.all(Array.from({ length: 100 }, (_, index) => put(store, `k${index}`)));
    expect((await first).split(' ')).toHaveLength(101);
  });

  it('does not count a replay against the buffer', async () => {
    const store = await openStore();
    for (let index = 0; index < 50; index++) await put(store, 'a');
    const watcher = watch(store, { since: 1, bufferBytesMax: 20 });
    expect((await value(watcher)).split(' ')).toHaveLength(51);
  });

  it.each(['before the first pull', 'while waiting', 'with something pending'])(
    'ends when aborted %s',
    async (when) => {
      const store = await openStore();
      const controller = new AbortController();
      if (when === 'before the first pull') controller.abort();
      const watcher = watch(store, { signal: controller.signal });
      const next = watcher.next();
      await settle();
      if (when === 'with something pending') {
        await put(store, 'a');
        await next;
        await put(store, 'b');
      }
      controller.abort();
      expect(when === 'with something pending' ? await watcher.next() : await next).toEqual({
        done: true,
        value: undefined,
      });
      expect(await watcher.next()).toEqual({ done: true, value: undefined });
    },
  );

  it('ends when returned, also while waiting', async () => {
    const store = await openStore();
    const watcher = watch(store);
    const next = watcher.next();
    await settle();
    await watcher.return?.();
    expect(await next).toEqual({ done: true, value: undefined });
    for await (const _ of watcher) expect.fail('it goes on');
  });

  it('fails alone when its encoder throws', async () => {
    const store = await openStore();
    const broken = watch(store, {
      encode: () => {
        throw new Error('cannot encode');
      },
    });
    const healthy = watch(store);
    const nexts = [broken.next(), healthy.next()];
    await settle();
    await put(store, 'a');
    const [first, second] = await Promise.allSettled(nexts);
    expect(first).toMatchObject({ status: 'rejected', reason: { message: 'cannot encode' } });
    expect(second).toMatchObject({ status: 'fulfilled', value: { value: 'a@2 ' } });
  });

  it('lets others have their turn during a long replay that yields nothing', async () => {
    const clock = new ManualClock();
    const store = await openStore(10_000, clock);
    for (let index = 0; index < 2000; index++) await put(store, `k${index}`);
    let encoded = 0;
    const watcher = watch(store, {
      since: 1,
      encode: (change) => {
        encoded++;
        return change.revision === 1900 ? 'found' : undefined;
      },
    });
    const next = value(watcher);
    await settle();
    expect(encoded).toBe(500);
    for (let turn = 0; turn < 3; turn++) {
      clock.advance(0);
      await settle();
    }
    expect(await next).toBe('found');
  });

  it('refuses to be pulled twice at once', async () => {
    const store = await openStore();
    const watcher = watch(store);
    const first = watcher.next();
    await expect(watcher.next()).rejects.toThrow('twice');
    await put(store, 'a');
    expect((await first).value).toBe('a@2 ');
  });

  it('gives every change once and in order, whenever it starts and however it is pulled', async () => {
    const step = fc.constantFrom('put', 'put', 'put', 'put both', 'pull', 'start', 'settle');
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60, size: 'max' }), async (steps) => {
        const store = await openStore();
        const writes: Promise<unknown>[] = [];
        const watchers: Puller[] = [];
        const start = (): void => {
          const since = store.revision;
          watchers.push({ since, got: '', pulling: undefined, iterator: watch(store, { since, bufferBytesMax: 1e6 }) });
        };
        const pullOnce = async (each: Puller): Promise<void> => {
          each.got += (await each.iterator.next()).value;
          each.pulling = undefined;
        };
        const pull = (): void => {
          for (const each of watchers) {
            each.pulling ??= pullOnce(each);
          }
        };
        start();
        for (const each of steps) {
          if (each === 'start') start();
          if (each === 'pull') pull();
          if (each === 'settle') await settle();
          if (each === 'put' || each === 'put both') writes.push(put(store, 'a'));
          if (each === 'put both') writes.push(put(store, 'b', writes.length % 2 === 0 ? 'pods' : 'nodes'));
          await Promise.resolve();
        }
        await Promise.all(writes);
        await put(store, 'last');
        for (let round = 0; round < 3; round++) {
          pull();
          await settle();
        }
        for (const { since, got } of watchers) {
          const expected = [...store.changesSince('pods', since)].map((change) => `${change.stored.text} `);
          expect(got).toBe(expected.join(''));
        }
      }),
      { numRuns: 200 },
    );
  });
});
