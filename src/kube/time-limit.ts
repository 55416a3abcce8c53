import type { Clock } from '../env/ports.ts';
import { unlessAborted } from './abort.ts';

/**
 * What the request gives, or a TransportError once the time is over or the signal aborts, whether the request heeds its
 * own signal or not.
 */
export async function withinTime<T>(
  clock: Clock,
  timeoutMs: number,
  signal: AbortSignal,
  request: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const onAbort = (): void => abort.abort(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  if (signal.aborted) onAbort();
  const timer = clock.setTimer(() => abort.abort(new Error(`it took longer than ${timeoutMs} ms`)), timeoutMs);
  try {
    return await unlessAborted(request(abort.signal), abort.signal);
  } finally {
    timer.cancel();
    signal.removeEventListener('abort', onAbort);
  }
}
