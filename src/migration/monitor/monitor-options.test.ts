import { describe, expect, it } from 'vitest';
import { resolveOptions } from '../policies/options.ts';
import { type CopyFacts, monitorOptions, type MonitorOptions } from './monitor-options.ts';
import type { MigrationConfiguration } from '../../api/kubevirt/migration-configuration.ts';

const GIB = 2 ** 30;
const FOREVER = Number.POSITIVE_INFINITY;

function optionsOf(migrations: MigrationConfiguration, facts: Partial<CopyFacts> = {}): MonitorOptions {
  const featureGates = ['MigrationStallDetection', 'MigrationDowntimeTuning'];
  const { options } = resolveOptions(undefined, { migrations, developerConfiguration: { featureGates } });
  return monitorOptions(options, { sizeBytes: 4 * GIB, isPostCopyPossible: true, ...facts });
}

describe('the time for a copy', () => {
  it.each<[string, MigrationConfiguration, number, number, number]>([
    ['150 s for each GiB by default, twice that at most', {}, 4 * GIB, 600_000, 1_200_000],
    ['GiB, not GB, and parts of them count', { completionTimeoutPerGiB: 100 }, 2.5 * GIB, 250_000, 500_000],
    ['a small guest has as long as one of a GiB', { completionTimeoutPerGiB: 100 }, GIB / 16, 100_000, 200_000],
    ['0 is no limit', { completionTimeoutPerGiB: 0 }, GIB, FOREVER, FOREVER],
    [
      'another factor',
      { completionTimeoutPerGiB: 10, experimental: { stallDetector: { completionTimeoutFactor: '1.5' } } },
      GIB,
      10_000,
      15_000,
    ],
  ])('%s', (_, migrations, sizeBytes, completionDeadlineMs, finalDeadlineMs) =>
    expect(optionsOf(migrations, { sizeBytes })).toMatchObject({ completionDeadlineMs, finalDeadlineMs }),
  );
});

describe('options', () => {
  it('are numbers in milliseconds and parts', () =>
    expect(
      optionsOf({ progressTimeout: 7, experimental: { stallDetector: { stallMargin: 10 }, downtimeTuning: {} } }),
    ).toMatchObject({
      progressTimeoutMs: 7000,
      outerDeadlineMs: FOREVER,
      downtimeMsMax: 900,
      averageWeight: 0.4,
      preCopyPossibleFactor: 1.5,
      switchoverTimeoutMs: 60_000,
      stall: { margin: 0.1, progressTimeoutMs: 40_000, patienceDecayFactor: 0.5, searchesMinima: true },
      downtimeSteps: { initialMs: 150, steps: 7, startAfterPass: 3, cooldownMs: 10_000 },
    }));
  it.each([
    ['by default', undefined, 30_000],
    ['where there is no limit', 0, 30_000],
    ['where there is more patience', 150, 30_000],
    ['where there is less', 7, 7000],
    ['where there is next to none', 1, 5000],
  ])('say how long a link may be silent: %s', (_, progressTimeout, silenceTimeoutMs) =>
    expect(optionsOf({ progressTimeout })).toMatchObject({ silenceTimeoutMs }),
  );
  it('leave out what nobody asked for', () =>
    expect(optionsOf({})).toMatchObject({ stall: undefined, downtimeSteps: undefined }));
  it.each([
    [true, true, true],
    [true, false, false],
    [false, true, false],
  ])('post-copy that is allowed (%s) and possible (%s): %s', (allowPostCopy, isPostCopyPossible, allowsPostCopy) =>
    expect(optionsOf({ allowPostCopy }, { isPostCopyPossible })).toMatchObject({ allowsPostCopy }),
  );
});
