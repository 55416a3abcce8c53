import { expect, it } from 'vitest';
import { durationMs, parseTimeout } from './duration.ts';

it.each([
  ['0', 0],
  ['90s', 90_000],
  ['1h30m', 5_400_000],
  ['24h', 86_400_000],
  ['2d', 172_800_000],
  ['5', undefined],
  ['h', undefined],
  ['1h and more', undefined],
  ['', undefined],
])('%j is %s ms', (text, expected) => expect(durationMs(text)).toBe(expected));

it('of time limits, bare numbers are seconds, as with kubectl', () => {
  expect(parseTimeout('5')).toBe(5000);
  expect(parseTimeout('1m')).toBe(60_000);
  expect(() => parseTimeout('soon')).toThrow('give a span of time');
});
