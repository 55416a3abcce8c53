import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../env/test.ts';
import { EarlyHalves } from './early-halves.ts';

const LIMITS = { patienceMs: 1000, halvesMax: 2, bytesMax: 100 };

function early(): { halves: EarlyHalves<{ text: string }>; clock: ManualClock } {
  const clock = new ManualClock();
  return { clock, halves: new EarlyHalves<{ text: string }>(clock, LIMITS) };
}

/** How a promise ended: `known`, the reason of a refusal, or that it has not. */
async function endOf(promise: Promise<void>): Promise<string> {
  const end = promise.then(
    () => 'known',
    (error: unknown) => (error as { reason: string }).reason,
  );
  return Promise.race([end, new Promise<string>((resolve) => setImmediate(() => resolve('waits')))]);
}

describe('early halves', () => {
  it('wait until they are taken', async () => {
    const { halves } = early();
    const kept = halves.keep('east', 'k', { text: 'a' });
    expect(await endOf(kept)).toBe('waits');
    expect(halves.peek('k')).toMatchObject({ peer: 'east' });
    const taken = halves.take('k');
    expect(await endOf(kept)).toBe('waits');
    taken?.resolve();
    expect(await endOf(kept)).toBe('known');
    expect(halves.peek('k')).toBeUndefined();
  });

  it('are those of the first cluster, of which the newest counts', async () => {
    const { halves } = early();
    void halves.keep('east', 'k', { text: 'a' });
    expect(await endOf(halves.keep('west', 'k', { text: 'b' }))).toBe('KeyTaken');
    const newer = halves.keep('east', 'k', { text: 'c' });
    expect(halves.take('k')?.half).toEqual({ text: 'c' });
    expect(await endOf(newer)).toBe('waits');
  });

  it('wait for so long since the first was heard, and then make room for another cluster', async () => {
    const { halves, clock } = early();
    void halves.keep('east', 'k', { text: 'a' });
    clock.advance(900);
    const newer = halves.keep('east', 'k', { text: 'b' });
    clock.advance(100);
    expect(await endOf(newer)).toBe('SyncTimeout');
    expect(await endOf(halves.keep('west', 'k', { text: 'c' }))).toBe('waits');
  });

  it('are not more than so many of a cluster, nor larger than so much, whatever others have', async () => {
    const { halves } = early();
    const keep = (peer: string, key: string, text: string): Promise<string> => endOf(halves.keep(peer, key, { text }));
    expect(await keep('east', 'k1', 'a')).toBe('waits');
    expect(await keep('east', 'k2', 'x'.repeat(80))).toBe('TooManyEarly');
    expect(await keep('east', 'k2', 'b')).toBe('waits');
    expect(await keep('east', 'k3', 'c')).toBe('TooManyEarly');
    expect(await keep('west', 'k3', 'c')).toBe('waits');
    halves.drop('west', 'k1');
    expect(await keep('east', 'k4', 'c')).toBe('TooManyEarly');
    halves.drop('east', 'k1');
    expect(await keep('east', 'k4', 'x'.repeat(40))).toBe('waits');
    expect(halves.size).toBe(3);
  });
});
