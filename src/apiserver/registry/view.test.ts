import { describe, expect, it } from 'vitest';
import { MemoryEngine } from '../storage/memory-engine.ts';
import { Store } from '../storage/store.ts';
import { BucketView } from './view.ts';

async function openStore(): Promise<Store> {
  return Store.open(new MemoryEngine(), { onFatal: (error) => expect.fail(error.message) });
}

async function put(store: Store, key: string): Promise<void> {
  const expected = store.latest('things', key)?.revision ?? 0;
  const encode = (revision: number): string =>
    JSON.stringify({ metadata: { name: key, resourceVersion: `${revision}` } });
  await store.put({ bucket: 'things', key, expected, encode });
}

const names = (objects: readonly { metadata: { name?: string } }[]): unknown[] =>
  objects.map(({ metadata }) => metadata.name);

describe('a view', () => {
  it('shows what is there now, in order of keys, each state as one object', async () => {
    const store = await openStore();
    const view = new BucketView(store, 'things');
    expect(view.get('a', 'x')).toBeUndefined();
    for (const key of ['b/y', 'a/x', 'b/x', 'a-b/x']) await put(store, key);
    expect(names(view.list())).toEqual(['a-b/x', 'a/x', 'b/x', 'b/y']);
    expect(names(view.list('b'))).toEqual(['b/x', 'b/y']);
    expect(view.list('c')).toEqual([]);
    expect(view.list('')).toEqual([]);
    const before = view.get('b', 'y');
    expect(view.get('b', 'y')).toBe(before);
    expect(view.list('b')[1]).toBe(before);
    await put(store, 'b/y');
    expect(view.get('b', 'y')?.metadata.resourceVersion).toBe('6');
    expect(view.get('', 'b')).toBeUndefined();
  });

  it('shows objects without a namespace under the empty one', async () => {
    const store = await openStore();
    const view = new BucketView(store, 'things');
    await put(store, 'n');
    expect(names(view.list(''))).toEqual(['n']);
    expect(view.get('', 'n')?.metadata.name).toBe('n');
    expect(view.get('n', '')).toBeUndefined();
  });

  it('tells every listener of each change, with what was there before, when it shows it', async () => {
    const store = await openStore();
    const view = new BucketView(store, 'things');
    await put(store, 'a/x');
    const told: unknown[] = [];
    const listen = (object: unknown, old: unknown): void => {
      expect(view.get('a', 'x')).toBe(object);
      told.push([object, old]);
    };
    view.onChange(listen);
    view.onChange(listen);
    const first = view.get('a', 'x');
    await put(store, 'a/x');
    const second = view.get('a', 'x');
    const expected = store.latest('things', 'a/x')?.revision ?? 0;
    await store.delete({ bucket: 'things', key: 'a/x', expected, encode: () => '{}' });
    expect(told).toEqual([
      [second, first],
      [second, first],
      [undefined, second],
      [undefined, second],
    ]);
  });
});
