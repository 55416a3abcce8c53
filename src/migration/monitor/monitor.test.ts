import { describe, expect, it } from 'vitest';
import { type MigrationOptions, resolveOptions } from '../policies/options.ts';
import { type CopyModel, decisionsOf, mib, runCopy } from './copy.fixture.ts';
import { observe } from './monitor.ts';
import { type CopyFacts, monitorOptions, type MonitorOptions } from './monitor-options.ts';

const HOUR = 3_600_000;
const DEFAULTS = resolveOptions(undefined).options;

function optionsFor(changes: Partial<MigrationOptions> = {}, facts: Partial<CopyFacts> = {}): MonitorOptions {
  return monitorOptions({ ...DEFAULTS, ...changes }, { sizeBytes: mib(1024), isPostCopyPossible: true, ...facts });
}

/** 1 GiB over 100 MiB/s. */
const model = (dirtyMib: number, more: Partial<CopyModel> = {}): CopyModel => ({
  totalBytes: mib(1024),
  dirtyBytesPerSecond: () => mib(dirtyMib),
  linkBytesPerSecond: () => mib(100),
  ...more,
});

const STALL = { stallDetector: {} };
const both = { allowPostCopy: true, allowWorkloadDisruption: true };
const pauseOnly = { allowPostCopy: false, allowWorkloadDisruption: true };

describe('copies, and what is decided about them', () => {
  const swinging = (elapsedMs: number): number => mib(125 + 50 * Math.sin(elapsedMs / 15_000));
  it.each<[string, CopyModel, MonitorOptions, string[]]>([
    ['an idle guest', model(0), optionsFor(), ['set-downtime FirstDowntime']],
    ['a busy guest that converges', model(50), optionsFor(), ['set-downtime FirstDowntime']],
    [
      'a guest that never converges makes no progress',
      model(150),
      optionsFor({ completionTimeoutPerGiB: 0 }),
      ['set-downtime FirstDowntime', 'give-up NoProgress'],
    ],
    [
      'a guest that writes in waves makes none, either',
      model(0, { dirtyBytesPerSecond: swinging }),
      optionsFor({ completionTimeoutPerGiB: 0 }),
      ['set-downtime FirstDowntime', 'give-up NoProgress'],
    ],
    [
      'it takes too long',
      model(150),
      optionsFor({ completionTimeoutPerGiB: 60 }),
      ['set-downtime FirstDowntime', 'give-up CompletionTimeout'],
    ],
    [
      'it takes too long, and post-copy is allowed',
      model(150),
      optionsFor({ completionTimeoutPerGiB: 60, ...both }),
      ['set-downtime FirstDowntime', 'post-copy OverTime'],
    ],
    [
      'it makes no progress, and post-copy is allowed',
      model(150),
      optionsFor({ completionTimeoutPerGiB: 0, ...both }),
      ['set-downtime FirstDowntime', 'post-copy NoProgress'],
    ],
    [
      'post-copy is allowed, and not possible',
      model(150),
      optionsFor({ completionTimeoutPerGiB: 60, ...both }, { isPostCopyPossible: false }),
      ['set-downtime FirstDowntime', 'pause OverTime'],
    ],
    [
      'post-copy is allowed, and disturbing the guest is not',
      model(150),
      optionsFor({ completionTimeoutPerGiB: 60, allowPostCopy: true }),
      ['set-downtime FirstDowntime', 'give-up CompletionTimeout'],
    ],
    [
      'it takes too long, and the guest may be paused',
      model(150),
      optionsFor({ completionTimeoutPerGiB: 60, ...pauseOnly }),
      ['set-downtime FirstDowntime', 'pause OverTime'],
    ],
    [
      'what is left cannot be sent twice, but once, before the last deadline',
      model(150),
      optionsFor({ completionTimeoutPerGiB: 12, ...both }),
      ['set-downtime FirstDowntime', 'pause OverTime'],
    ],
    [
      'what is left cannot be sent before the last deadline',
      model(150),
      optionsFor({ completionTimeoutPerGiB: 4, ...both }),
      ['set-downtime FirstDowntime', 'give-up CompletionTimeout'],
    ],
    [
      'what is left fits into the longest downtime when the time is over',
      model(150, { workingSetBytes: mib(60) }),
      optionsFor({ completionTimeoutPerGiB: 60, ...both }),
      ['set-downtime FirstDowntime', 'set-downtime OverTime'],
    ],
    [
      'the guest is slowed down until it converges',
      model(150, { throttles: true }),
      optionsFor({ allowAutoConverge: true }),
      ['set-downtime FirstDowntime', 'throttle GuestThrottled'],
    ],
    [
      'the link is cut in silence',
      model(50, { linkBytesPerSecond: (elapsedMs) => (elapsedMs < 5000 ? mib(100) : 0) }),
      optionsFor({ ...both }),
      ['set-downtime FirstDowntime', 'give-up LinkSilent'],
    ],
    [
      'the link hiccups',
      model(50, { linkBytesPerSecond: (elapsedMs) => (elapsedMs > 5000 && elapsedMs < 25_000 ? 0 : mib(100)) }),
      optionsFor(),
      ['set-downtime FirstDowntime'],
    ],
    [
      'it stalls, and neither post-copy nor a pause is allowed',
      model(150),
      optionsFor({ experimental: STALL }),
      ['set-downtime FirstDowntime', 'give-up CannotConverge'],
    ],
    [
      'it stalls, and post-copy is allowed',
      model(150),
      optionsFor({ experimental: STALL, ...both }),
      ['set-downtime FirstDowntime', 'post-copy Stalled'],
    ],
    [
      'it stalls, and a pause is allowed',
      model(150),
      optionsFor({ experimental: STALL, ...pauseOnly }),
      ['set-downtime FirstDowntime', 'pause Stalled'],
    ],
    [
      'it stalls near its end',
      model(150, { workingSetBytes: mib(80) }),
      optionsFor({ experimental: STALL }),
      ['set-downtime FirstDowntime', 'set-downtime Stalled'],
    ],
    [
      'it stalls near its end, which does not come all the same',
      model(150, { workingSetBytes: mib(120) }),
      optionsFor({ experimental: STALL }),
      ['set-downtime FirstDowntime', 'set-downtime Stalled', 'give-up SwitchoverTimeout'],
    ],
    [
      'it stalls, but the guest is slowed down',
      model(400, { throttles: true }),
      optionsFor({ experimental: STALL, allowAutoConverge: true }),
      ['set-downtime FirstDowntime', 'throttle GuestThrottled'],
    ],
    [
      'the downtime grows in steps until it suffices',
      model(150, { workingSetBytes: mib(60) }),
      optionsFor({ experimental: { downtimeTuning: {} } }),
      [
        'set-downtime FirstDowntime',
        'set-downtime DowntimeStep',
        'set-downtime DowntimeStep',
        'set-downtime DowntimeStep',
        'set-downtime DowntimeStep',
        'set-downtime DowntimeStep',
      ],
    ],
    [
      'the guest has to be gone soon, and post-copy is allowed',
      model(150),
      optionsFor({ ...both }, { outerDeadlineMs: 45_000 }),
      ['set-downtime FirstDowntime', 'post-copy DeadlineNear'],
    ],
    [
      'the guest has to be gone soon, and nothing is allowed',
      model(150),
      optionsFor({}, { outerDeadlineMs: 45_000 }),
      ['set-downtime FirstDowntime', 'give-up DeadlinePassed'],
    ],
    [
      'the guest has to be gone soon, and the copy converges in time',
      model(20),
      optionsFor({ ...both }, { outerDeadlineMs: 45_000 }),
      ['set-downtime FirstDowntime'],
    ],
  ])('%s', (_, copy, options, expected) => {
    const looks = runCopy(copy, options, HOUR);
    expect(decisionsOf(looks)).toEqual(expected);
    const isGivenUp = expected.some((decision) => decision.startsWith('give-up'));
    expect(looks.at(-1)?.sample.state === 'completed').toBe(!isGivenUp);
    if (!isGivenUp) expect(looks.at(-1)?.percent).toBe(100);
  });
});

