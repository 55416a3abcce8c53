import { describe, expect, it } from 'vitest';
import type { KubeVirt } from '../../api/kubevirt/kube-virt.ts';
import { newestRules, slotRules } from './ledger-rules.ts';

type Configuration = NonNullable<KubeVirt['spec']['configuration']>;
const rulesOf = (configuration: Configuration, resourceVersion = '7'): ReturnType<typeof slotRules> =>
  slotRules({ metadata: { resourceVersion }, spec: { configuration } });

describe('the rules of slots', () => {
  it("are KubeVirt's where nothing is said", () => {
    const expected = { perCluster: 5, outboundPerNode: 2, inboundPerNode: 2 };
    expect(slotRules(undefined)).toMatchObject({
      limits: expected,
      limitsVersion: '0',
      isByPriority: true,
      ageingMs: 0,
    });
    expect(rulesOf({})).toMatchObject({ limits: expected, limitsVersion: '7' });
  });

  it('are what the configuration says, as far as there is room', () => {
    const migrations = {
      parallelMigrationsPerCluster: 1_000_000,
      parallelOutboundMigrationsPerNode: 0,
      parallelInboundMigrationsPerNode: 7,
      priorityAgeingSeconds: 60,
    };
    const developerConfiguration = { disabledFeatureGates: ['MigrationPriorityQueue'] };
    expect(rulesOf({ migrations, developerConfiguration })).toMatchObject({
      limits: { perCluster: 1000, outboundPerNode: 0, inboundPerNode: 7 },
      isByPriority: false,
      ageingMs: 60_000,
    });
  });

  it.each([
    ['older than', '9', '12', 2],
    ['newer than', '12', '9', 5],
    ['as new as', '9', '9', 5],
    ['not to be compared with', 'x', '9', 5],
  ])('yield to the limits of a ledger if %s those', (_name, ours, theirs, expected) => {
    const limits = { perCluster: 2, outboundPerNode: 1, inboundPerNode: 1 };
    const { limits: newest } = newestRules(rulesOf({}, ours), { limits, limitsVersion: theirs, holders: new Map() });
    expect(newest.perCluster).toBe(expected);
  });
});
