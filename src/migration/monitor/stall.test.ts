import { describe, expect, it } from 'vitest';
import type { StallOptions } from './monitor-options.ts';
import { NO_STALL, type StallVerdict, updateStall } from './stall.ts';

const OPTIONS: StallOptions = {
  margin: 0.1,
  progressTimeoutMs: 40_000,
  patienceDecayFactor: 0.5,
  searchesMinima: true,
};

/** What comes of passes of these sizes, at these seconds. */
function verdicts(passes: readonly (readonly [second: number, size: number])[], options = OPTIONS): StallVerdict[] {
  let stall = NO_STALL;
  return passes.map(([second, size]) => {
    const next = updateStall(stall, second * 1000, size, options);
    stall = next.stall;
    return next.verdict;
  });
}

describe('passes', () => {
  it.each<[string, [number, number][], StallVerdict[]]>([
    [
      'that get smaller',
      [
        [0, 1000],
        [50, 800],
        [100, 600],
      ],
      ['improving', 'improving', 'improving'],
    ],
    [
      'that get smaller, by less than the margin',
      [
        [0, 1000],
        [50, 950],
      ],
      ['improving', 'act'],
    ],
    [
      'that are as big as before, within the window',
      [
        [0, 1000],
        [10, 1000],
        [39, 1000],
      ],
      ['improving', 'improving', 'improving'],
    ],
    [
      'that are as big as before, after the window',
      [
        [0, 1000],
        [10, 1000],
        [40, 1000],
      ],
      ['improving', 'improving', 'act'],
    ],
    [
      'that are bigger: one as small as the smallest is waited for',
      [
        [0, 1000],
        [10, 500],
        [30, 800],
        [51, 800],
        [55, 520],
      ],
      ['improving', 'improving', 'improving', 'waiting', 'act'],
    ],
    [
      'that stay bigger: the smallest since then will do after a while',
      [
        [0, 1000],
        [10, 500],
        [51, 900],
        [60, 700],
        [72, 900],
        [75, 720],
      ],
      ['improving', 'improving', 'waiting', 'waiting', 'waiting', 'act'],
    ],
    [
      'that only grow: in the end any will do',
      [
        [0, 500],
        [50, 900],
        [71, 1100],
        [82, 1300],
        [88, 1500],
      ],
      ['improving', 'waiting', 'waiting', 'waiting', 'act'],
    ],
    [
      'that get smaller again after a stall',
      [
        [0, 1000],
        [50, 1200],
        [55, 700],
        [60, 690],
      ],
      ['improving', 'waiting', 'improving', 'improving'],
    ],
  ])('%s', (_, passes, expected) => expect(verdicts(passes)).toEqual(expected));

  it('are not waited for where nobody asks for a minimum', () =>
    expect(
      verdicts(
        [
          [0, 500],
          [50, 900],
        ],
        { ...OPTIONS, searchesMinima: false },
      ),
    ).toEqual(['improving', 'act']));
  it('are not waited for without patience', () =>
    expect(
      verdicts(
        [
          [0, 500],
          [50, 900],
        ],
        { ...OPTIONS, patienceDecayFactor: 0 },
      ),
    ).toEqual(['improving', 'act']));
});

it('remembers no more passes than it needs', () => {
  let stall = NO_STALL;
  for (let second = 0; second < 1000; second += 1) {
    const size = 1000 + ((second * 37) % 100);
    ({ stall } = updateStall(stall, second * 1000, size, OPTIONS));
    expect(stall.recent.length).toBeLessThan(10);
  }
});
