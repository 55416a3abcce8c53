import { Writable } from 'node:stream';
import { describe, expect, it } from 'vitest';
import { drained } from './drained.ts';

describe('a stream that is full', () => {
  it('is waited for without leaving anything on it', async () => {
    const stream = new Writable({ highWaterMark: 1, write: (_chunk, _encoding, done) => setImmediate(done) });
    const counts = (): number[] => ['drain', 'close', 'error'].map((event) => stream.listenerCount(event));
    const before = counts();
    for (let times = 0; times < 20; times++) {
      expect(stream.write('more than one')).toBe(false);
      await drained(stream);
      expect(stream.writableNeedDrain).toBe(false);
    }
    expect(counts()).toEqual(before);
  });

  it('is not waited for when it has been closed, or is', async () => {
    const stream = new Writable({ highWaterMark: 1, write: () => undefined });
    stream.write('nobody takes this');
    const waiting = drained(stream);
    stream.destroy();
    await waiting;
    await drained(stream);
    expect(stream.listenerCount('drain')).toBe(0);
  });
});
