import { describe, expect, it } from 'vitest';
import { assertNeverDoubled, signsOfLife } from './guests.ts';

const [A, B] = ['a'.repeat(32), 'b'.repeat(32)];
const line = (boot: string, count: number): string =>
  `guest boot=${boot} count=${count} uptime=${count}.0 memory=ok disk=none\n`;

describe('the signs of life in a serial log', () => {
  it('are whole lines, among others', () => {
    const log = `ready boot=${A} count=0\n${line(A, 1)}answer boot=${A} count=1\r\nguest boot=${A} cou`;
    expect(signsOfLife(log)).toEqual([{ boot: A, count: 1, memory: 'ok', disk: 'none' }]);
    expect(signsOfLife(line(A, 7).replace('\n', '\r\n'))).toHaveLength(1);
    expect(signsOfLife(line(A, 7).replace('ne\n', ''))).toEqual([]);
  });
  it('are what guests say, good or bad, and not what a damaged byte made of it', () => {
    const said = (memory: string, disk: string): string => line(A, 7).replace('ok', memory).replace('none', disk);
    expect(signsOfLife(said('bad', 'ok') + said('ok', 'bad')).map(({ memory, disk }) => [memory, disk])).toEqual([
      ['bad', 'ok'],
      ['ok', 'bad'],
    ]);
    expect(signsOfLife(said('ok', 'okk') + said('ook', 'ok'))).toEqual([]);
  });
  it('show a guest that ran twice, in one log or in two', () => {
    const lines = (boot: string, ...counts: number[]): string => counts.map((count) => line(boot, count)).join('');
    expect(assertNeverDoubled([lines(A, 1, 2), lines(A, 3, 4), lines(B, 1, 2)])).toBe(6);
    expect(() => assertNeverDoubled([lines(A, 1, 2, 1, 2)])).toThrow(/ran twice: .*count=1 is in logs 0 and 0/);
    expect(() => assertNeverDoubled([lines(A, 3, 4), lines(B, 1, 2), lines(A, 4, 5)])).toThrow(
      /count=4 is in logs 0 and 2/,
    );
  });
  it('count for nothing where a number stands alone', () =>
    expect(assertNeverDoubled([lines10(), line(A, 11).replace('11', '111'), line(A, 111)])).toBe(10));
});

/** The first ten signs of a guest. */
function lines10(): string {
  return Array.from({ length: 10 }, (_, index) => line(A, index + 1)).join('');
}
