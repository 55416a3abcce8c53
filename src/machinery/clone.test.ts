import { assert, jsonValue, property } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { clone } from './clone.ts';
import { deepEqual } from './equal.ts';

describe('clone', () => {
  it('copies so that neither side sees changes of the other', () => {
    const original = { a: [1, { b: 'x' }], c: null };
    const copy = clone(original);
    expect(copy).toEqual(original);
    (copy.a[1] as { b: string }).b = 'y';
    copy.a.push(2);
    expect(original).toEqual({ a: [1, { b: 'x' }], c: null });
  });

  it('keeps __proto__ as data and leaves the prototype alone', () => {
    const original = JSON.parse('{"__proto__": {"polluted": true}, "constructor": {"prototype": 1}}') as object;
    const copy = clone(original);
    expect(JSON.stringify(copy)).toBe(JSON.stringify(original));
    expect(Object.getPrototypeOf(copy)).toBe(Object.prototype);
    expect('polluted' in copy).toBe(false);
  });

  it('makes an equal copy of any JSON', () => {
    assert(
      property(jsonValue(), (value) => {
        const copy = clone(value);
        return JSON.stringify(copy) === JSON.stringify(value) && deepEqual(copy, value);
      }),
    );
  });
});

describe('deepEqual', () => {
  const cases: [string, unknown, unknown, boolean][] = [
    ['ignores the order of keys', { a: 1, b: 2 }, { b: 2, a: 1 }, true],
    ['minds the order of items', [1, 2], [2, 1], false],
    ['tells null from absent', { a: null }, {}, false],
    ['treats undefined as absent', { a: undefined, b: 1 }, { b: 1 }, true],
    ['treats undefined as absent on the other side', { b: 1 }, { a: undefined, b: 1 }, true],
    ['tells an array from an object', [], {}, false],
    ['tells a number from its string', 1, '1', false],
    ['tells an inherited name from an own one', { toString: 1 }, {}, false],
    ['compares __proto__ as data', JSON.parse('{"__proto__":1}'), JSON.parse('{"__proto__":2}'), false],
    ['sees more fields on the right', { a: 1 }, { a: 1, b: 2 }, false],
    ['compares deeply', { a: [{ b: [1] }] }, { a: [{ b: [1] }] }, true],
  ];
  it.each(cases)('%s', (_, a, b, equal) => {
    expect(deepEqual(a, b)).toBe(equal);
    expect(deepEqual(b, a)).toBe(equal);
  });
});
