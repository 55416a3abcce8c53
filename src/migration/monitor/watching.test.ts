import { describe, expect, it } from 'vitest';
import type { CopyState } from '../../api/copy-state.ts';
import { resolveOptions } from '../policies/options.ts';
import { mib } from './copy.fixture.ts';
import { monitorOptions, type MonitorOptions } from './monitor-options.ts';
import { newMonitor } from './monitor-state.ts';
import { type Observation, observe } from './monitor.ts';
import type { Sample } from './sample.ts';

/** Single looks at a copy, in every state. */

const OPTIONS: MonitorOptions = monitorOptions(resolveOptions(undefined).options, {
  sizeBytes: mib(1024),
  isPostCopyPossible: true,
});

type Look = readonly [second: number, sample: Sample | undefined];

function watch(looks: readonly Look[], options = OPTIONS, from = newMonitor()): Observation[] {
  let monitor = from;
  return looks.map(([second, sample]) => {
    const observation = observe(monitor, options, second * 1000, sample);
    monitor = observation.monitor;
    return observation;
  });
}

const words = (observations: readonly Observation[]): string[] =>
  observations.map(({ decision }) => `${decision.kind} ${decision.reason}`);

const memory = (sentMib: number, remainingMib: number, passes = 1, dirtyMib = 0): Sample['memory'] => ({
  totalBytes: mib(1024),
  remainingBytes: mib(remainingMib),
  transferredBytes: mib(sentMib),
  dirtyBytesPerSecond: mib(dirtyMib),
  passes,
});
const look = (second: number, state: CopyState, sentMib = 0, remainingMib = 1024, passes = 1): Look => [
  second,
  { state, memory: memory(sentMib, remainingMib, passes) },
];

it('of a copy that is all but over is waited for a moment longer than there is time', () => {
  const end = (second: number): Look => look(second, 'pre-switchover', 1024, 0);
  const looks = [look(0, 'active'), end(9), end(11), end(14), end(15)];
  expect(words(watch(looks, { ...OPTIONS, outerDeadlineMs: 10_000 }))).toEqual([
    'set-downtime FirstDowntime',
    'keep-copying SwitchingOver',
    'keep-copying SwitchingOver',
    'keep-copying SwitchingOver',
    'give-up DeadlinePassed',
  ]);
});

describe('each state', () => {
  it.each<[string, Look[], string[]]>([
    [
      'setup takes too long',
      [
        [0, { state: 'setup' }],
        [61, { state: 'setup' }],
        [63, { state: 'setup' }],
      ],
      ['keep-copying Preparing', 'keep-copying Preparing', 'give-up SetupTimeout'],
    ],
    [
      'nothing ever starts',
      [
        [0, undefined],
        [63, undefined],
      ],
      ['keep-copying Preparing', 'give-up SetupTimeout'],
    ],
    [
      'the hypervisor does not answer any more',
      [look(0, 'active'), look(1, 'active', 100, 924), [20, undefined], [31, undefined]],
      ['set-downtime FirstDowntime', 'keep-copying FirstPass', 'keep-copying FirstPass', 'give-up LinkSilent'],
    ],
    [
      'it answers, but nothing is sent',
      [look(0, 'active', 100, 924), look(29, 'active', 100, 924), look(30, 'active', 100, 924)],
      ['set-downtime FirstDowntime', 'keep-copying FirstPass', 'give-up LinkSilent'],
    ],
    [
      'nobody looked for a long while, and it went on meanwhile',
      [look(0, 'active', 100, 924), look(120, 'active', 500, 524)],
      ['set-downtime FirstDowntime', 'keep-copying FirstPass'],
    ],
    [
      'the end takes too long',
      [
        look(0, 'active'),
        look(1, 'pre-switchover', 1024, 0),
        look(30, 'pre-switchover', 1024, 0),
        look(61, 'pre-switchover', 1024, 0),
      ],
      [
        'set-downtime FirstDowntime',
        'keep-copying SwitchingOver',
        'keep-copying SwitchingOver',
        'give-up SwitchoverTimeout',
      ],
    ],
    [
      'the end may be late',
      [look(0, 'active'), look(299, 'active', 500, 500), look(301, 'device', 1024, 0), look(302, 'completed', 1024, 0)],
      ['set-downtime FirstDowntime', 'give-up CompletionTimeout', 'nothing GivenUp', 'nothing GivenUp'],
    ],
    [
      'the end may take a little longer than the time for the copy',
      [
        look(0, 'active'),
        look(149, 'pre-switchover', 1024, 0),
        look(160, 'device', 1024, 0),
        look(161, 'completed', 1024, 0),
      ],
      ['set-downtime FirstDowntime', 'keep-copying SwitchingOver', 'keep-copying SwitchingOver', 'nothing Over'],
    ],
    ['it failed', [look(0, 'active'), look(1, 'failed')], ['set-downtime FirstDowntime', 'nothing Over']],
    [
      'somebody cancelled it',
      [look(0, 'active'), look(1, 'cancelling'), look(2, 'cancelled')],
      ['set-downtime FirstDowntime', 'nothing Cancelling', 'nothing Over'],
    ],
    [
      'post-copy breaks, and is mended until it holds',
      [
        look(0, 'active'),
        look(1, 'postcopy-active', 100, 900),
        look(2, 'postcopy-paused', 200, 800),
        look(3, 'postcopy-paused', 200, 800),
        look(12, 'postcopy-paused', 200, 800),
        look(13, 'postcopy-recover', 200, 800),
        look(14, 'postcopy-active', 300, 700),
        look(15, 'completed', 1024, 0),
      ],
      [
        'set-downtime FirstDowntime',
        'keep-copying PostCopyRunning',
        'recover LinkBroken',
        'keep-copying PostCopyRecovering',
        'recover LinkBroken',
        'keep-copying PostCopyRunning',
        'keep-copying PostCopyRunning',
        'nothing Over',
      ],
    ],
    [
      'post-copy falls silent, and is never given up',
      [look(0, 'postcopy-active', 1, 9), look(30, 'postcopy-active', 1, 9), look(9000, 'postcopy-active', 1, 9)],
      ['keep-copying PostCopyRunning', 'recover LinkSilent', 'recover LinkSilent'],
    ],
  ])('%s', (_, looks, expected) => expect(words(watch(looks))).toEqual(expected));
});

