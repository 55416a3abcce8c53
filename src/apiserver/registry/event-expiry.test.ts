import { describe, expect, it } from 'vitest';
import { notFound } from '../../api/status.ts';
import { testEnv } from '../../env/test.ts';
import { MemoryEngine } from '../storage/memory-engine.ts';
import { Store } from '../storage/store.ts';
import { EventExpiry } from './event-expiry.ts';

const HOUR_MS = 3_600_000;
const BUCKET = 'events';

async function settle(): Promise<void> {
  for (let turn = 0; turn < 100; turn++) await Promise.resolve();
}

class World {
  readonly env = testEnv();
  readonly store: Store;
  readonly #stopping = new AbortController();
  #running: Promise<void> = Promise.resolve();
  /** What a deletion fails with. */
  failure: Error | undefined;
  /** Whether a deletion leaves what it is about. */
  isKept = false;
  removals = 0;

  private constructor(store: Store) {
    this.store = store;
  }

  static async open(): Promise<World> {
    return new World(await Store.open(new MemoryEngine(), { onFatal: (error) => expect.fail(error.message) }));
  }

  start(): void {
    const remove = async (namespace: string, name: string, resourceVersion: string): Promise<void> => {
      this.removals++;
      if (this.failure) throw this.failure;
      if (this.isKept) return;
      const key = `${namespace}/${name}`;
      const expected = Number(resourceVersion);
      if (this.store.latest(BUCKET, key)?.revision !== expected) throw notFound({ group: '', plural: BUCKET }, name);
      await this.store.delete({ bucket: BUCKET, key, expected, encode: () => '{}' });
    };
    this.#running = new EventExpiry({ env: this.env, store: this.store, remove }).run(this.#stopping.signal);
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async write(key: string, said: object = {}): Promise<void> {
    const expected = this.store.latest(BUCKET, key)?.revision ?? 0;
    const encode = (): string => JSON.stringify({ metadata: {}, ...said });
    await this.store.put({ bucket: BUCKET, key, expected, encode });
  }

  async pass(byMs: number): Promise<void> {
    this.env.clock.advance(byMs);
    await settle();
  }

  get keys(): string[] {
    return this.store.list(BUCKET).items.map(({ key }) => key);
  }
}

describe('events', () => {
  it('go an hour after they were last written', async () => {
    const world = await World.open();
    world.start();
    await world.write('a/once');
    await world.write('a/again');
    await world.pass(HOUR_MS - 1000);
    await world.write('a/again');
    expect(world.keys).toEqual(['a/again', 'a/once']);
    await world.pass(1000);
    expect(world.keys).toEqual(['a/again']);
    await world.pass(HOUR_MS - 1000);
    expect(world.keys).toEqual([]);
    await world.stop();
  });

  it('of an earlier life of the server are as old as they say', async () => {
    const world = await World.open();
    const ago = (ms: number): string => new Date(world.env.clock.now() - ms).toISOString();
    await world.write('a/old', { lastTimestamp: ago(2 * HOUR_MS) });
    await world.write('a/repeated', { eventTime: ago(2 * HOUR_MS), series: { lastObservedTime: ago(HOUR_MS / 2) } });
    await world.write('a/future', { lastTimestamp: ago(-HOUR_MS) });
    await world.write('a/silent', { lastTimestamp: null });
    world.start();
    await world.pass(0);
    expect(world.keys).toEqual(['a/future', 'a/repeated', 'a/silent']);
    await world.pass(HOUR_MS / 2);
    expect(world.keys).toEqual(['a/future', 'a/silent']);
    await world.pass(HOUR_MS / 2);
    expect(world.keys).toEqual([]);
    await world.stop();
  });

  it('in great number go all the same', async () => {
    const world = await World.open();
    world.start();
    for (let index = 0; index < 250; index++) await world.write(`a/${index}`);
    await world.pass(HOUR_MS);
    for (let batch = 0; batch < 3; batch++) await world.pass(0);
    expect(world.keys).toEqual([]);
    await world.stop();
  });

  it('that cannot be deleted are tried again, and not all the time', async () => {
    const world = await World.open();
    world.start();
    await world.write('a/stuck');
    world.failure = new Error('the disk is full');
    await world.pass(HOUR_MS);
    await world.write('a/late');
    await world.pass(HOUR_MS - 1000);
    expect(world.removals).toBe(1);
    world.failure = undefined;
    await world.pass(1000);
    expect(world.keys).toEqual([]);
    await world.stop();
  });

  it('that finalizers keep hold up nobody', async () => {
    const world = await World.open();
    world.isKept = true;
    world.start();
    for (let index = 0; index < 150; index++) await world.write(`a/${index}`);
    await world.pass(HOUR_MS);
    for (let batch = 0; batch < 5; batch++) await world.pass(0);
    expect(world.removals).toBe(150);
    await world.stop();
  });

  it('stay once the server stops', async () => {
    const world = await World.open();
    world.start();
    await world.write('a/one');
    await world.stop();
    await world.pass(2 * HOUR_MS);
    expect([world.keys, world.removals]).toEqual([['a/one'], 0]);
  });
});
