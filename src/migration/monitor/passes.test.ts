import { describe, expect, it } from 'vitest';
import { bytesIfStopped, noPasses, type Passes, updatePasses } from './passes.ts';
import type { Sample } from './sample.ts';

const look = (passes: number, remainingBytes: number): Sample => ({
  state: 'active',
  memory: { totalBytes: 1000, remainingBytes, transferredBytes: 0, dirtyBytesPerSecond: 100, passes },
});

/** What is known after looks at one second each. */
function after(...samples: readonly Sample[]): Passes {
  return samples.reduce((passes, sample, index) => updatePasses(passes, index * 1000, sample), noPasses(0));
}

describe('progress', () => {
  it.each<[string, Sample[], number]>([
    ['is every byte of the first pass', [look(1, 1000), look(1, 900), look(1, 899)], 2000],
    ['is not the same again', [look(1, 1000), look(1, 900), look(1, 900)], 1000],
    ['is a smaller pass', [look(1, 1000), look(2, 900)], 1000],
    ['is every byte of a smaller pass', [look(1, 1000), look(2, 900), look(2, 10)], 2000],
    ['is not a pass as big as one before', [look(1, 1000), look(2, 500), look(3, 500), look(3, 1)], 1000],
    ['is not a pass that is smaller by chance', [look(1, 1000), look(2, 500), look(3, 490)], 1000],
    ['is what small steps add up to', [look(1, 1000), look(2, 500), look(3, 490), look(4, 479)], 3000],
  ])('%s', (_, samples, progressedAtMs) => expect(after(...samples)).toMatchObject({ progressedAtMs }));

  it('is every byte of a disk', () => {
    const disks = (copiedBytes: number): Sample => ({ state: 'none', disks: { totalBytes: 100, copiedBytes } });
    expect(after(disks(0), disks(10), disks(10))).toMatchObject({ progressedAtMs: 1000, begins: false });
  });
});

describe('what is to be sent if the guest stands still', () => {
  it.each<[string, Sample[], number, number]>([
    ['all of it at first', [look(1, 1000)], 0, 1000],
    ['what is left, and what was written since the pass began', [look(1, 1000), look(2, 400), look(2, 100)], 3000, 300],
    ['never more than was written in a whole pass', [look(1, 1000), look(2, 50), look(2, 10)], 9000, 60],
    ['never more than there is', [look(1, 900)], 9000, 1000],
  ])('%s', (_, samples, atMs, expected) => {
    const memory = samples.at(-1)?.memory;
    expect(memory && bytesIfStopped(after(...samples), atMs, memory)).toBe(expected);
  });
});
