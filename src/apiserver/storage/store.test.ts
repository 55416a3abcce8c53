import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../env/test.ts';
import { COMMIT_MS_MAX } from './committer.ts';
import { type CommitFault, MemoryEngine } from './memory-engine.ts';
import type { Engine, LogEntry } from './port.ts';
import { StorageError } from './port.ts';
import { type Change, ExpiredRevision, RevisionMismatch, Store, type StoreOptions } from './store.ts';

const text = (content: string) => (revision: number) => JSON.stringify({ content, revision });

/** An engine whose commits wait until they are let go. */
class HeldEngine extends MemoryEngine {
  readonly batches: { append: readonly LogEntry[]; drop: readonly number[] }[] = [];
  readonly #held: (() => void)[] = [];

  override async commit(append: readonly LogEntry[], drop: readonly number[]): Promise<void> {
    this.batches.push({ append, drop });
    await new Promise<void>((resolve) => this.#held.push(resolve));
    await super.commit(append, drop);
  }

  async release(): Promise<void> {
    this.#held.shift()?.();
    await settle();
  }
}

async function settle(): Promise<void> {
  for (let turn = 0; turn < 30; turn++) await Promise.resolve();
}

async function openStore(engine: Engine = new MemoryEngine(), options: Partial<StoreOptions> = {}): Promise<Store> {
  return Store.open(engine, { onFatal: (error) => expect.fail(error.message), ...options });
}

const keys = (items: readonly { key: string }[]): string[] => items.map((item) => item.key);

describe('writing', () => {
  it('begins at revision 1, so that "0" is never real', async () => {
    const store = await openStore();
    expect(store.revision).toBe(1);
    expect(store.oldestRevision).toBe(1);
    const stored = await store.put({ bucket: 'pods', key: 'a/b', expected: 0, encode: text('x') });
    expect(stored).toEqual({ key: 'a/b', revision: 2, text: '{"content":"x","revision":2}', selectable: undefined });
    expect(store.revision).toBe(2);
    expect(store.get('pods', 'a/b')).toBe(stored);
  });

  it('refuses what is not based on the newest state, and says what that is', async () => {
    const store = await openStore();
    const first = await store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('1') });
    for (const expected of [0, 1, 3]) {
      const refusal = await store
        .put({ bucket: 'pods', key: 'a', expected, encode: text('2') })
        .catch((error) => error);
      expect(refusal).toBeInstanceOf(RevisionMismatch);
      expect(refusal.latest).toBe(first);
    }
    await expect(store.delete({ bucket: 'pods', key: 'none', expected: 0, encode: text('') })).rejects.toThrow(
      RevisionMismatch,
    );
    expect(store.revision).toBe(2);
  });

  it('deletes, answering the last state with the revision of the deletion, and creates again', async () => {
    const store = await openStore();
    await store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('1') });
    const gone = await store.delete({ bucket: 'pods', key: 'a', expected: 2, encode: text('last') });
    expect(gone).toMatchObject({ revision: 3, text: '{"content":"last","revision":3}' });
    expect(store.get('pods', 'a')).toBeUndefined();
    expect(store.buckets()).toEqual([]);
    await store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('2') });
    expect(store.get('pods', 'a')?.revision).toBe(4);
    expect(store.buckets()).toEqual(['pods']);
  });

  it('passes on what encode throws, and does not use up a revision', async () => {
    const store = await openStore();
    const encode = (): string => {
      throw new Error('unencodable');
    };
    await expect(store.put({ bucket: 'pods', key: 'a', expected: 0, encode })).rejects.toThrow('unencodable');
    expect((await store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('') })).revision).toBe(2);
  });

  it('treats keys and buckets as data, whatever they are called', async () => {
    const store = await openStore();
    for (const name of ['__proto__', 'constructor', 'toString', 'a\nb', 'ünï/cödé', '']) {
      await store.put({ bucket: name, key: name, expected: 0, encode: text(name) });
      expect(store.get(name, name)?.text).toContain(JSON.stringify(name));
    }
    expect(store.get('hasOwnProperty', 'x')).toBeUndefined();
    expect(store.count('valueOf')).toBe(0);
  });
});

