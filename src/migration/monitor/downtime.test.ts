import { describe, expect, it } from 'vitest';
import { resolveOptions } from '../policies/options.ts';
import { awaitSteps, firstDowntimeMs, NO_DOWNTIME, nextDowntimeMs } from './downtime.ts';
import { type DowntimeSteps, monitorOptions, type MonitorOptions } from './monitor-options.ts';

function optionsOf(downtimeMsMax: number, changes?: Partial<DowntimeSteps>): MonitorOptions {
  const plain = monitorOptions(resolveOptions(undefined).options, { sizeBytes: 1, isPostCopyPossible: false });
  const steps = { initialMs: 150, steps: 5, startAfterPass: 3, cooldownMs: 10_000, ...changes };
  return { ...plain, downtimeMsMax, downtimeSteps: changes && steps };
}

/** The limits that hold at these seconds, in these passes. */
function limits(options: MonitorOptions, looks: readonly (readonly [second: number, pass: number])[]): number[] {
  let downtime = { ...NO_DOWNTIME, limitMs: firstDowntimeMs(options) };
  return looks.map(([second, pass]) => {
    const awaited = awaitSteps(downtime, second * 1000, pass, options);
    const nextMs = nextDowntimeMs(awaited, second * 1000, options);
    downtime =
      nextMs === undefined
        ? { ...awaited, limitMs: downtime.limitMs }
        : { limitMs: nextMs, steppedAtMs: second * 1000 };
    return downtime.limitMs;
  });
}

describe('the downtime', () => {
  it.each<[string, MonitorOptions, [number, number][], number[]]>([
    [
      'stays where no steps are asked for',
      optionsOf(900),
      [
        [0, 1],
        [100, 50],
      ],
      [300, 300],
    ],
    ['is never more than the longest', optionsOf(100), [[0, 1]], [100]],
    [
      'begins with the first step',
      optionsOf(900, {}),
      [
        [0, 1],
        [100, 3],
      ],
      [150, 150],
    ],
    [
      'grows one cooldown after its pass has come, not at once',
      optionsOf(900, {}),
      [
        [0, 1],
        [100, 4],
        [109, 4],
        [110, 4],
        [119, 5],
        [120, 5],
        [130, 5],
        [140, 5],
        [150, 5],
        [900, 5],
      ],
      [150, 150, 150, 300, 300, 450, 600, 750, 900, 900],
    ],
    [
      'reaches the longest in as many steps as were asked for, though they do not divide it',
      optionsOf(1000, { steps: 3, cooldownMs: 0 }),
      [
        [0, 4],
        [1, 4],
        [2, 4],
        [3, 4],
      ],
      [434, 718, 1000, 1000],
    ],
    [
      'takes no steps for one',
      optionsOf(900, { steps: 0, cooldownMs: 0 }),
      [
        [0, 4],
        [1, 4],
      ],
      [900, 900],
    ],
    [
      'does not shrink to a longest that is shorter',
      optionsOf(100, { cooldownMs: 0 }),
      [
        [0, 4],
        [1, 4],
      ],
      [100, 100],
    ],
  ])('%s', (_, options, looks, expected) => expect(limits(options, looks)).toEqual(expected));
});
