import { describe, expect, it } from 'vitest';
import { unfitnessText } from './unfitness-text.ts';

const nodes = (count: number, lacking: string, prefix = 'node'): [string, string][] =>
  Array.from({ length: count }, (_, index) => [`${prefix}-${String(index).padStart(3, '0')}`, lacking]);

describe('what nodes lack', () => {
  it('is told of each', () => {
    const text = unfitnessText(
      new Map([
        ['node-b', 'Insufficient memory'],
        ['node-a', 'the guest runs there'],
      ]),
    );
    expect(text).toBe('node-a: the guest runs there; node-b: Insufficient memory');
    expect(unfitnessText(new Map(nodes(30, 'cordoned'))).split('; ')).toHaveLength(30);
    expect(unfitnessText(new Map())).toBe('there are no nodes');
  });

  it('is told by what it is where there are many, and each of them is counted', () => {
    const lacks = [
      ...nodes(2, 'cordoned', 'edge'),
      ...nodes(200, 'Insufficient memory'),
      ['a', 'the guest runs there'] as const,
    ];
    expect(unfitnessText(new Map(lacks))).toBe(
      'node-000, node-001, node-002 and 197 more: Insufficient memory; edge-000, edge-001: cordoned; a: the guest runs there',
    );
  });

  it('does not become endless where each lacks something else', () => {
    const lacks = Array.from({ length: 100 }, (_, index) => [`node-${index}`, `lacks ${index}`] as const);
    const text = unfitnessText(new Map(lacks));
    expect(text.split('; ')).toHaveLength(31);
    expect(text).toMatch(/; and 70 more, for other reasons$/);
  });
});
