import { getEventListeners } from 'node:events';
import { expect, it } from 'vitest';
import { sharedAbortController, unlessAborted } from './abort.ts';

it('gives what the promise gives', async () => {
  const { signal } = new AbortController();
  expect(await unlessAborted(Promise.resolve(1), signal)).toBe(1);
  await expect(unlessAborted(Promise.reject(new Error('no')), signal)).rejects.toThrow('no');
});

it('gives up when the signal aborts, before or meanwhile', async () => {
  const stop = new AbortController();
  const waiting = unlessAborted(new Promise(() => undefined), stop.signal);
  stop.abort();
  await expect(waiting).rejects.toThrow('the request was cancelled');
  await expect(unlessAborted(Promise.resolve(1), stop.signal)).rejects.toThrow('the request was cancelled');
});

it('leaves nothing behind', async () => {
  const { signal } = new AbortController();
  for (let count = 0; count < 20; count++) await unlessAborted(Promise.resolve(1), signal);
  await new Promise((resolve) => setImmediate(resolve));
  expect(getEventListeners(signal, 'abort')).toHaveLength(0);
});

it('lets any number of requests listen where many share a signal', async () => {
  const warnings: string[] = [];
  const onWarning = ({ name }: Error): void => void warnings.push(name);
  process.on('warning', onWarning);
  const { signal } = sharedAbortController();
  for (let count = 0; count < 20; count++) signal.addEventListener('abort', () => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);
});
