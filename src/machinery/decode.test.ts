import * as fc from 'fast-check';
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
  it('quotes nothing of a malformed body but one character', () => {
    const refused = (): unknown => decodeJson(bytes('{"password": hunter2}'));
    expect(refused).toThrow('invalid character "h" looking for beginning of value, at position 13');
    expect(refused).not.toThrow('unter2');
  });
  it.each([
    ['{"a":[0,1e999]}', 'the number 1e999 is out of range, at a[1]'],
    ['{"a":-1e999}', 'the number 1e999 is out of range, at a'],
    [`{"a":${'9'.repeat(400)}}`, `the number ${'9'.repeat(32)}... is out of range, at a`],
    ['{"a":9007199254740993}', 'the number 9007199254740993 is out of range, at a'],
    ['9223372036854775807', 'the number 9223372036854775807 is out of range'],
  ])('refuses %s, which would be stored as another number', (text, message) =>
    expect(() => decodeJson(bytes(text))).toThrow(message),
  );
  it.each(['9007199254740992', '-9007199254740991', '-0', '0.1', '1e-999', '1.7976931348623157e308'])(
    'takes the number %s',
    (text) => expect(decodeJson(bytes(text)).value).toBe(Number(text)),
  );
  it('refuses half a surrogate pair, in keys and values, and says where', () => {
    expect(() => decodeJson(bytes('{"a":["\\ud83d\\ude00","\\ud83d"]}'))).toThrow('surrogate pair is no text, at a[1]');
    expect(() => decodeJson(bytes('{"\\uDE00":1}'))).toThrow('surrogate');
    expect(decodeJson(bytes('"\\\\ud83d"')).value).toBe('\\ud83d');
  });
  it('gives what JSON.parse gives for any value', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        if (text.includes('__proto__') || /\\ud[89a-f]/.test(text)) return;
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
  it.each(['a: .inf', 'a: [-.inf, 1]', 'a: .nan', 'a: 9007199254740993', 'a: 0xffffffffffffffff'])(
    'refuses %s, which JSON cannot say or would change',
    (text) => expect(() => decodeYaml(bytes(text))).toThrow('is out of range'),
  );
  it('tells of keys that are there twice, by line', () => {
    const text =
      'metadata:\n  name: a\n  name: b\nlist:\n- {x: 1, "x": 2}\nbase: &b {k: 1}\nother:\n  <<: *b\n  k: 2\n';
    const { value, repeatedLines } = decodeYaml(bytes(text));
    expect(value).toMatchObject({ metadata: { name: 'b' }, list: [{ x: 2 }], other: { k: 2 } });
    expect(repeatedLines).toEqual(['line 3: key "name" already set in map', 'line 5: key "x" already set in map']);
    expect(decodeYaml(bytes('a: 1\n'.repeat(100))).repeatedLines).toHaveLength(16);
  });
  it('refuses more aliases than anyone needs, each of which would cost a walk', () => {
    const aliases = (count: number): string =>
      Array.from({ length: count }, (_, index) => `k${index}: &a${index} v\nl${index}: *a${index}`).join('\n');
    expect(decodeYaml(bytes(aliases(100))).value).toMatchObject({ l99: 'v' });
    expect(() => decodeYaml(bytes(aliases(101)))).toThrow('Excessive alias count');
  });
  it('refuses YAML that would take too long to read, where JSON of that size is read', () => {
    const long = 'x'.repeat(600 * 1024);
    expect(() => decodeYaml(bytes(`a: ${long}`))).toThrow('limit is 524288 for YAML');
    expect(decodeYaml(bytes(`{"a": "${long}"}`)).value).toEqual({ a: long });
  });
  it('reads whole numbers as numbers', () =>
    expect(decodeYaml(bytes('a: [1, -2, 0x10, 1e3, 1_000]')).value).toEqual({ a: [1, -2, 16, 1000, 1000] }));
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
