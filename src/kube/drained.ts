import type { Writable } from 'node:stream';

/**
 * Resolves when a stream takes more again, or none ever again. It leaves no listener behind, however often it is called:
 * a race of `once(…)` leaves those of what did not happen, on a stream that may be written to for days.
 */
export function drained(stream: Writable): Promise<void> {
  if (stream.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      stream.off('drain', done).off('close', done);
      resolve();
    };
    stream.on('drain', done).on('close', done);
  });
}