describe('staging and group commit', () => {
  it('shows staged writes to writers only, until they are on disk', async () => {
    const engine = new HeldEngine();
    const store = await openStore(engine);
    const seen: number[] = [];
    store.subscribe('pods', (change) => seen.push(change.revision));
    const first = store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('1') });
    const second = store.put({ bucket: 'pods', key: 'a', expected: 2, encode: text('2') });
    await settle();
    expect(store.latest('pods', 'a')?.revision).toBe(3);
    expect(store.get('pods', 'a')).toBeUndefined();
    expect(store.list('pods').items).toEqual([]);
    expect(store.revision).toBe(1);
    expect(seen).toEqual([]);
    await engine.release();
    expect(await first).toMatchObject({ revision: 2 });
    expect(await second).toMatchObject({ revision: 3 });
    expect(store.get('pods', 'a')?.revision).toBe(3);
    expect(seen).toEqual([2, 3]);
  });

  it('commits what comes during a commit in one batch', async () => {
    const engine = new HeldEngine();
    const store = await openStore(engine);
    const writes = [store.put({ bucket: 'pods', key: 'first', expected: 0, encode: text('') })];
    await settle();
    for (let index = 0; index < 100; index++) {
      writes.push(store.put({ bucket: 'pods', key: `k${index}`, expected: 0, encode: text('') }));
    }
    await settle();
    expect(engine.batches.map((batch) => batch.append.length)).toEqual([1]);
    await engine.release();
    await engine.release();
    await Promise.all(writes);
    expect(engine.batches.map((batch) => batch.append.length)).toEqual([1, 100]);
  });

  it('bounds batches by entries and by size', async () => {
    const engine = new HeldEngine();
    const store = await openStore(engine);
    const big = 'x'.repeat(3 * 1024 * 1024);
    for (let index = 0; index < 4; index++) {
      void store.put({ bucket: 'pods', key: `big${index}`, expected: 0, encode: () => big });
    }
    const small = Array.from({ length: 2000 }, (_, index) =>
      store.put({ bucket: 'pods', key: `small${index}`, expected: 0, encode: text('') }),
    );
    for (let turn = 0; turn < 5; turn++) {
      await settle();
      await engine.release();
    }
    await Promise.all(small);
    expect(engine.batches.map((batch) => batch.append.length)).toEqual([2, 1024, 978]);
  });

  it('lets a writer go on from within a subscription', async () => {
    const store = await openStore();
    const followUps: Promise<unknown>[] = [];
    store.subscribe('pods', (change) => {
      expect(store.revision).toBe(change.revision);
      if (change.revision > 5) return;
      const expected = store.latest('pods', 'a')?.revision ?? 0;
      followUps.push(store.put({ bucket: 'pods', key: 'a', expected, encode: text('again') }));
    });
    await store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('') });
    for (const each of followUps) await each;
    expect(store.revision).toBe(6);
  });
});

describe('failing', () => {
  function faulty(faults: (CommitFault | undefined)[]): MemoryEngine {
    return new MemoryEngine({ fault: () => faults.shift() });
  }

  it('rejects everything staged when the disk is full, then works again with fresh revisions', async () => {
    const engine = faulty([undefined, 'disk-full']);
    const store = await openStore(engine);
    await store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('1') });
    const failing = [
      store.put({ bucket: 'pods', key: 'a', expected: 2, encode: text('2') }),
      store.put({ bucket: 'pods', key: 'a', expected: 3, encode: text('3') }),
      store.delete({ bucket: 'pods', key: 'a', expected: 4, encode: text('4') }),
    ];
    for (const outcome of await Promise.allSettled(failing)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { fatal: false } });
    }
    expect(store.latest('pods', 'a')?.revision).toBe(2);
    expect(store.revision).toBe(2);
    // A writer who based its change on a state that was never stored must not hit another write of that number.
    const next = await store.put({ bucket: 'pods', key: 'a', expected: 2, encode: text('5') });
    expect(next.revision).toBe(6);
    await expect(store.put({ bucket: 'pods', key: 'a', expected: 3, encode: text('6') })).rejects.toThrow(
      RevisionMismatch,
    );
    const reopened = await openStore(engine.crash());
    expect(reopened.get('pods', 'a')).toEqual(next);
    expect([...reopened.changesSince('pods', reopened.oldestRevision)].map((change) => change.revision)).toEqual([6]);
  });

  it('stops for good after a failed sync, and says so once', async () => {
    const fatal: StorageError[] = [];
    const store = await openStore(faulty([undefined, 'failed-sync']), { onFatal: (error) => fatal.push(error) });
    await store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('1') });
    await expect(store.put({ bucket: 'pods', key: 'a', expected: 2, encode: text('2') })).rejects.toThrow(StorageError);
    await expect(store.put({ bucket: 'pods', key: 'b', expected: 0, encode: text('3') })).rejects.toMatchObject({
      fatal: true,
    });
    expect(fatal).toHaveLength(1);
    expect(store.get('pods', 'a')?.revision).toBe(2);
    await store.close();
  });

  it('counts an error that the engine does not name, and a commit that hangs, as fatal', async () => {
    const odd = new MemoryEngine();
    odd.commit = () => Promise.reject(new TypeError('what?'));
    const fatal: StorageError[] = [];
    const first = await openStore(odd, { onFatal: (error) => fatal.push(error) });
    await expect(first.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('') })).rejects.toThrow(StorageError);
    expect(fatal[0]?.cause).toBeInstanceOf(TypeError);

    const clock = new ManualClock();
    const second = await openStore(new HeldEngine(), { clock, onFatal: (error) => fatal.push(error) });
    const hanging = second.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('') });
    await settle();
    clock.advance(COMMIT_MS_MAX);
    await expect(hanging).rejects.toThrow('took longer');
    expect(fatal).toHaveLength(2);
  });

  it('answers a write although a listener throws, and reports the listener', async () => {
    const fatal: StorageError[] = [];
    const store = await openStore(new MemoryEngine(), { onFatal: (error) => fatal.push(error) });
    const seen: string[] = [];
    store.subscribe('pods', () => {
      throw new Error('broken view');
    });
    store.subscribe('pods', (change) => seen.push(change.key));
    await store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('') });
    expect(seen).toEqual(['a']);
    expect(fatal).toHaveLength(1);
  });

  it('refuses writes once closed, after finishing those before', async () => {
    const store = await openStore();
    const last = store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('') });
    const closed = store.close();
    await expect(store.put({ bucket: 'pods', key: 'b', expected: 0, encode: text('') })).rejects.toThrow('closed');
    await expect(last).resolves.toMatchObject({ revision: 2 });
    await closed;
  });

  it('refuses a log that contradicts itself', async () => {
    const entry = (revision: number, previous: number): LogEntry => {
      return { revision, type: 'put', bucket: 'pods', key: 'a', text: '{}', previous };
    };
    for (const entries of [
      [entry(3, 0), entry(2, 3)],
      [entry(2, 0), entry(3, 0)],
      [entry(4, 0), entry(6, 5)],
    ]) {
      const engine = new MemoryEngine();
      engine.load = async (visit) => entries.forEach(visit);
      await expect(openStore(engine)).rejects.toThrow('inconsistent');
    }
  });
});

