import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { describeJsonError } from './json-syntax.ts';

describe('describeJsonError', () => {
  it.each([
    ['', 'unexpected end of JSON input'],
    ['  ', 'unexpected end of JSON input'],
    ['{', 'unexpected end of JSON input'],
    ['{"a":', 'unexpected end of JSON input'],
    ['"a', 'unexpected end of JSON input'],
    ['"\\', 'unexpected end of JSON input'],
    ['hunter2', 'invalid character "h" looking for beginning of value, at position 0'],
    ['{"a": hunter2}', 'invalid character "h" looking for beginning of value, at position 6'],
    ['{a:1}', 'invalid character "a" looking for beginning of object key string, at position 1'],
    ['{"a":1,}', 'invalid character "}" looking for beginning of object key string, at position 7'],
    ['{"a" 1}', 'invalid character "1" after object key, at position 5'],
    ['{"a":1 "b":2}', 'invalid character "\\"" after object key:value pair, at position 7'],
    ['[1 2]', 'invalid character "2" after array element, at position 3'],
    ['[1,]', 'invalid character "]" looking for beginning of value, at position 3'],
    ['{} x', 'invalid character "x" after top-level value, at position 3'],
    ['01', 'invalid character "1" after top-level value, at position 1'],
    ['"a\nb"', 'invalid character "\\n" in string literal, at position 2'],
    ['"\\x"', 'invalid character "x" in string escape code, at position 2'],
    ['"\\u12g4"', 'invalid character "g" in string escape code, at position 5'],
    ['+1', 'invalid character "+" looking for beginning of value, at position 0'],
    ['NaN', 'invalid character "N" looking for beginning of value, at position 0'],
  ])('%j: %s', (text, message) => expect(describeJsonError(text)).toBe(message));

  it('is not confused by depth', () =>
    expect(describeJsonError('['.repeat(200_000))).toBe('unexpected end of JSON input'));

  it('quotes one character at most, of whatever JSON.parse refuses', () => {
    const piece = fc.oneof(
      fc.constantFrom('{', '}', '[', ']', ',', ':', '"', '\\', ' ', '1', '-', 'e', 'true', 'secret'),
      fc.json(),
    );
    fc.assert(
      fc.property(fc.array(piece), (pieces) => {
        const text = pieces.join('');
        try {
          JSON.parse(text);
        } catch {
          expect(describeJsonError(text)).toMatch(
            /^(?:unexpected end of JSON input|invalid character ".{1,6}" (?:after|in|looking) .*, at position \d+)$/,
          );
        }
      }),
    );
  });
});
