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
  });
  it('show a guest that ran twice, in one log or in two', () => {
    expect(assertNeverDoubled([line(A, 1) + line(A, 2), line(A, 3), line(B, 1)])).toBe(4);
    expect(() => assertNeverDoubled([line(A, 1) + line(A, 1)])).toThrow(/ran twice: .* in logs 0 and 0/);
    expect(() => assertNeverDoubled([line(A, 4), line(B, 1), line(A, 4)])).toThrow(/count=4 is in logs 0 and 2/);
  });
});
