import { expect, it } from 'vitest';
import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import { explain } from '../../migration/policies/explain.ts';
import { PolicyIndex } from '../../migration/policies/policy-index.ts';
import { explanationDocument } from './explain-policy.ts';

it('says over the wire all that was explained, with the value of every option', () => {
  const policy: MigrationPolicy = {
    apiVersion: 'migrations.kubevirt.io/v1alpha1',
    kind: 'MigrationPolicy',
    metadata: { name: 'gold' },
    spec: {
      selectors: { virtualMachineInstanceSelector: { tier: '' } },
      maxDowntimeMs: 50,
      experimental: { downtimeTuning: { steps: 3 } },
    },
  };
  const told = explain({ metadata: { labels: { tier: 'gold' } } }, { metadata: {} }, new PolicyIndex([policy]), {
    developerConfiguration: { featureGates: ['MigrationDowntimeTuning'] },
  });
  const document = explanationDocument(told, { namespace: 'shop', name: 'db', labelsOf: 'VirtualMachine' });
  expect(JSON.parse(JSON.stringify(document))).toMatchObject({
    kind: 'MigrationPolicyExplanation',
    metadata: { name: 'db', namespace: 'shop' },
    policy: 'gold',
    matchedLabels: [{ owner: 'VirtualMachineInstance', key: 'tier', value: 'gold', isAnyValue: true }],
    options: expect.arrayContaining([
      { option: 'maxDowntimeMs', value: 50, origin: { from: 'Policy', policy: 'gold' } },
      { option: 'progressTimeout', value: 150, origin: { from: 'Default' } },
      { option: 'experimental.downtimeTuning.steps', value: 3, origin: { from: 'Policy', policy: 'gold' } },
      { option: 'experimental.downtimeTuning.initialMs', value: 150, origin: { from: 'Default' } },
    ]),
    changes: expect.arrayContaining([{ kind: 'DeletePolicy', policy: 'gold' }]),
  });
});
