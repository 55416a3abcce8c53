import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../env/test.ts';
import { openLmdbEngine } from './lmdb-engine.ts';
import { type CommitFault, MemoryEngine } from './memory-engine.ts';
import type { Engine, LogEntry } from './port.ts';
import { ExpiredRevision, RevisionMismatch, Store } from './store.ts';

/**
 * The store against the simplest thing that could be right: a list of all writes, replayed from the start for every
 * question. Writes interleave with commits, failures, crashes and reopening; whatever happens, the store must be
 * the replay of some prefix of the writes that holds every acknowledged one and cuts through no batch.
 */

type Action =
  | { do: 'write'; type: 'put' | 'delete'; bucket: string; key: string; isStale: boolean }
  | { do: 'tick' }
  | { do: 'settle' }
  | { do: 'fault'; fault: CommitFault }
  | { do: 'crash' }
  | { do: 'close' }
  | { do: 'look'; back: number; limit: number; prefix: string };

const key = fc.constantFrom('a/1', 'a/2', 'a/3', 'a-b/1', 'b/1', 'b/2');
const bucket = fc.constantFrom('pods', 'nodes');
const write = fc.record({
  do: fc.constant('write' as const),
  type: fc.constantFrom('put' as const, 'put' as const, 'put' as const, 'delete' as const),
  bucket,
  key,
  isStale: fc.integer({ min: 0, max: 9 }).map((chance) => chance === 0),
});
const look = fc.record({
  do: fc.constant('look' as const),
  back: fc.nat(25),
  limit: fc.integer({ min: 1, max: 7 }),
  prefix: fc.constantFrom('', 'a/', 'b/'),
});
const tick = fc.record({ do: fc.constant('tick' as const) });
const settle = fc.record({ do: fc.constant('settle' as const) });
const close = fc.record({ do: fc.constant('close' as const) });
const crash = fc.record({ do: fc.constant('crash' as const) });
const fault = fc.record({
  do: fc.constant('fault' as const),
  fault: fc.constantFrom('disk-full' as const, 'failed-sync' as const),
});

const windows = fc.constantFrom([1], [3], [10], [1000], [3, 1000], [10, 1000, 2]);

interface Written extends LogEntry {
  outcome: 'pending' | 'acknowledged' | 'refused';
}

/** Where a store lives, and how it comes back. */
interface Machine {
  engine: Engine;
  /** Lets a waiting commit take its next step. */
  tick(): Promise<void>;
  /** Lets everything finish. */
  settle(): Promise<void>;
  arm(fault: CommitFault): void;
  /** The engine of the next process. */
  crash(): Promise<Engine>;
  reopen(): Promise<Engine>;
}

const noop = async (): Promise<void> => {
  for (let turn = 0; turn < 20; turn++) await Promise.resolve();
};

function memoryMachine(seed: number): Machine {
  const gates: (() => void)[] = [];
  const faults: CommitFault[] = [];
  const options = {
    random: seededRandom(seed),
    fault: () => faults.shift(),
    delay: () => new Promise<void>((resolve) => gates.push(resolve)),
  };
  const tick = async (): Promise<void> => {
    gates.shift()?.();
    await noop();
  };
  let engine = new MemoryEngine(options);
  const crashed = async (): Promise<Engine> => {
    gates.length = 0;
    faults.length = 0;
    engine = engine.crash();
    return engine;
  };
  return {
    engine,
    tick,
    async settle() {
      await noop();
      while (gates.length > 0) await tick();
    },
    arm: (fault) => faults.push(fault),
    crash: crashed,
    reopen: crashed,
  };
}

class Run {
  readonly #machine: Machine;
  /** The windows of the processes that follow each other. */
  readonly #windows: readonly number[];
  #opened = 0;
  #store!: Store;
  #writes: Written[] = [];
  #batchEnds = new Set<number>();
  #calls: Promise<unknown>[] = [];
  #fatal = false;
  #hadGap = false;
  /** One watcher, which resumes wherever it was. */
  #seen: number[] = [];
  #lastSeen = 1;

  constructor(machine: Machine, windows: readonly number[]) {
    this.#machine = machine;
    this.#windows = windows;
  }