describe('post-copy that was decided', () => {
  const options = { ...OPTIONS, allowsPostCopy: true, allowsDisruption: true, completionDeadlineMs: 10_000 };
  const before = [look(0, 'active', 0, 1024), look(9, 'active', 924, 100), look(11, 'active', 925, 300, 2)];
  it('is waited for', () =>
    expect(
      words(watch([...before, look(12, 'active', 930, 250, 2), look(13, 'postcopy-active', 940, 200, 2)], options)),
    ).toEqual([
      'set-downtime FirstDowntime',
      'keep-copying FirstPass',
      'post-copy OverTime',
      'keep-copying PostCopyStarting',
      'keep-copying PostCopyRunning',
    ]));
  it('is given up if it never starts', () =>
    expect(
      words(watch([...before, look(40, 'active', 930, 250, 2), look(71, 'active', 940, 200, 3)], options)).at(-1),
    ).toBe('give-up SwitchoverTimeout'));
});

describe('disks', () => {
  const disks = (second: number, copiedMib: number, rest?: Partial<Sample>): Look => [
    second,
    { state: 'none', disks: { totalBytes: mib(512), copiedBytes: mib(copiedMib) }, ...rest },
  ];
  it('are copied first, and count as progress', () => {
    const looks = [disks(0, 0), disks(20, 100), disks(40, 512)];
    expect(words(watch(looks))).toEqual([
      'keep-copying CopyingDisks',
      'keep-copying CopyingDisks',
      'keep-copying CopyingDisks',
    ]);
  });
  it('do not fall silent unnoticed', () =>
    expect(words(watch([disks(0, 1), disks(31, 1)])).at(-1)).toBe('give-up LinkSilent'));
  it('are a part of the whole', () => {
    const percents = watch(
      [disks(0, 0), disks(10, 256), disks(20, 512), disks(21, 512, { state: 'active', memory: memory(0, 1024) })],
      { ...OPTIONS, sizeBytes: mib(1536) },
    ).map(({ percent }) => percent);
    expect(percents.at(-1)).toBeGreaterThan(20);
    expect(percents.at(-1)).toBeLessThan(40);
  });
  it('keep a guest from being disturbed until they are whole', () => {
    const options = { ...OPTIONS, allowsPostCopy: true, allowsDisruption: true, completionDeadlineMs: 10_000 };
    const active = (second: number, sentMib: number, leftMib: number) =>
      disks(second, 100 + second, { state: 'active', memory: memory(sentMib, leftMib) });
    expect(words(watch([active(0, 0, 1024), active(5, 500, 524), active(11, 600, 424)], options)).at(-1)).toBe(
      'give-up CompletionTimeout',
    );
  });
});

describe('a watcher that comes later', () => {
  it('does not fall behind the percents that were said', () => {
    const [first] = watch([look(100, 'active', 1, 1000)], OPTIONS, newMonitor({ elapsedMs: 100_000, percent: 42 }));
    expect(first?.percent).toBe(42);
  });
  it('holds nobody for silent before it has looked for long enough', () => {
    const resumed = newMonitor({ elapsedMs: 100_000 });
    expect(words(watch([look(100, 'active', 5, 1000), look(125, 'active', 5, 1000)], OPTIONS, resumed))).toEqual([
      'set-downtime FirstDowntime',
      'keep-copying FirstPass',
    ]);
  });
  it('knows that the guest is paused', () => {
    const resumed = newMonitor({ elapsedMs: 100_000, pausedAtMs: 90_000 });
    expect(words(watch([look(100, 'active', 5, 1000)], OPTIONS, resumed))).toEqual(['keep-copying GuestPaused']);
  });
});

describe('estimates', () => {
  it('come with their range once a speed is known', () => {
    const [first, second] = watch([look(0, 'active', 0, 1024), look(2, 'active', 200, 824)]);
    expect(first?.estimate).toEqual({ leftMs: undefined, minMs: undefined, maxMs: undefined });
    const { leftMs = 0, minMs = 0, maxMs = 0 } = second?.estimate ?? {};
    expect(leftMs).toBeCloseTo(8240, -2);
    expect(minMs).toBeLessThan(leftMs);
    expect(maxMs).toBeGreaterThan(leftMs);
  });
  it('have no end for a guest that writes faster than is sent, but that of the time for the copy', () => {
    const [, second] = watch([
      [0, { state: 'active', memory: memory(0, 500, 2, 200) }],
      [2, { state: 'active', memory: memory(200, 300, 2, 200) }],
    ]);
    expect(second?.estimate).toMatchObject({ leftMs: undefined, maxMs: 298_000 });
    expect(second?.estimate.minMs).toBeGreaterThan(1500);
  });
  it('take what the hypervisor says with zeros at its end for nothing', () => {
    const [, second] = watch([
      look(0, 'active', 500, 524),
      [
        1,
        {
          state: 'device',
          memory: { totalBytes: 0, remainingBytes: 0, transferredBytes: 0, dirtyBytesPerSecond: 0, passes: 0 },
        },
      ],
    ]);
    expect(second?.monitor.sample?.memory?.totalBytes).toBe(mib(1024));
  });
});
