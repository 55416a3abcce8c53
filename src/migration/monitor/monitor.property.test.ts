import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { resolveOptions } from '../policies/options.ts';
import { type CopyModel, type Look, mib, runCopy } from './copy.fixture.ts';
import { monitorOptions, type MonitorOptions } from './monitor-options.ts';
import { observe } from './monitor.ts';
import { isPostCopy } from '../../api/copy-state.ts';

/** Whatever a guest and its link do, these hold. */

const SAMPLE_MS = 1000;

const link = fc.oneof(
  fc.constant({ from: Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY }),
  fc.record({ from: fc.integer({ min: 0, max: 100_000 }), to: fc.integer({ min: 0, max: 400_000 }) }),
);

const models: fc.Arbitrary<CopyModel> = fc
  .record({
    totalMib: fc.constantFrom(64, 512, 1024, 4096),
    linkMib: fc.constantFrom(10, 50, 100, 400),
    dirtyPart: fc.double({ min: 0, max: 3, noNaN: true }),
    swing: fc.double({ min: 0, max: 1, noNaN: true }),
    periodMs: fc.constantFrom(3000, 20_000, 90_000),
    workingSetPart: fc.constantFrom(0.05, 0.2, 1),
    throttles: fc.boolean(),
    cut: link,
  })
  .map(({ totalMib, linkMib, dirtyPart, swing, periodMs, workingSetPart, throttles, cut }) => ({
    totalBytes: mib(totalMib),
    workingSetBytes: mib(totalMib * workingSetPart),
    dirtyBytesPerSecond: (atMs) => mib(linkMib * dirtyPart * (1 + swing * Math.sin(atMs / periodMs))),
    linkBytesPerSecond: (atMs) => (atMs >= cut.from && atMs < cut.to ? 0 : mib(linkMib)),
    throttles,
    sampleEveryMs: SAMPLE_MS,
  }));

const optionsArbitrary = fc.record({
  completionTimeoutPerGiB: fc.constantFrom(5, 20, 60),
  progressTimeout: fc.constantFrom(0, 10, 60),
  maxDowntimeMs: fc.constantFrom(10, 900, 5000),
  allowAutoConverge: fc.boolean(),
  allowPostCopy: fc.boolean(),
  allowWorkloadDisruption: fc.boolean(),
  stall: fc.boolean(),
  steps: fc.boolean(),
  outerDeadlineMs: fc.option(fc.integer({ min: 1000, max: 200_000 }), { nil: undefined }),
});

const scenario = fc.tuple(models, optionsArbitrary).map(([model, { stall, steps, outerDeadlineMs, ...migrations }]) => {
  const experimental = { ...(stall && { stallDetector: {} }), ...(steps && { downtimeTuning: {} }) };
  const featureGates = ['MigrationStallDetection', 'MigrationDowntimeTuning'];
  const { options } = resolveOptions(undefined, {
    migrations: { ...migrations, experimental },
    developerConfiguration: { featureGates },
  });
  const facts = { sizeBytes: model.totalBytes, isPostCopyPossible: true, outerDeadlineMs };
  return { model, options: monitorOptions(options, facts) };
});

/** By when every copy is over, given up, or past the point of no return. */
function boundMs({ finalDeadlineMs, outerDeadlineMs, switchoverTimeoutMs }: MonitorOptions): number {
  return Math.min(finalDeadlineMs, outerDeadlineMs) + switchoverTimeoutMs;
}

function check(looks: readonly Look[], options: MonitorOptions): void {
  let percent = 0;
  for (const { percent: now, estimate, sample, decision, elapsedMs, monitor } of looks) {
    expect(now).toBeGreaterThanOrEqual(percent);
    expect(now === 100).toBe(sample.state === 'completed');
    percent = now;
    const { leftMs, minMs, maxMs } = estimate;
    if (leftMs !== undefined && minMs !== undefined) expect(minMs).toBeLessThanOrEqual(leftMs);
    if (leftMs !== undefined && maxMs !== undefined) expect(leftMs).toBeLessThanOrEqual(maxMs);
    if (isPostCopy(sample.state)) expect(['keep-copying', 'recover']).toContain(decision.kind);
    if (decision.kind === 'set-downtime') expect(decision.downtimeMs).toBeLessThanOrEqual(options.downtimeMsMax);
    if (decision.kind === 'post-copy') {
      const neededMs = ((sample.memory?.remainingBytes ?? 0) / (monitor.rates?.sentBytesPerSecond ?? 0)) * 1000;
      expect(elapsedMs + 2 * neededMs).toBeLessThanOrEqual(Math.min(options.finalDeadlineMs, options.outerDeadlineMs));
    }
  }
  for (const kind of ['post-copy', 'pause', 'give-up', 'throttle']) {
    expect(looks.filter(({ decision }) => decision.kind === kind).length).toBeLessThanOrEqual(1);
  }
}

it('percents never fall, ranges hold, nothing is decided twice, and every copy ends in bounded time', () => {
  fc.assert(
    fc.property(scenario, ({ model, options }) => {
      const looks = runCopy(model, options, boundMs(options) + 2 * SAMPLE_MS);
      check(looks, options);
      const last = looks.at(-1);
      const isSettled =
        last !== undefined &&
        (last.sample.state === 'completed' || last.decision.kind === 'give-up' || isPostCopy(last.sample.state));
      expect(isSettled).toBe(true);
    }),
    { numRuns: 150 },
  );
});

it('decides nothing more once a copy was given up', () => {
  const sample = fc.record({
    state: fc.constantFrom('setup', 'active', 'pre-switchover', 'postcopy-paused', 'completed', 'failed'),
    memory: fc.record({
      totalBytes: fc.constant(mib(100)),
      remainingBytes: fc.nat(mib(100)),
      transferredBytes: fc.nat(mib(1000)),
      dirtyBytesPerSecond: fc.nat(mib(100)),
      passes: fc.nat(50),
    }),
  } as const);
  const steps = fc.array(fc.tuple(fc.integer({ min: -1000, max: 60_000 }), fc.option(sample, { nil: undefined })), {
    maxLength: 40,
  });
  fc.assert(
    fc.property(scenario, steps, ({ model, options }, later) => {
      const looks = runCopy({ ...model, linkBytesPerSecond: () => 0 }, options, boundMs(options));
      let monitor = looks.at(-1)?.monitor;
      if (!monitor) return;
      expect(monitor.gaveUp).toBeDefined();
      let { elapsedMs, percent } = monitor;
      for (const [passedMs, seen] of later) {
        elapsedMs += passedMs;
        const observation = observe(monitor, options, elapsedMs, seen);
        expect(observation.decision).toMatchObject({ kind: 'nothing', reason: 'GivenUp' });
        expect(observation.percent).toBeGreaterThanOrEqual(percent);
        ({ monitor, percent } = observation);
      }
    }),
    { numRuns: 50 },
  );
});
