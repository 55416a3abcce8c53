import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import type { CopyState } from '../../api/copy-state.ts';
import { type MigrationOptions, resolveOptions } from '../policies/options.ts';
import type { Look } from './copy.fixture.ts';
import { decisionsOf } from './copy.fixture.ts';
import { monitorOptions } from './monitor-options.ts';
import { newMonitor } from './monitor-state.ts';
import { observe } from './monitor.ts';
import type { Sample } from './sample.ts';

/**
 * Copies of the probe guest as QEMU 7.2 reported them: each line of `traces/` is a look at one of them. What was decided
 * then could not change what was recorded, so each trace is shown with options under which it would have gone this way.
 */

function recorded(name: string): (readonly [atMs: number, sample: Sample])[] {
  const text = readFileSync(new URL(`traces/${name}.csv`, import.meta.url), 'utf8');
  const [, ...lines] = text.trimEnd().split('\n');
  return lines.map((line) => {
    const [atMs = '', state = '', ...rest] = line.split(',');
    const [totalBytes = 0, remainingBytes = 0, transferredBytes = 0, dirty = 0, passes = 0, throttlePercent = 0] =
      rest.map(Number);
    const memory = { totalBytes, remainingBytes, transferredBytes, dirtyBytesPerSecond: dirty, passes };
    return [Number(atMs), { state: state as CopyState, memory, throttlePercent }];
  });
}

function replay(name: string, changes: Partial<MigrationOptions> = {}): Look[] {
  const trace = recorded(name);
  const options = monitorOptions(
    { ...resolveOptions(undefined).options, ...changes },
    { sizeBytes: trace.at(-1)?.[1].memory?.totalBytes ?? 0, isPostCopyPossible: true },
  );
  let monitor = newMonitor();
  return trace.map(([elapsedMs, sample]) => {
    const observation = observe(monitor, options, elapsedMs, sample);
    monitor = observation.monitor;
    return { ...observation, elapsedMs, sample };
  });
}

describe('recorded copies', () => {
  const stall = { experimental: { stallDetector: { stallProgressTimeout: 10 } } };
  it.each<[string, Partial<MigrationOptions>, string[]]>([
    ['idle', {}, ['set-downtime FirstDowntime']],
    ['converging', {}, ['set-downtime FirstDowntime']],
    ['never-converging', { progressTimeout: 20 }, ['set-downtime FirstDowntime', 'give-up NoProgress']],
    ['never-converging', { completionTimeoutPerGiB: 30 }, ['set-downtime FirstDowntime', 'give-up CompletionTimeout']],
    ['never-converging', stall, ['set-downtime FirstDowntime', 'give-up CannotConverge']],
    ['never-converging', { ...stall, allowWorkloadDisruption: true }, ['set-downtime FirstDowntime', 'pause Stalled']],
    ['auto-converge', { allowAutoConverge: true }, ['set-downtime FirstDowntime', 'throttle GuestThrottled']],
    [
      'post-copy',
      { completionTimeoutPerGiB: 12, allowPostCopy: true, allowWorkloadDisruption: true },
      ['set-downtime FirstDowntime', 'post-copy OverTime'],
    ],
    ['silent-link', {}, ['set-downtime FirstDowntime', 'give-up LinkSilent']],
  ])('%s, with %j', (name, changes, expected) => expect(decisionsOf(replay(name, changes))).toEqual(expected));

  it.each(['idle', 'converging', 'auto-converge', 'post-copy'])('%s: percents rise to 100', (name) => {
    const percents = replay(name).map(({ percent }) => percent);
    expect(percents).toEqual(percents.toSorted((left, right) => left - right));
    expect(percents.at(-1)).toBe(100);
  });

  // Nobody knows how many of the pages to come are empty, so that it may well be over sooner.
  it.each(['idle', 'converging'])('%s: it takes no longer than it says that it takes at most', (name) => {
    const looks = replay(name);
    const endMs = looks.at(-1)?.elapsedMs ?? 0;
    const known = looks.filter(({ estimate, sample }) => estimate.maxMs !== undefined && sample.state === 'active');
    const late = known.filter(({ elapsedMs, estimate }) => endMs - elapsedMs > (estimate.maxMs ?? 0) + 250);
    expect(known.length).toBeGreaterThan(10);
    expect(late.length).toBeLessThanOrEqual(known.length * 0.1);
  });
});
