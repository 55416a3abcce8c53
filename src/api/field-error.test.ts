import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { show } from './field-error.ts';

describe('values in messages', () => {
  it('are JSON where they are short', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 2 }), (value) => {
        const json = JSON.stringify(value);
        if (json.length <= 1024 && !json.includes('__proto__')) expect(show(value)).toBe(json);
      }),
    );
    expect(show(undefined)).toBe('null');
    expect(show({ a: undefined, b: 1 })).toBe('{"b":1}');
  });

  it.each([
    ['text', 'x'.repeat(3_000_000), /^"x{1023}\.\.\.$/],
    ['a list', Array.from({ length: 1_000_000 }, () => 'x'), /^\["x","x",.*\.\.\.$/],
    ['an object', { a: 'y'.repeat(3_000_000) }, /^\{"a":"y+\.\.\.$/],
  ])('are cut where %s is long, however often it is shown', (_name, value, expected) => {
    for (let time = 0; time < 10_000; time++) show(value);
    expect(show(value)).toMatch(expected);
    expect(show(value)).toHaveLength(1027);
  });
});