describe('listing', () => {
  async function filled(): Promise<Store> {
    const store = await openStore();
    // 'a-b/' sorts before 'a/', as it does in etcd.
    for (const key of ['b/1', 'a/2', 'a-b/1', 'a/1', 'a/3', 'c/1']) {
      await store.put({ bucket: 'pods', key, expected: 0, encode: text(key) });
    }
    return store;
  }

  it.each([
    ['everything', {}, ['a-b/1', 'a/1', 'a/2', 'a/3', 'b/1', 'c/1'], 0],
    ['a namespace', { prefix: 'a/' }, ['a/1', 'a/2', 'a/3'], 0],
    ['a page', { prefix: 'a/', limit: 2 }, ['a/1', 'a/2'], 1],
    ['the next page', { prefix: 'a/', limit: 2, after: 'a/2' }, ['a/3'], 0],
    ['after a key that is gone', { prefix: 'a/', after: 'a/1x' }, ['a/2', 'a/3'], 0],
    ['after a key before the prefix', { prefix: 'b/', after: 'a/1' }, ['b/1'], 0],
    ['after a key behind the prefix', { prefix: 'a/', after: 'c/1' }, [], 0],
    ['nothing', { prefix: 'zz/' }, [], 0],
    ['a limit of none', { limit: 0 }, [], 6],
  ])('lists %s', async (_, options, expected, remaining) => {
    const store = await filled();
    const listing = store.list('pods', options);
    expect(keys(listing.items)).toEqual(expected);
    expect(listing).toMatchObject({ remaining, more: remaining > 0, revision: store.revision });
    // The same seen from later must be the same.
    const { revision } = store;
    for (const item of store.list('pods').items.filter((_, index) => index % 2 === 0)) {
      await store.delete({ bucket: 'pods', key: item.key, expected: item.revision, encode: text('gone') });
    }
    await store.put({ bucket: 'pods', key: 'a/2x', expected: 0, encode: text('new') });
    await store.put({ bucket: 'nodes', key: 'a/2x', expected: 0, encode: text('elsewhere') });
    expect(store.list('pods', { ...options, at: revision })).toEqual(listing);
  });

  it('counts with and without a prefix', async () => {
    const store = await filled();
    expect([store.count('pods'), store.count('pods', 'a/'), store.count('pods', 'z/'), store.count('x')]).toEqual([
      6, 3, 0, 0,
    ]);
  });

  it('refuses revisions that it does not know', async () => {
    const store = await openStore(new MemoryEngine(), { historyChangesMax: 2 });
    for (let index = 0; index < 5; index++) {
      await store.put({ bucket: 'pods', key: `${index}`, expected: 0, encode: text('') });
    }
    expect(store.oldestRevision).toBe(4);
    expect(store.list('pods', { at: 4 }).items).toHaveLength(3);
    expect(() => store.list('pods', { at: 3 })).toThrow(ExpiredRevision);
    expect(() => store.list('pods', { at: 7 })).toThrow(ExpiredRevision);
  });
});

