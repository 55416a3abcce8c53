import { describe, expect, it } from 'vitest';
import { copyPass, dirtiedBytes, type ModelMemory } from './model-memory.ts';

const MIB = 2 ** 20;
const memory: ModelMemory = { bytes: 1024 * MIB, workingSetBytes: 100 * MIB, dirtyBytesPerSecond: 50 * MIB };

/** How much is left to copy after so many passes over a link. */
function left(bandwidthBytesPerSecond: number, passes: number, model = memory): number {
  let bytes = model.bytes;
  for (let pass = 0; pass < passes; pass++) bytes = copyPass(model, bytes, bandwidthBytesPerSecond).leftBytes;
  return bytes;
}

describe('the memory of a model', () => {
  it('is dirtied fast at first, and never beyond its working set', () => {
    expect(dirtiedBytes(memory, 0)).toBe(0);
    expect(dirtiedBytes(memory, 100) / MIB).toBeCloseTo(4.88, 2);
    expect(dirtiedBytes(memory, 3_600_000)).toBe(100 * MIB);
    expect(dirtiedBytes({ ...memory, workingSetBytes: 0 }, 1000)).toBe(0);
    expect(dirtiedBytes({ ...memory, bytes: MIB }, 3_600_000)).toBe(MIB);
  });

  it('is copied in passes that get shorter where the link is faster than the guest', () => {
    expect(copyPass(memory, memory.bytes, 1024 * MIB).durationMs).toBe(1000);
    expect(left(1024 * MIB, 8)).toBeLessThan(1);
    expect(left(40 * MIB, 50)).toBeGreaterThan(25 * MIB);
  });
});
