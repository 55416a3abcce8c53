import { expect, it } from 'vitest';
import { errorText } from './error-text.ts';

const own = new Error('round');
own.cause = own;

it.each([
  [new Error('plain'), 'Error: plain'],
  [
    new TypeError('outer', { cause: new RangeError('inner', { cause: 'root' }) }),
    'TypeError: outer; caused by RangeError: inner; caused by root',
  ],
  ['text', 'text'],
  [undefined, 'undefined'],
  [null, 'null'],
  [Object.create(null), '[Object: null prototype] {}'],
  [own, 'Error: round; caused by Error: round; caused by Error: round; caused by Error: round; caused by Error: round'],
])('tells what was thrown: %s', (error, text) => expect(errorText(error)).toBe(text));