describe('a guest that writes in waves', () => {
  const waves = model(0, {
    dirtyBytesPerSecond: (elapsedMs) => mib(120 + 40 * Math.sin(elapsedMs / 4000)),
    workingSetBytes: mib(300),
  });
  it.each([
    ['post-copy', both],
    ['pause', pauseOnly],
  ])('is met by %s where little is left', (kind, allowed) => {
    const looks = runCopy(waves, optionsFor({ experimental: STALL, completionTimeoutPerGiB: 0, ...allowed }), HOUR);
    const later = runCopy(waves, optionsFor({ completionTimeoutPerGiB: 0, progressTimeout: 0 }), 600_000);
    const starts = later
      .filter(({ monitor }) => monitor.passes.begins && monitor.passes.pass > 1)
      .map(({ monitor }) => monitor.passes.startBytes)
      .toSorted((left, right) => left - right);
    const decided = looks.find(({ decision }) => decision.kind === kind);
    expect(decided?.decision.reason).toBe('Stalled');
    expect(decided?.sample.memory?.remainingBytes).toBeLessThan(starts[Math.floor(starts.length / 3)] ?? 0);
  });
});

it('meets a deadline from outside that comes while it copies', () => {
  const options = optionsFor({ completionTimeoutPerGiB: 0, ...both });
  const before = runCopy(model(150), options, 30_000).at(-1);
  const sample = { ...before?.sample, state: 'active' as const };
  const late = { ...options, outerDeadlineMs: 56_000 };
  expect(before && observe(before.monitor, late, 30_400, sample).decision).toMatchObject({
    kind: 'post-copy',
    reason: 'DeadlineNear',
  });
});
