import { describe, expect, it } from 'vitest';
import type { KubeVirtConfiguration } from '../../api/kubevirt/kube-virt.ts';
import type { MigrationPolicySpec } from '../../api/kubevirt/migration-policy.ts';
import { frozenOptions, resolveOptions } from './options.ts';
import { makePolicy } from './policy.fixture.ts';

type Options = Omit<MigrationPolicySpec, 'selectors'>;
type Migrations = KubeVirtConfiguration['migrations'];

const POLICY = { from: 'Policy', policy: 'fast' };
const CONFIGURATION = { from: 'Configuration' };
const DEFAULT = { from: 'Default' };

function resolve(options?: Options, migrations?: Migrations, featureGates: string[] = []) {
  const policy = options && makePolicy('fast', {}, {}, options);
  return resolveOptions(policy, { migrations, developerConfiguration: { featureGates } });
}

describe('defaults', () => {
  it('are those of KubeVirt', () => {
    expect(resolveOptions(undefined).options).toEqual({
      allowAutoConverge: false,
      bandwidthPerMigration: '0',
      completionTimeoutPerGiB: 150,
      progressTimeout: 150,
      maxDowntimeMs: 900,
      utilityVolumesTimeout: 150,
      allowPostCopy: false,
      allowWorkloadDisruption: false,
      unsafeMigrationOverride: false,
      disableTLS: false,
      matchSELinuxLevelOnMigration: true,
      experimental: {},
    });
  });
  it('say that they are defaults', () => {
    const { options, origins } = resolve({});
    const { experimental: _, ...plain } = options;
    expect([...origins.keys()].toSorted()).toEqual(Object.keys(plain).toSorted());
    expect(new Set([...origins.values()].map(({ from }) => from))).toEqual(new Set(['Default', 'Following']));
  });
});

describe('each option of a policy goes before the configuration, and that before the default', () => {
  it.each<[keyof Options & keyof NonNullable<Migrations>, unknown, unknown]>([
    ['allowAutoConverge', false, true],
    ['bandwidthPerMigration', '217Ki', '1Gi'],
    ['completionTimeoutPerGiB', 23, 800],
    ['completionTimeoutPerGiB', 0, 800],
    ['progressTimeout', 7, 8],
    ['maxDowntimeMs', 50, 500],
    ['allowPostCopy', false, true],
    ['allowWorkloadDisruption', false, true],
    ['disableTLS', false, true],
  ])('%s', (option, own, cluster) => {
    const both = resolve({ [option]: own }, { [option]: cluster });
    expect([both.options[option], both.origins.get(option)]).toEqual([own, POLICY]);
    const configured = resolve({}, { [option]: cluster });
    expect([configured.options[option], configured.origins.get(option)]).toEqual([cluster, CONFIGURATION]);
    const none = resolve({ [option]: null }, { [option]: null });
    expect(none.options[option]).toEqual(resolve().options[option]);
  });

  it('takes from no policy what is a matter of the cluster', () => {
    const { options } = resolve({ network: 'mine', unsafeMigrationOverride: true } as Options, { network: 'theirs' });
    expect(options).toMatchObject({ network: 'theirs', unsafeMigrationOverride: false });
  });
  it('keeps the network and the ports of the cluster', () => {
    const { options, origins } = resolve({}, { network: 'fast-net', portRange: { first: 1000, last: 1010 } });
    expect(options).toMatchObject({ network: 'fast-net', portRange: { first: 1000, last: 1010 } });
    expect([origins.get('network'), origins.get('portRange')]).toEqual([CONFIGURATION, CONFIGURATION]);
  });
});

