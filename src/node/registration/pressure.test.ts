import { describe, expect, it } from 'vitest';
import type { HostUsage } from '../../env/ports.ts';
import { PressureGauge } from './pressure.ts';

const GIBIBYTE = 2 ** 30;
const PLENTY: HostUsage = {
  memoryAvailableBytes: GIBIBYTE,
  disk: { bytes: 100 * GIBIBYTE, availableBytes: 50 * GIBIBYTE, inodes: 1000, freeInodes: 500 },
  processes: { running: 100, max: 32768 },
};

function pressing(usage: Partial<HostUsage>): string[] {
  const read = new PressureGauge().read({ ...PLENTY, ...usage }, 0);
  return read.filter(({ isPressing }) => isPressing).map(({ type }) => type);
}

describe('pressure on a host', () => {
  it.each<[string, Partial<HostUsage>, string[]]>([
    ['none', {}, []],
    ['too little memory', { memoryAvailableBytes: 50 * 2 ** 20 }, ['MemoryPressure']],
    ['a large disk with a gibibyte left', { disk: { ...PLENTY.disk, availableBytes: 1.1 * GIBIBYTE } }, []],
    ['a large disk with less', { disk: { ...PLENTY.disk, availableBytes: 0.9 * GIBIBYTE } }, ['DiskPressure']],
    ['a small disk', { disk: { ...PLENTY.disk, bytes: 2 ** 26, availableBytes: 2 ** 23 } }, []],
    [
      'a small disk that is full',
      { disk: { ...PLENTY.disk, bytes: 2 ** 26, availableBytes: 2 ** 22 } },
      ['DiskPressure'],
    ],
    ['no inodes left', { disk: { ...PLENTY.disk, freeInodes: 10 } }, ['DiskPressure']],
    ['a disk that counts no inodes', { disk: { ...PLENTY.disk, inodes: 0, freeInodes: 0 } }, []],
    ['too many processes', { processes: { running: 32000, max: 32768 } }, ['PIDPressure']],
    ['an unknown limit of processes', { processes: { running: 100, max: 0 } }, []],
  ])('%s', (_, usage, expected) => expect(pressing(usage)).toEqual(expected));

  it('is said for five minutes after it was last seen', () => {
    const gauge = new PressureGauge();
    const memory = (memoryAvailableBytes: number, nowMs: number) =>
      gauge.read({ ...PLENTY, memoryAvailableBytes }, nowMs)[0];
    expect(memory(0, 0)).toMatchObject({ isPressing: true, reason: 'InsufficientMemory' });
    expect(memory(GIBIBYTE, 299_000)).toMatchObject({ isPressing: true });
    expect(memory(GIBIBYTE, 300_000)).toMatchObject({ isPressing: false, reason: 'SufficientMemory' });
  });
});
