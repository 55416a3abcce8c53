import { expect, it } from 'vitest';
import { resolveOptions } from '../policies/options.ts';
import { mib } from './copy.fixture.ts';
import { monitorOptions } from './monitor-options.ts';
import { newMonitor } from './monitor-state.ts';
import { observe } from './monitor.ts';
import { progressStatus } from './progress-status.ts';

const options = monitorOptions(resolveOptions(undefined).options, { sizeBytes: mib(1100), isPostCopyPossible: true });
const sample = (sentMib: number, leftMib: number) => ({
  state: 'active' as const,
  memory: {
    totalBytes: mib(1000),
    remainingBytes: mib(leftMib),
    transferredBytes: mib(sentMib),
    dirtyBytesPerSecond: 0,
    passes: 1,
  },
  disks: { totalBytes: mib(100), copiedBytes: mib(100) },
});

it('says what is known, and leaves out what is not', () => {
  const first = observe(newMonitor(), options, 0, sample(0, 1000));
  expect(progressStatus(first, 0)).toEqual({
    percent: 0,
    summary: '0%',
    iteration: 1,
    totalBytes: mib(1100),
    transferredBytes: mib(100),
    remainingBytes: mib(1000),
    throughputBytesPerSecond: 0,
    dirtyRateBytesPerSecond: 0,
    time: '1970-01-01T00:00:00Z',
  });
  const second = observe(first.monitor, options, 5000, sample(500, 500));
  expect(progressStatus(second, 5000)).toMatchObject({
    percent: 50,
    secondsLeft: 5,
    throughputBytesPerSecond: mib(100),
    summary: '50%, 5s left (4s to 11s)',
  });
});
