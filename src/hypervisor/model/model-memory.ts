/** The memory of a model guest, as mathematics: nothing is ever stored. */

export interface ModelMemory {
  readonly bytes: number;
  /** What the guest writes over and over; the rest it leaves alone once it is there. */
  readonly workingSetBytes: number;
  /** How much it writes, counting what it writes twice twice. */
  readonly dirtyBytesPerSecond: number;
}

/**
 * How much of the memory differs from a copy that was whole, after the guest was executed for so long. Writes hit their
 * working set at random, so that fewer and fewer of them hit what is clean.
 */
export function dirtiedBytes({ bytes, workingSetBytes, dirtyBytesPerSecond }: ModelMemory, executedMs: number): number {
  const reachableBytes = Math.min(bytes, workingSetBytes);
  if (reachableBytes <= 0) return 0;
  const writtenBytes = (dirtyBytesPerSecond * executedMs) / 1000;
  return reachableBytes * (1 - Math.exp(-writtenBytes / reachableBytes));
}

/** One pass over what is dirty while the guest is executed: how long it takes, and how much is dirty after it. */
export interface CopyPass {
  readonly durationMs: number;
  readonly leftBytes: number;
}

/** Copies so much over a link, while the guest goes on writing. Whether passes get shorter is up to both. */
export function copyPass(memory: ModelMemory, toCopyBytes: number, bandwidthBytesPerSecond: number): CopyPass {
  const durationMs = (1000 * toCopyBytes) / bandwidthBytesPerSecond;
  return { durationMs, leftBytes: dirtiedBytes(memory, durationMs) };
}
