import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../../meta.ts';
import { changesText } from './changes.ts';

describe('changesText', () => {
  it.each<[JsonObject, JsonObject, string]>([
    [{ a: 1 }, { a: 1 }, ''],
    [{ a: 1, b: 2 }, { a: 2, c: 3 }, '-  a: 1\n+  a: 2\n-  b: 2\n+  c: 3'],
    [{ a: { b: [{ c: 1 }, 2] } }, { a: { b: [{ c: 2 }, 2, 3] } }, '-  a.b[0].c: 1\n+  a.b[0].c: 2\n+  a.b[2]: 3'],
    [{ a: { b: 1 } }, { a: [1] }, '-  a: {"b":1}\n+  a: [1]'],
    [{ a: null }, {}, ''],
  ])('of %j and %j', (old, updated, text) => {
    expect(changesText(old, updated)).toBe(text);
  });

  it('stays short', () => {
    const many = Object.fromEntries(Array.from({ length: 30 }, (_, index) => [`field${index}`, 'x'.repeat(1000)]));
    const lines = changesText({}, many).split('\n');
    expect(lines).toHaveLength(21);
    expect(lines.at(-1)).toBe('... and 10 more lines');
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThan(300);
  });

  it('treats keys of the prototype as data', () => {
    expect(changesText({}, JSON.parse('{"__proto__": 1}') as JsonObject)).toBe('+  __proto__: 1');
    expect(changesText({ constructor: 1 } as JsonObject, {})).toBe('-  constructor: 1');
  });
});
