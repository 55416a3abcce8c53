import { describe, expect, it } from 'vitest';
import { type FeatureGate, featureGateWarnings, isFeatureGateEnabled } from './feature-gates.ts';

describe('feature gates', () => {
  it.each<[FeatureGate, featureGates: string[], disabledFeatureGates: string[], isEnabled: boolean]>([
    ['MigrationPriorityQueue', [], [], true],
    ['MigrationPriorityQueue', [], ['MigrationPriorityQueue'], false],
    ['MigrationPriorityQueue', ['MigrationPriorityQueue'], ['MigrationPriorityQueue'], true],
    ['DecentralizedLiveMigration', [], [], false],
    ['DecentralizedLiveMigration', ['DecentralizedLiveMigration'], [], true],
    ['DecentralizedLiveMigration', ['DecentralizedLiveMigration'], ['DecentralizedLiveMigration'], true],
    ['PreemptionEvictionLiveMigration', [], [], false],
    ['NoExecuteTaintEvictionLiveMigration', ['PreemptionEvictionLiveMigration'], [], false],
    ['MigrationStallDetection', [], [], false],
    ['MigrationDowntimeTuning', [], [], false],
  ])('%s, with %j on and %j off, is on: %s', (gate, featureGates, disabledFeatureGates, isEnabled) => {
    const configuration = { developerConfiguration: { featureGates, disabledFeatureGates } };
    expect(isFeatureGateEnabled(gate, configuration)).toBe(isEnabled);
  });
  it('are as they are by default where nothing is said', () => {
    expect(isFeatureGateEnabled('MigrationPriorityQueue')).toBe(true);
    expect(isFeatureGateEnabled('MigrationPriorityQueue', { developerConfiguration: {} })).toBe(true);
  });
  it('warn of what is unknown, and of what does nothing here', () => {
    const developerConfiguration = {
      featureGates: ['MigrationPriorityQueue', 'LiveMigration', 'VSOCK', 'Typo', 'constructor'],
      disabledFeatureGates: ['Other'],
    };
    expect(featureGateWarnings({ developerConfiguration }, 'spec.configuration')).toEqual([
      'spec.configuration.developerConfiguration.featureGates[2]: feature gate "VSOCK" has no effect here',
      'spec.configuration.developerConfiguration.featureGates[3]: unknown feature gate "Typo"',
      'spec.configuration.developerConfiguration.featureGates[4]: unknown feature gate "constructor"',
      'spec.configuration.developerConfiguration.disabledFeatureGates[0]: unknown feature gate "Other"',
    ]);
    expect(featureGateWarnings({}, 'spec.configuration')).toEqual([]);
  });
});
