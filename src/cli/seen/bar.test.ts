import { describe, expect, it } from 'vitest';
import { bar, byteCount, sparkline } from './bar.ts';

describe('a bar', () => {
  it.each([
    [0, '░░░░'],
    [50, '██░░'],
    [100, '████'],
    [140, '████'],
    [-3, '░░░░'],
  ])('of %i percent', (percent, text) => expect(bar(percent, 4)).toBe(text));
});

describe('a sparkline', () => {
  it.each<[string, number[], string]>([
    ['of nothing', [], ''],
    ['of zeros', [0, 0], '▁▁'],
    ['against its largest', [0, 50, 100], '▁▅█'],
    ['of its last values', [900, 1, 2, 3, 4], '▃▅▆█'],
  ])('%s', (_, values, text) => expect(sparkline(values, 4)).toBe(text));
});

it.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1536, '1.5 KiB'],
  [4 * 1024 ** 3, '4.0 GiB'],
  [200 * 1024 ** 2, '200 MiB'],
])('%i bytes are %s', (bytes, text) => expect(byteCount(bytes)).toBe(text));
