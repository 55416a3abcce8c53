import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Bucket, keyAfter, prefixEnd } from './bucket.ts';
import { type Stored, stored } from './model.ts';

const byKey = (a: Stored, b: Stored): number => (a.key < b.key ? -1 : 1);

/** The bucket must look like a sorted copy of a map. */
function expectSame(bucket: Bucket, model: ReadonlyMap<string, Stored>): void {
  const sorted = [...model.values()].sort(byKey);
  expect([...bucket.between(0, bucket.size)]).toEqual(sorted);
  expect(bucket.size).toBe(sorted.length);
}

describe('a bucket', () => {
  it('is empty at first', () => {
    const bucket = new Bucket('pods');
    expect([bucket.size, bucket.get('a'), bucket.delete('a'), bucket.rank('a'), bucket.range('a/')]).toEqual([
      0,
      undefined,
      undefined,
      0,
      { start: 0, end: 0 },
    ]);
    expect([...bucket.between(0, 10)]).toEqual([]);
  });

  it.each([
    ['ascending', (index: number) => index],
    ['descending', (index: number) => 5000 - index],
    ['scattered', (index: number) => (index * 2741) % 5003],
  ])('keeps thousands of %s keys in order, through replacing and deleting', (_, order) => {
    const bucket = new Bucket('pods');
    const model = new Map<string, Stored>();
    const keyOf = (index: number): string => `ns-${order(index) % 7}/pod-${order(index)}`;
    for (let index = 0; index < 5000; index++) {
      const item = stored(keyOf(index), index, '');
      expect(bucket.set(item)).toBe(model.get(item.key));
      model.set(item.key, item);
    }
    expectSame(bucket, model);
    for (let index = 0; index < 5000; index += 3) {
      const item = stored(keyOf(index), index + 10_000, '');
      expect(bucket.set(item)).toBe(model.get(item.key));
      model.set(item.key, item);
    }
    for (let index = 0; index < 5000; index += 2) {
      expect(bucket.delete(keyOf(index))).toBe(model.get(keyOf(index)));
      model.delete(keyOf(index));
    }
    expectSame(bucket, model);
    const sorted = [...model.values()].sort(byKey);
    for (let index = 0; index < 5000; index += 11) {
      const key = keyOf(index);
      expect(bucket.get(key)).toBe(model.get(key));
      expect(bucket.rank(key)).toBe(sorted.filter((each) => each.key < key).length);
    }
    const range = bucket.range('ns-3/');
    expect([...bucket.between(range.start, range.end)]).toEqual(sorted.filter((each) => each.key.startsWith('ns-3/')));
    expect([...bucket.between(range.start + 5, range.start + 9)]).toEqual(
      sorted.slice(range.start + 5, range.start + 9),
    );
    for (const { key } of sorted) bucket.delete(key);
    expect(bucket.size).toBe(0);
    expectSame(bucket, new Map());
  });

  it('finds every prefix, whatever the keys are made of', () => {
    const keys = fc.uniqueArray(
      fc.string({ unit: fc.constantFrom('a', 'b', '-', '/', '0', 'é', '\u0000', '世'), maxLength: 4 }),
    );
    fc.assert(
      fc.property(keys, fc.string({ unit: fc.constantFrom('a', 'b', '-', '/'), maxLength: 2 }), (all, prefix) => {
        const bucket = new Bucket('pods');
        for (const key of all) bucket.set(stored(key, 1, ''));
        const { start, end } = bucket.range(prefix);
        const found = [...bucket.between(start, end)].map((item) => item.key);
        expect(found).toEqual([...all].sort().filter((key) => key.startsWith(prefix)));
        expect(found.every((key) => key < keyAfter(key) && key < prefixEnd(`${key}/`))).toBe(true);
      }),
    );
  });
});
