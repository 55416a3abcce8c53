import { expect, it } from 'vitest';
import type { PolicyExplanation } from '../extension/subresources/explain-policy.ts';
import { explanationLines } from './explain-policy.ts';

const NONE: PolicyExplanation = {
  apiVersion: 'subresources.kubevirt.io/v1',
  kind: 'MigrationPolicyExplanation',
  metadata: { name: 'db', namespace: 'shop' },
  labelsOf: 'VirtualMachine',
  matchedLabels: [],
  beaten: [],
  options: [],
  ignored: [],
  changes: [],
};

it('prints all of it in columns', () => {
  const policy = { from: 'Policy', policy: 'gold' } as const;
  const told: PolicyExplanation = {
    ...NONE,
    labelsOf: 'VirtualMachineInstance',
    policy: 'gold',
    matchedLabels: [
      { owner: 'VirtualMachineInstance', key: 'tier', value: 'gold', isAnyValue: false },
      { owner: 'Namespace', key: 'env', value: 'prod', isAnyValue: true },
    ],
    beaten: [{ policy: 'everyone', labels: [], rule: 'MoreMatchingLabels', message: '2 labels match, not 0' }],
    options: [
      { option: 'allowPostCopy', value: true, origin: policy },
      {
        option: 'allowWorkloadDisruption',
        value: true,
        origin: { from: 'Following', option: 'allowPostCopy', set: policy },
      },
      { option: 'bandwidthPerMigration', value: '1Gi', origin: { from: 'Configuration' } },
      { option: 'progressTimeout', value: 150, origin: { from: 'Default' } },
    ],
    ignored: [
      {
        option: 'experimental.stallDetector',
        origin: policy,
        reason: 'FeatureGateDisabled',
        message: 'it has no effect',
      },
    ],
    changes: [
      { kind: 'DeletePolicy', policy: 'gold', winner: 'everyone' },
      { kind: 'RemoveLabel', owner: 'Namespace', key: 'env' },
      { kind: 'SetLabel', owner: 'VirtualMachineInstance', key: 'size', value: 'big', winner: 'big' },
      { kind: 'SetLabel', owner: 'VirtualMachineInstance', key: 'app', winner: 'apps' },
    ],
  };
  expect(explanationLines(told).join('\n')).toBe(
    `The policy gold holds for shop/db.

It asks for:
  tier=gold  of the machine, with this value
  env=prod   of the namespace, any value will do

These match too, and lost:
  everyone  2 labels match, not 0

Options:
  allowPostCopy            true  policy gold
  allowWorkloadDisruption  true  as allowPostCopy (policy gold)
  bandwidthPerMigration    1Gi   configuration of the cluster
  progressTimeout          150   default

Without effect:
  it has no effect

What would change the policy:
  without the policy gold                           policy everyone
  without the label env of the namespace            no policy
  with the label size=big of the machine            policy big
  with the label app, of any value, of the machine  policy apps`,
  );
});

it.each<[string, Partial<PolicyExplanation>, string[]]>([
  [
    'no policy',
    {},
    [
      'No policy holds for shop/db: the configuration of the cluster alone counts.',
      'It does not run: the labels are those of its template.',
    ],
  ],
  [
    'a policy for all',
    { policy: 'all', labelsOf: 'VirtualMachineInstance' },
    ['The policy all holds for shop/db.', 'It asks for no labels, and is for every machine.'],
  ],
])('%s', (_, changes, expected) => expect(explanationLines({ ...NONE, ...changes })).toEqual(expected));
