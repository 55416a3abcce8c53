import { describe, expect, it } from 'vitest';
import { Streams } from './streams.ts';

describe('streams', () => {
  const draws = (seed: number, name: string): number[] => {
    const random = new Streams(seed).of(name);
    return Array.from({ length: 5 }, () => random.number());
  };

  it('are the same for the same seed and name, and else differ', () => {
    expect(draws(1, 'a')).toEqual(draws(1, 'a'));
    expect(draws(1, 'a')).not.toEqual(draws(2, 'a'));
    expect(draws(1, 'a')).not.toEqual(draws(1, 'b'));
  });

  it('do not move each other', () => {
    const streams = new Streams(1);
    const [one, other] = [streams.of('one'), streams.of('other')];
    const expected = draws(1, 'one');
    expect(expected.map(() => (other.number(), one.number()))).toEqual(expected);
  });
});
