import { describe, expect, it } from 'vitest';
import { ManualClock } from '../../env/test.ts';
import { EarlyHalves } from './early-halves.ts';

const LIMITS = { halvesMax: 2, bytesMax: 100 };

function early(): {
  keep: (peer: string, key: string, text: string) => string;
  halves: EarlyHalves<{ text: string }>;
  clock: ManualClock;
} {
  const clock = new ManualClock();
  const halves = new EarlyHalves<{ text: string }>(clock, () => 1000, LIMITS);
  /** What became of it: `kept`, or the reason of a refusal. */
  const keep = (peer: string, key: string, text: string): string => {
    try {
      halves.keep(peer, key, { text });
      return 'kept';
    } catch (error) {
      return (error as { reason: string }).reason;
    }
  };
  return { clock, halves, keep };
}

describe('early halves', () => {
  it('are those of the first cluster, of which the newest counts', () => {
    const { halves, keep } = early();
    expect(keep('east', 'k', 'a')).toBe('kept');
    expect(keep('west', 'k', 'b')).toBe('KeyTaken');
    expect(keep('east', 'k', 'c')).toBe('kept');
    expect(halves.peek('k')).toMatchObject({ peer: 'east', half: { text: 'c' } });
    halves.drop('west', 'k');
    expect(halves.peek('k')).toBeDefined();
    halves.drop('east', 'k');
    expect(halves.peek('k')).toBeUndefined();
  });

  it('wait for so long since the first was heard, and then make room for another cluster', () => {
    const { halves, keep, clock } = early();
    keep('east', 'k', 'a');
    clock.advance(900);
    keep('east', 'k', 'b');
    clock.advance(99);
    expect(halves.peek('k')).toBeDefined();
    clock.advance(1);
    expect(halves.peek('k')).toBeUndefined();
    expect(keep('west', 'k', 'c')).toBe('kept');
  });

  it('are not more than so many of a cluster, nor larger than so much, whatever others have', () => {
    const { halves, keep } = early();
    expect(keep('east', 'k1', 'a')).toBe('kept');
    expect(keep('east', 'k2', 'x'.repeat(80))).toBe('TooManyEarly');
    expect(keep('east', 'k2', 'b')).toBe('kept');
    expect(keep('east', 'k3', 'c')).toBe('TooManyEarly');
    expect(keep('west', 'k3', 'c')).toBe('kept');
    halves.drop('west', 'k1');
    expect(keep('east', 'k4', 'c')).toBe('TooManyEarly');
    halves.drop('east', 'k1');
    expect(keep('east', 'k4', 'x'.repeat(40))).toBe('kept');
  });
});
