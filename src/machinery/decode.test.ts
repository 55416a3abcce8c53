import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ApiError } from '../api/status.ts';
import { decodeJson, decodeYaml, NESTING_DEPTH_MAX } from './decode.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);

describe('JSON bodies', () => {
  it('names duplicate fields by their path', () => {
    const { value, duplicates } = decodeJson(bytes('{"a":1,"b":[{"c":1},{"d":2, "d" : 3}],"\\u0061":2}'));
    expect(value).toEqual({ a: 2, b: [{ c: 1 }, { d: 3 }] });
    expect(duplicates).toEqual(['b[1].d', 'a']);
  });
  it('tells keys from values that look like keys', () => {
    expect(decodeJson(bytes('{"a":"a","b":["a","a"],"c":"\\"a\\":"}')).duplicates).toEqual([]);
  });
  it.each(['', '{', '{"a":}', 'nul', '{"a":1}x', '\u0000'])('refuses %j with 400', (text) =>
    expect(() => decodeJson(bytes(text))).toThrow(ApiError),
  );
  it('refuses bytes that are not UTF-8', () =>
    expect(() => decodeJson(Uint8Array.of(0x22, 0xff, 0x22))).toThrow('not valid UTF-8'));
  it('refuses __proto__, escaped or not, and says where', () => {
    expect(() => decodeJson(bytes('{"a":{"__proto__":{}}}'))).toThrow('at a.__proto__');
    expect(() => decodeJson(bytes('{"\\u005f_proto__":{}}'))).toThrow('__proto__');
  });
  it('refuses excessive depth, and takes the deepest allowed', () => {
    const nested = (depth: number): string => '['.repeat(depth) + ']'.repeat(depth);
    expect(() => decodeJson(bytes(nested(100_000)))).toThrow('nested deeper');
    expect(() => decodeJson(bytes(nested(NESTING_DEPTH_MAX + 1)))).toThrow('nested deeper');
    expect(decodeJson(bytes(nested(NESTING_DEPTH_MAX))).duplicates).toEqual([]);
  });
  it('gives what JSON.parse gives for any value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        if (text.includes('__proto__')) return;
        expect(decodeJson(bytes(text))).toEqual({ value: JSON.parse(text), duplicates: [] });
      }),
    );
  });
});

describe('YAML bodies', () => {
  it('reads YAML as Kubernetes does: no dates, merge keys, 1.1 booleans', () => {
    const { value } = decodeYaml(bytes('a: 2026-01-01T00:00:00Z\nb: &x {c: yes}\nd:\n  <<: *x\n  e: 010\n'));
    expect(value).toEqual({ a: '2026-01-01T00:00:00Z', b: { c: true }, d: { c: true, e: 8 } });
  });
  it('refuses an alias bomb', () => {
    const lines = ['a: &a [x,x,x,x,x,x,x,x,x]'];
    for (let index = 1; index < 9; index++)
      lines.push(
        `${'abcdefghi'[index]}: &${'abcdefghi'[index]} [${Array.from({ length: 9 }, () => `*${'abcdefghi'[index - 1]}`).join(',')}]`,
      );
    expect(() => decodeYaml(bytes(lines.join('\n')))).toThrow(ApiError);
  });
  it.each(['a: [', 'a: *nothing', `${'- '.repeat(5000)}x`, '{'.repeat(5000)])('refuses bad input with 400', (text) =>
    expect(() => decodeYaml(bytes(text))).toThrow(ApiError),
  );
  it('never fails with anything but an ApiError', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[-a:&*{}[\] \n"'|>!?#,]*$/)), (text) => {
        for (const decode of [decodeYaml, decodeJson]) {
          try {
            decode(bytes(text));
          } catch (error) {
            expect(error).toBeInstanceOf(ApiError);
          }
        }
      }),
      { numRuns: 500 },
    );
  });
});