  async open(engine: Engine): Promise<void> {
    const commit = engine.commit.bind(engine);
    engine.commit = (append, drop) => {
      this.#batchEnds.add(append.at(-1)?.revision ?? 0);
      return commit(append, drop);
    };
    this.#fatal = false;
    this.#store = await Store.open(engine, {
      historyChangesMax: this.#windows[this.#opened++ % this.#windows.length],
      onFatal: () => {
        this.#fatal = true;
      },
    });
    this.#checkRecovered();
    this.#resumeWatch();
  }

  async act(action: Action): Promise<void> {
    switch (action.do) {
      case 'write':
        return this.#write(action);
      case 'tick':
        return this.#machine.tick();
      case 'settle':
        return this.#settle();
      case 'fault':
        return this.#machine.arm(action.fault);
      case 'look':
        return this.#look(action);
      case 'crash':
        return this.open(await this.#machine.crash());
      case 'close': {
        await this.#settle();
        await this.#store.close();
        return this.open(await this.#machine.reopen());
      }
    }
  }

  async finish(): Promise<void> {
    await this.#settle();
    if (this.#fatal) await this.open(await this.#machine.reopen());
    for (let back = 0; back <= this.#store.revision; back++) this.#look({ back, limit: 3, prefix: '' });
    const expected = this.#durable().map((each) => each.revision);
    expect(this.#seen).toEqual(expected.filter((revision) => this.#seen.includes(revision)));
    if (Math.min(...this.#windows) >= this.#writes.length && !this.#hadGap) expect(this.#seen).toEqual(expected);
    await this.#store.close();
  }

  #write(action: Action & { do: 'write' }): void {
    const latest = this.#store.latest(action.bucket, action.key);
    const expected = action.isStale ? (latest?.revision ?? 0) + 1 : (latest?.revision ?? 0);
    if (action.type === 'delete' && expected === 0) return;
    let written: Written | undefined;
    const encode = (revision: number): string => {
      const { type, bucket, key } = action;
      const text = JSON.stringify({ bucket, key, revision, type });
      written = { revision, type, bucket, key, text, previous: expected, outcome: 'pending' };
      this.#writes.push(written);
      return text;
    };
    const call = this.#store[action.type]({ bucket: action.bucket, key: action.key, expected, encode });
    if (action.isStale || this.#fatal) expect(written).toBeUndefined();
    const outcome = async (): Promise<void> => {
      const [result] = await Promise.allSettled([call]);
      if (result.status === 'fulfilled') {
        expect(result.value).toMatchObject({ key: action.key, revision: written?.revision, text: written?.text });
        if (written) written.outcome = 'acknowledged';
        return;
      }
      if (action.isStale && !this.#fatal) expect(result.reason).toBeInstanceOf(RevisionMismatch);
      if (!written) return;
      // After a fatal error nobody knows; after any other, it must never be seen.
      if (!(result.reason as { fatal?: boolean }).fatal) written.outcome = 'refused';
      this.#hadGap = true;
    };
    this.#calls.push(outcome());
  }

  async #settle(): Promise<void> {
    await this.#machine.settle();
    await Promise.all(this.#calls);
  }

  /** After a restart: what the store has is a prefix that loses nothing acknowledged and splits no batch. */
  #checkRecovered(): void {
    const { revision } = this.#store;
    if (revision > 1) expect(this.#batchEnds).toContain(revision);
    for (const each of this.#writes)
      if (each.outcome === 'acknowledged') expect(each.revision).toBeLessThanOrEqual(revision);
    this.#writes = this.#writes.filter((each) => each.outcome !== 'refused' && each.revision <= revision);
    for (const each of this.#writes) each.outcome = 'acknowledged';
    this.#calls = [];
    if (!this.#hadGap) {
      expect(this.#store.oldestRevision).toBeLessThanOrEqual(Math.max(1, revision - Math.min(...this.#windows)));
    }
  }

  #durable(): Written[] {
    return this.#writes.filter((each) => each.outcome !== 'refused' && each.revision <= this.#store.revision);
  }

  #resumeWatch(): void {
    const store = this.#store;
    for (const name of ['pods', 'nodes']) {
      const from = this.#lastSeen;
      const see = (revision: number): void => void this.#seen.push(revision);
      try {
        for (const change of store.changesSince(name, from)) see(change.revision);
      } catch (error) {
        expect(error).toBeInstanceOf(ExpiredRevision);
      }
      store.subscribe(name, (change) => {
        expect(change.revision).toBe(store.revision);
        this.#lastSeen = change.revision;
        see(change.revision);
        this.#checkChange(change.revision, change.previous()?.text);
      });
    }
    this.#seen.sort((a, b) => a - b);
    this.#lastSeen = store.revision;
  }

  #checkChange(revision: number, previousText: string | undefined): void {
    const change = this.#writes.find((each) => each.revision === revision);
    expect(previousText).toBe(this.#writes.find((each) => each.revision === change?.previous)?.text);
  }

  #look({ back, limit, prefix }: { back: number; limit: number; prefix: string }): void {
    const store = this.#store;
    const at = Math.max(0, store.revision - back);
    for (const name of ['pods', 'nodes']) {
      if (at < store.oldestRevision) {
        expect(() => store.list(name, { at })).toThrow(ExpiredRevision);
        expect(() => store.changesSince(name, at)).toThrow(ExpiredRevision);
        continue;
      }
      const wanted = this.#stateAt(name, at).filter((each) => each.key.startsWith(prefix));
      expect(this.#pages(name, at, limit, prefix)).toEqual(wanted);
      if (at === store.revision) {
        for (const each of wanted) expect(store.get(name, each.key)).toMatchObject(each);
        expect(store.count(name, prefix)).toBe(wanted.length);
      }
      const changes = this.#durable().filter((each) => each.bucket === name && each.revision > at);
      expect(
        [...store.changesSince(name, at)].map((change) => {
          this.#checkChange(change.revision, change.previous()?.text);
          return [change.type, change.key, change.revision, change.stored.text];
        }),
      ).toEqual(changes.map((each) => [each.type, each.key, each.revision, each.text]));
    }
  }

  /** Lists page by page, checking what each page says about the rest. */
  #pages(name: string, at: number, limit: number, prefix: string): { key: string; revision: number; text: string }[] {
    const items: { key: string; revision: number; text: string }[] = [];
    const remaining: number[] = [];
    let after: string | undefined;
    for (;;) {
      const page = this.#store.list(name, { at, limit, prefix, after });
      expect(page.revision).toBe(at);
      items.push(...page.items.map(({ key, revision, text }) => ({ key, revision, text })));
      remaining.push(page.remaining + items.length);
      after = page.items.at(-1)?.key;
      if (!page.more) break;
    }
    for (const total of remaining) expect(total).toBe(items.length);
    return items;
  }

  #stateAt(name: string, at: number): { key: string; revision: number; text: string }[] {
    const state = new Map<string, { key: string; revision: number; text: string }>();
    for (const { type, bucket, key, revision, text } of this.#durable()) {
      if (bucket !== name || revision > at) continue;
      if (type === 'put') state.set(key, { key, revision, text });
      else state.delete(key);
    }
    return [...state.values()].sort((a, b) => (a.key < b.key ? -1 : 1));
  }
}

describe('the store is the replay of its writes', () => {
  it('on a memory engine with failures and crashes', async () => {
    const action = fc.oneof(
      { arbitrary: write, weight: 20 },
      { arbitrary: tick, weight: 12 },
      { arbitrary: look, weight: 4 },
      { arbitrary: settle, weight: 2 },
      { arbitrary: crash, weight: 1 },
      { arbitrary: close, weight: 1 },
      { arbitrary: fault, weight: 1 },
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(action, { maxLength: 80, size: 'max' }),
        windows,
        fc.nat(),
        async (actions, windows, seed) => {
          const machine = memoryMachine(seed);
          const run = new Run(machine, windows);
          await run.open(machine.engine);
          for (const each of actions) await run.act(each);
          await run.finish();
        },
      ),
      { numRuns: 400 },
    );
  });

  it('on LMDB', async () => {
    const action = fc.oneof(
      { arbitrary: write, weight: 20 },
      { arbitrary: tick, weight: 5 },
      { arbitrary: look, weight: 4 },
      { arbitrary: settle, weight: 2 },
      { arbitrary: close, weight: 1 },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(action, { maxLength: 60, size: 'max' }), windows, async (actions, windows) => {
        const directory = await mkdtemp(join(tmpdir(), 'godwit-model-'));
        const reopen = (): Promise<Engine> => openLmdbEngine(directory);
        const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
        const machine: Machine = {
          engine: await reopen(),
          tick: turn,
          settle: async () => undefined,
          arm: () => undefined,
          crash: reopen,
          reopen,
        };
        const run = new Run(machine, windows);
        await run.open(machine.engine);
        for (const each of actions) await run.act(each);
        await run.finish();
        await rm(directory, { recursive: true });
      }),
      { numRuns: 25 },
    );
  });
});