describe('changes', () => {
  const summary = (change: Change): unknown => [
    change.type,
    change.key,
    change.revision,
    change.stored.text,
    change.previous()?.text,
  ];

  it('tells a resumed watch what a subscriber was told', async () => {
    const engine = new MemoryEngine();
    const store = await openStore(engine);
    const told: unknown[] = [];
    store.subscribe('pods', (change) => told.push(summary(change)));
    await store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('1') });
    await store.put({ bucket: 'nodes', key: 'n', expected: 0, encode: text('other') });
    await store.put({ bucket: 'pods', key: 'a', expected: 2, encode: text('2') });
    await store.delete({ bucket: 'pods', key: 'a', expected: 4, encode: text('3') });
    await store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('4') });
    expect(told).toHaveLength(4);
    expect([...store.changesSince('pods', 1)].map(summary)).toEqual(told);
    expect([...store.changesSince('pods', 4)].map(summary)).toEqual(told.slice(2));
    expect([...store.changesSince('pods', 99)]).toEqual([]);
    expect([...store.changesSince('unknown', 1)]).toEqual([]);
    const reopened = await openStore(engine.crash());
    expect([...reopened.changesSince('pods', 1)].map(summary)).toEqual(told);
    expect(reopened.revision).toBe(6);
  });

  it('includes changes that come during the iteration, and ends it when overtaken', async () => {
    const store = await openStore(new MemoryEngine(), { historyChangesMax: 3 });
    await store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('') });
    const iterator = store.changesSince('pods', 1)[Symbol.iterator]();
    expect(iterator.next().value.revision).toBe(2);
    await store.put({ bucket: 'pods', key: 'b', expected: 0, encode: text('') });
    expect(iterator.next().value.revision).toBe(3);
    for (const key of ['c', 'd', 'e', 'f']) await store.put({ bucket: 'pods', key, expected: 0, encode: text('') });
    expect(() => iterator.next()).toThrow(ExpiredRevision);
    expect(() => store.changesSince('pods', 3)).toThrow(ExpiredRevision);
  });

  it('does not tell a change to one who subscribes because of it', async () => {
    const store = await openStore();
    const late: number[] = [];
    const stop = store.subscribe('pods', () => {
      stop();
      stop();
      store.subscribe('pods', (change) => late.push(change.revision));
    });
    await Promise.all(['a', 'b'].map((key) => store.put({ bucket: 'pods', key, expected: 0, encode: text('') })));
    expect(late).toEqual([3]);
  });
});

describe('compaction', () => {
  it('drops what has left the window, superseded states before their tombstones, a portion per commit', async () => {
    const engine = new HeldEngine();
    const store = await openStore(engine, { historyChangesMax: 3 });
    const run = async (write: Promise<unknown>): Promise<void> => {
      await settle();
      await engine.release();
      await write;
    };
    await run(store.put({ bucket: 'pods', key: 'a', expected: 0, encode: text('1') }));
    await run(store.put({ bucket: 'pods', key: 'a', expected: 2, encode: text('2') }));
    await run(store.delete({ bucket: 'pods', key: 'a', expected: 3, encode: text('3') }));
    for (const key of ['b', 'c', 'd', 'e']) {
      await run(store.put({ bucket: 'pods', key, expected: 0, encode: text(key) }));
    }
    expect(engine.batches.map((batch) => batch.drop)).toEqual([[], [], [], [], [], [2], [3, 4]]);
    expect([2, 3, 4, 5].map((revision) => engine.read(revision)?.key)).toEqual([undefined, undefined, undefined, 'b']);
  });

  it('catches up on what an earlier process did not get to, in bounded portions', async () => {
    const engine = new MemoryEngine();
    const before = await openStore(engine);
    let expected = 0;
    for (let index = 0; index < 1000; index++) {
      expected = (await before.put({ bucket: 'pods', key: 'a', expected, encode: text('') })).revision;
    }
    const drops: number[] = [];
    const next = engine.crash();
    const commit = next.commit.bind(next);
    next.commit = (append, drop) => {
      drops.push(drop.length);
      return commit(append, drop);
    };
    const store = await openStore(next, { historyChangesMax: 10 });
    expect(store.oldestRevision).toBe(991);
    for (let index = 0; index < 6; index++) {
      expected = (await store.put({ bucket: 'pods', key: 'a', expected, encode: text('') })).revision;
    }
    expect(drops).toEqual([258, 258, 258, 218, 1, 1]);
    const left: number[] = [];
    await next.crash().load((entry) => left.push(entry.revision));
    expect(left).toEqual([996, 997, 998, 999, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007]);
  });
});
