import type { Sample } from './sample.ts';

/**
 * How fast a copy is, from what was really sent. (What the hypervisor says of its own speed can be far off: it does not
 * count the time in which it was waiting for the next pass.)
 */
export interface Rates {
  readonly atMs: number;
  readonly sentBytes: number;
  readonly pass: number;
  readonly remainingBytes: number;
  /** Bytes that went over the wire each second; undefined until two samples are there. */
  readonly sentBytesPerSecond: number | undefined;
  /** Bytes by which what is left shrinks each second: more than what is sent where pages are empty or packed. */
  readonly clearedBytesPerSecond: number | undefined;
  /** By what part the speed wavers around its mean. */
  readonly wavering: number;
}

const WAVERING_AT_FIRST = 0.5;

/** The rates after one more sample. The weight is what the newest second counts. */
export function updateRates(before: Rates | undefined, atMs: number, sample: Sample, weight: number): Rates {
  const now = {
    atMs,
    sentBytes: (sample.memory?.transferredBytes ?? 0) + (sample.disks?.copiedBytes ?? 0),
    pass: sample.memory?.passes ?? 0,
    remainingBytes: sample.memory?.remainingBytes ?? 0,
  };
  if (!before || now.sentBytes < before.sentBytes) {
    return { ...now, sentBytesPerSecond: undefined, clearedBytesPerSecond: undefined, wavering: WAVERING_AT_FIRST };
  }
  const seconds = (atMs - before.atMs) / 1000;
  if (seconds <= 0) return before;
  const sent = (now.sentBytes - before.sentBytes) / seconds;
  const shrunk = now.pass === before.pass ? (before.remainingBytes - now.remainingBytes) / seconds : 0;
  const share = 1 - (1 - weight) ** seconds;
  const sentBytesPerSecond = blend(before.sentBytesPerSecond, sent, share);
  const deviation = sentBytesPerSecond > 0 ? Math.abs(sent - sentBytesPerSecond) / sentBytesPerSecond : 1;
  return {
    ...now,
    sentBytesPerSecond,
    clearedBytesPerSecond: blend(before.clearedBytesPerSecond, Math.max(sent, shrunk), share),
    wavering: Math.min(1, blend(before.wavering, deviation, share)),
  };
}

function blend(mean: number | undefined, value: number, share: number): number {
  return mean === undefined ? value : mean + (value - mean) * share;
}

/** How long so many bytes take on the wire; infinite while nothing is known. */
export function sendingMs(rates: Rates | undefined, bytes: number): number {
  if (bytes <= 0) return 0;
  const speed = rates?.sentBytesPerSecond ?? 0;
  return speed > 0 ? (bytes / speed) * 1000 : Number.POSITIVE_INFINITY;
}
