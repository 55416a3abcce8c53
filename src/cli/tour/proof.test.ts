import { describe, expect, it } from 'vitest';
import { type Finding, findingsOf, type Sign, signsIn, silenceOf } from './proof.ts';

const BOOT = '0123456789abcdef0123456789abcdef';
const OTHER = 'fedcba9876543210fedcba9876543210';
const line = (count: number, boot = BOOT, health = 'memory=ok disk=ok'): string =>
  `guest boot=${boot} count=${count} uptime=${(count / 5).toFixed(1)} ${health}`;
const log = (...lines: readonly (number | string)[]): string =>
  lines.map((each) => `${typeof each === 'number' ? line(each) : each}\r\n`).join('');
const before: Sign = { boot: BOOT, count: 3, memory: 'ok', disk: 'ok' };
const failed = (findings: readonly Finding[]): string[] =>
  findings.filter(({ holds }) => !holds).map(({ title, text }) => `${title}: ${text}`);

describe('what a log proves', () => {
  it('of a guest that has moved and goes on', () => {
    const text = log('Linux starts', line(9, OTHER), 1, 2, 'network address=10.0.2.15/24', 3, 4, 5);
    expect(findingsOf(before, text)).toEqual([
      { title: 'same boot', holds: true, text: `${BOOT}, before and after` },
      { title: 'nothing lost', holds: true, text: 'counts 1 to 5: none is missing, none is there twice' },
      { title: 'nothing spoilt', holds: true, text: 'its memory and its disk hold what it wrote there' },
    ]);
    expect(signsIn(`${text}guest boot=`).at(-1)).toMatchObject({ count: 5 });
  });

  it.each([
    ['that has booted again', log(1, 2, 3, line(1, OTHER)), `same boot: it was ${BOOT}, and is ${OTHER}`],
    ['that has lost a count', log(1, 2, 3, 5), 'nothing lost: count 5 comes after 3: what is between is missing'],
    ['that was there twice', log(1, 2, 3, 4, 4), 'nothing lost: count 4 is there again after 4'],
    ['that went back', log(1, 2, 3, 4, 3), 'nothing lost: count 3 is there again after 4'],
    ['that is silent', log(1, 2, 3), 'nothing lost: nothing was heard of it after count 3'],
    [
      'whose disk is another',
      log(3, line(4, BOOT, 'memory=ok disk=bad')),
      'nothing spoilt: at count 4: memory ok, disk bad',
    ],
  ])('of a guest %s', (_what, text, reason) => expect(failed(findingsOf(before, text))).toContain(reason));

  it('where nothing is known of the guest', () => {
    expect(findingsOf(before, log(line(1, OTHER))).some(({ holds }) => holds)).toBe(false);
    expect(signsIn('')).toEqual([]);
  });

  it('takes a line that the console has spoilt for the one that belongs there, and no more', () => {
    const spoilt = line(4).replace('count=4', 'count==4');
    expect(failed(findingsOf(before, log(2, 3, spoilt, 5)))).toEqual([]);
    expect(failed(findingsOf(before, log(2, 3, spoilt, 6)))).toHaveLength(1);
    expect(failed(findingsOf(before, log(2, 3, 'network is up', 5)))).toHaveLength(1);
  });
});

describe('the silence of a guest that moves', () => {
  it('is from the last that was heard in one machine to the first in the other', () => {
    const heard = { inSource: [0, 200, 400, 600], inTarget: [950, 1150, 1360] };
    expect(silenceOf(heard)).toEqual({ silentMs: 350, usualMs: 200 });
  });

  it('is unknown where one of them was not heard', () => {
    expect(silenceOf({ inSource: [1], inTarget: [] })).toBeUndefined();
    expect(silenceOf({ inSource: [], inTarget: [1] })).toBeUndefined();
    expect(silenceOf({ inSource: [5], inTarget: [4] })).toEqual({ silentMs: 0, usualMs: 0 });
  });
});
