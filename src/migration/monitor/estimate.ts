import { isOver, isPostCopy, isSwitchingOver } from '../../api/copy-state.ts';
import { bytesIfStopped, type Passes } from './passes.ts';
import type { Rates } from './rates.ts';
import type { Sample } from './sample.ts';

/** How long a copy will take from now on; what is unknown is undefined, and `maxMs` too where it may never end. */
export interface Estimate {
  readonly leftMs: number | undefined;
  readonly minMs: number | undefined;
  readonly maxMs: number | undefined;
}

/** Nothing is known. */
export const NO_ESTIMATE: Estimate = { leftMs: undefined, minMs: undefined, maxMs: undefined };

/** The least by which speeds are held to waver: nothing is ever as even as it looks. */
const WAVERING_MIN = 0.1;
const WAVERING_MAX = 0.9;
/** What part of the speed a guest is reckoned to write at most while nobody knows. */
const DIRTY_PART_UNKNOWN = 0.5;

/** What the estimate depends on besides the sample. */
export interface EstimateInput {
  /** Of memory and disks together. */
  readonly sizeBytes: number;
  readonly elapsedMs: number;
  readonly passes: Passes;
  readonly rates: Rates | undefined;
  readonly isGuestStopped: boolean;
  readonly downtimeLimitMs: number;
  /** How long it may take at most: it is given up then. Infinite where nothing ends it. */
  readonly boundMs: number;
}

/**
 * The time that is left: while the guest writes d and b is sent each second, r bytes take r / (b - d), since each pass
 * leaves d / b of what the one before did, until what is left can be sent while the guest stands still.
 */
export function estimate(sample: Sample, input: EstimateInput): Estimate {
  if (isOver(sample.state)) return { leftMs: 0, minMs: 0, maxMs: 0 };
  const cleared = input.rates?.clearedBytesPerSecond ?? 0;
  if (cleared <= 0) return NO_ESTIMATE;
  const { memory } = sample;
  const wavering = Math.min(WAVERING_MAX, Math.max(WAVERING_MIN, input.rates?.wavering ?? WAVERING_MAX));
  const isStill = input.isGuestStopped || isPostCopy(sample.state) || isSwitchingOver(sample.state);
  const dirty = isStill ? 0 : (memory?.dirtyBytesPerSecond ?? 0);
  const written =
    isStill || !memory ? 0 : bytesIfStopped(input.passes, input.elapsedMs, memory) - memory.remainingBytes;
  const bytes = bytesLeft(sample, input.sizeBytes) + written;
  // What the guest writes is unknown until the first pass is over.
  const dirtyMax =
    isStill || (memory && memory.passes > 1) ? dirty : Math.max(dirty, cleared * (1 - wavering) * DIRTY_PART_UNKNOWN);
  const at = (speed: number, written: number): number => convergingMs(bytes, speed, written, input.downtimeLimitMs);
  // In post-copy nothing is given up, so that nothing bounds it but its own speed.
  const boundMs = isPostCopy(sample.state) ? Number.POSITIVE_INFINITY : Math.max(0, input.boundMs);
  const maxMs = Math.min(boundMs, at(cleared * (1 - wavering), dirtyMax));
  const leftMs = Math.min(at(cleared, dirty), maxMs);
  const minMs = Math.min((bytes / (cleared * (1 + wavering))) * 1000, leftMs);
  const converges = at(cleared, dirty) !== Number.POSITIVE_INFINITY;
  return {
    leftMs: converges ? leftMs : undefined,
    minMs,
    maxMs: maxMs === Number.POSITIVE_INFINITY ? undefined : maxMs,
  };
}

function convergingMs(bytes: number, speed: number, written: number, downtimeMs: number): number {
  const atOnceBytes = (speed * downtimeMs) / 1000;
  if (bytes <= atOnceBytes || written <= 0) return (bytes / speed) * 1000;
  if (written >= speed) return Number.POSITIVE_INFINITY;
  return ((bytes - atOnceBytes) / (speed - written)) * 1000 + downtimeMs;
}

/** Percent before the end is reported: the last one is for the end itself. */
const PERCENT_BEFORE_END = 99;

/**
 * How much of a copy is done, by the time that it took and that it will take; never less than before. In the first pass it
 * is no more than the part of the bytes that are over, since a few empty pages make the beginning look fast.
 */
export function percentDone(
  before: number,
  elapsedMs: number,
  sample: Sample,
  { leftMs }: Estimate,
  sizeBytes: number,
): number {
  if (sample.state === 'completed') return 100;
  if (leftMs === undefined || isOver(sample.state)) return before;
  const byTime = elapsedMs + leftMs > 0 ? elapsedMs / (elapsedMs + leftMs) : 0;
  const part = Math.min(byTime, partCopied(sample, sizeBytes));
  return Math.max(before, Math.min(PERCENT_BEFORE_END, Math.floor(part * 100)));
}

function partCopied(sample: Sample, sizeBytes: number): number {
  if (sample.memory && sample.memory.passes > 1) return 1;
  const total = Math.max(sizeBytes, (sample.memory?.totalBytes ?? 0) + (sample.disks?.totalBytes ?? 0));
  return total > 0 ? 1 - Math.min(1, bytesLeft(sample, sizeBytes) / total) : 0;
}

/** What is left of disks and of this pass; of memory as a whole while no pass has begun. */
function bytesLeft({ memory, disks }: Sample, sizeBytes: number): number {
  const disksLeft = disks ? Math.max(0, disks.totalBytes - disks.copiedBytes) : 0;
  return disksLeft + (memory?.remainingBytes ?? Math.max(0, sizeBytes - (disks?.totalBytes ?? 0)));
}