describe('whether a guest may be disturbed follows post-copy', () => {
  const following = (set: object) => ({ from: 'Following', option: 'allowPostCopy', set });
  it.each<[string, Options, Migrations, boolean, object]>([
    ['nobody says anything', {}, {}, false, following(DEFAULT)],
    ['the policy allows post-copy', { allowPostCopy: true }, {}, true, following(POLICY)],
    ['the configuration allows post-copy', {}, { allowPostCopy: true }, true, following(CONFIGURATION)],
    [
      'the policy forbids post-copy, and the configuration allows it',
      { allowPostCopy: false },
      { allowPostCopy: true },
      false,
      following(POLICY),
    ],
    [
      'the policy allows post-copy, and the configuration forbids disturbing',
      { allowPostCopy: true },
      { allowWorkloadDisruption: false },
      true,
      following(POLICY),
    ],
    [
      'the policy says it itself',
      { allowPostCopy: true, allowWorkloadDisruption: false },
      { allowWorkloadDisruption: true },
      false,
      POLICY,
    ],
    [
      'the configuration says it itself',
      {},
      { allowPostCopy: true, allowWorkloadDisruption: false },
      false,
      CONFIGURATION,
    ],
  ])('%s', (_, own, cluster, expected, origin) => {
    const { options, origins } = resolve(own, cluster);
    expect([options.allowWorkloadDisruption, origins.get('allowWorkloadDisruption')]).toEqual([expected, origin]);
  });
});

describe('experiments', () => {
  it('are merged field by field, and completed', () => {
    const { options, origins, ignored } = resolve(
      { experimental: { stallDetector: { stallMargin: 10 }, compression: 'zstd' } },
      { experimental: { stallDetector: { stallMargin: 1, switchoverTimeout: 5 }, compression: 'none' } },
      ['MigrationStallDetection'],
    );
    expect(options.experimental).toEqual({
      stallDetector: {
        stallMargin: 10,
        ewmaAlpha: '0.4',
        stallProgressTimeout: 40,
        switchoverTimeout: 5,
        precopyPossibleFactor: '1.5',
        patienceWindowDecayFactor: '0.5',
        searchLocalMinima: true,
        completionTimeoutFactor: '2',
      },
      compression: 'zstd',
    });
    expect(origins.get('experimental.stallDetector.stallMargin')).toEqual(POLICY);
    expect(origins.get('experimental.stallDetector.switchoverTimeout')).toEqual(CONFIGURATION);
    expect(origins.get('experimental.stallDetector.ewmaAlpha')).toEqual(DEFAULT);
    expect(origins.get('experimental.compression')).toEqual(POLICY);
    expect(ignored).toEqual([]);
  });
  it('are whole when they are only named', () => {
    const { options } = resolve({ experimental: { downtimeTuning: {} } }, {}, ['MigrationDowntimeTuning']);
    expect(options.experimental).toEqual({
      downtimeTuning: { initialMs: 150, steps: 7, startAfterIteration: 3, cooldownSeconds: 10 },
    });
  });
  it('have no effect while their gates are closed, and that is said', () => {
    const { options, ignored } = resolve({ experimental: { downtimeTuning: { steps: 3 }, stallDetector: {} } });
    expect(options.experimental).toEqual({});
    expect(ignored).toEqual([
      expect.objectContaining({ option: 'experimental.stallDetector', origin: POLICY, reason: 'FeatureGateDisabled' }),
      expect.objectContaining({ option: 'experimental.downtimeTuning', origin: POLICY, reason: 'FeatureGateDisabled' }),
    ]);
  });
});

describe('options that were frozen', () => {
  it('are the same when they are read again, whatever the gates say by then', () => {
    const { options } = resolve(
      { allowPostCopy: true, experimental: { stallDetector: { stallMargin: 9 }, compression: 'zstd' } },
      { network: 'fast-net', allowWorkloadDisruption: false },
      ['MigrationStallDetection'],
    );
    expect(frozenOptions(JSON.parse(JSON.stringify(options)))).toEqual(options);
  });
  it('are completed where an older writer left some out', () =>
    expect(frozenOptions({ allowPostCopy: true })).toEqual({
      ...resolve().options,
      allowPostCopy: true,
      allowWorkloadDisruption: true,
    }));
});
