import type { MemorySample, Sample } from './sample.ts';

/**
 * How the passes over memory go. Within a pass what is left always falls, to nearly nothing, and jumps up when the next
 * one begins; so only the beginnings of passes tell whether a copy converges. Who compares each sample with the one
 * before sees progress for ever.
 */
export interface Passes {
  readonly pass: number;
  readonly startedAtMs: number;
  /** What was left when the pass began. */
  readonly startBytes: number;
  /** Whether that was less than ever before, and not by mere chance. */
  readonly isSmallest: boolean;
  /** What the smallest such pass began with. */
  readonly smallestStartBytes: number;
  /** The least that was left in this pass. */
  readonly leastBytes: number;
  readonly copiedDiskBytes: number;
  /** When the copy last came closer to its end. */
  readonly progressedAtMs: number;
  /** Whether the pass has begun just now. */
  readonly begins: boolean;
}

/**
 * A pass must be this part smaller than the smallest one to count: passes of a guest that writes evenly differ by a percent or
 * two, and among many there is always one that is the smallest yet. Slow progress adds up, and counts then.
 */
const SMALLER_BY = 0.04;

const BEFORE_MEMORY = {
  pass: 0,
  startBytes: Number.POSITIVE_INFINITY,
  isSmallest: true,
  smallestStartBytes: Number.POSITIVE_INFINITY,
  leastBytes: Number.POSITIVE_INFINITY,
  copiedDiskBytes: 0,
  begins: false,
} as const;

/** The passes before anything was copied. */
export function noPasses(atMs: number): Passes {
  return { ...BEFORE_MEMORY, startedAtMs: atMs, progressedAtMs: atMs };
}

/**
 * The passes after one more sample. It comes closer to its end with a pass that begins smaller than any before, with
 * every byte of such a pass, and with every byte of a disk; not with the bytes of a pass that is as big as others were.
 */
export function updatePasses(before: Passes, atMs: number, sample: Sample): Passes {
  const copied = Math.max(before.copiedDiskBytes, sample.disks?.copiedBytes ?? 0);
  const diskMoved = copied > before.copiedDiskBytes;
  const { memory } = sample;
  const kept = {
    ...before,
    copiedDiskBytes: copied,
    begins: false,
    progressedAtMs: diskMoved ? atMs : before.progressedAtMs,
  };
  if (!memory) return kept;
  const { passes: pass, remainingBytes } = memory;
  if (before.startBytes !== Number.POSITIVE_INFINITY && pass <= before.pass) {
    const isLess = remainingBytes < before.leastBytes;
    return {
      ...kept,
      leastBytes: Math.min(before.leastBytes, remainingBytes),
      progressedAtMs: isLess && before.isSmallest ? atMs : kept.progressedAtMs,
    };
  }
  const isSmallest = remainingBytes < before.smallestStartBytes * (1 - SMALLER_BY);
  return {
    pass,
    startedAtMs: atMs,
    startBytes: remainingBytes,
    isSmallest,
    smallestStartBytes: isSmallest ? remainingBytes : before.smallestStartBytes,
    leastBytes: remainingBytes,
    copiedDiskBytes: copied,
    progressedAtMs: isSmallest ? atMs : kept.progressedAtMs,
    begins: true,
  };
}

/**
 * What would have to be sent if the guest stood still from now on: the rest of this pass, and what the guest has written
 * since it began. At the end of a pass the rest alone is next to nothing, and says nothing. A guest writes the same places
 * again and again; so no more is reckoned than it wrote in a whole pass before.
 */
export function bytesIfStopped(passes: Passes, atMs: number, memory: MemorySample): number {
  const writtenBytes = (memory.dirtyBytesPerSecond * (atMs - passes.startedAtMs)) / 1000;
  return Math.min(memory.totalBytes, memory.remainingBytes + Math.min(passes.startBytes, writtenBytes));
}
