import { setMaxListeners } from 'node:events';
import { TransportError } from './transport.ts';

/** For work with any number of requests at once, each of which listens: Node takes more than ten for a leak and says so. */
export function sharedAbortController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}

/** What a request that was given up ends with. */
export function cancelled(signal: AbortSignal): TransportError {
  return new TransportError('the request was cancelled', signal.reason);
}

/**
 * What the promise gives, or `cancelled` as soon as the signal aborts. Whatever the promise comes to after that is
 * ignored. Unlike Promise.race with a promise of the signal, it leaves nothing behind on a signal that outlives it.
 */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const onAbort = (): void => reject(cancelled(signal));
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}
