import { describe, expect, it } from 'vitest';
import { paintFor, widthOf } from './colours.ts';
import { table } from './table.ts';

describe('colours', () => {
  it.each<[string, boolean | undefined, Record<string, string>, boolean]>([
    ['on a terminal', true, {}, true],
    ['in a pipe', undefined, {}, false],
    ['where nobody wants them', true, { NO_COLOR: '1' }, false],
    ['where NO_COLOR says nothing', true, { NO_COLOR: '' }, true],
    ['on a terminal that knows none', true, { TERM: 'dumb' }, false],
  ])('%s', (_, isTTY, environment, isColoured) => {
    const text = paintFor(isTTY === undefined ? {} : { isTTY }, environment)('red', 'no');
    expect(text).toBe(isColoured ? '\u001b[31mno\u001b[39m' : 'no');
  });

  it('take no room', () => {
    const paint = paintFor({ isTTY: true }, {});
    expect(widthOf(paint('red', 'no'))).toBe(2);
    expect(
      table([
        [paint('red', 'a'), 'x'],
        ['bbb', 'y'],
      ]),
    ).toEqual(['\u001b[31ma\u001b[39m     x', 'bbb   y']);
  });
});
