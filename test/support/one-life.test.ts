import { describe, expect, it } from 'vitest';
import { oneLife } from './one-life.ts';

const [A, B] = ['a'.repeat(32), 'b'.repeat(32)];
const line = (boot: string, count: number, rest = 'memory=ok disk=ok'): string =>
  `guest boot=${boot} count=${count} uptime=${count}.0 ${rest}\n`;
const lines = (boot: string, first: number, last: number): string =>
  Array.from({ length: last - first + 1 }, (_, index) => line(boot, first + index)).join('');

describe('the life of a guest that moves', () => {
  it('is told in order, whatever the order of the logs', () => {
    const logs = new Map([
      ['second', lines(A, 11, 20)],
      ['other', lines(B, 1, 30)],
      ['first', lines(A, 1, 9)],
    ]);
    expect(oneLife(A, logs)).toEqual([
      { place: 'first', first: 1, last: 9 },
      { place: 'second', first: 11, last: 20 },
    ]);
  });
  it('is over where it runs twice', () => {
    const both = new Map([
      ['one', lines(A, 1, 9)],
      ['other', lines(A, 8, 12)],
    ]);
    expect(() => oneLife(A, both)).toThrow(/ran twice from one machine to the next: count=8 comes after count=9/);
    expect(() => oneLife(A, new Map([['one', lines(A, 1, 9) + lines(A, 5, 6)]]))).toThrow(/ran twice in one/);
  });
  it('leaves no part out', () => {
    const apart = new Map([
      ['one', lines(A, 1, 9)],
      ['other', lines(A, 19, 22)],
    ]);
    expect(() => oneLife(A, apart)).toThrow(/ran unheard/);
  });
  it.each(['memory=bad disk=ok', 'memory=ok disk=bad'])('is not whole where the guest says so: %s', (rest) =>
    expect(() => oneLife(A, new Map([['one', lines(A, 1, 3) + line(A, 4, rest)]]))).toThrow(/not whole/),
  );
});
