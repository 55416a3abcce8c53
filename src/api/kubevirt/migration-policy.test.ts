import { describe, expect, it } from 'vitest';
import type { JsonObject } from '../meta.ts';
import { objectsOf, POLICIES } from './manifests.fixture.ts';
import { type MigrationPolicy, policySelectors } from './migration-policy.ts';

function labelsOf(namespaceSelector: JsonObject | undefined): Record<string, string> {
  const selectors = namespaceSelector ? { namespaceSelector } : {};
  return Object.fromEntries(policySelectors({ selectors }).namespace);
}

describe('selectors', () => {
  it.each<[string, JsonObject | undefined, Record<string, string>]>([
    ['nothing', undefined, {}],
    ["KubeVirt's form", { a: 'b', c: '' }, { a: 'b', c: '' }],
    ['the form of the proposal', { matchLabels: { a: 'b', c: '' } }, { a: 'b', c: '' }],
    ['a label that is called as that form', { matchLabels: 'b' }, { matchLabels: 'b' }],
    [
      'what YAML makes of values',
      { matchLabels: { a: true, b: 1, c: 1.5, d: false } },
      { a: 'true', b: '1', c: '1.5', d: 'false' },
    ],
  ])('are read from %s', (_, selector, labels) => expect(labelsOf(selector)).toEqual(labels));
  it('are those of the full manifest of the proposal', () => {
    const [policy] = objectsOf(POLICIES) as MigrationPolicy[];
    const { namespace, virtualMachineInstance } = policySelectors(policy!.spec);
    expect(Object.fromEntries(namespace)).toEqual({ 'hpc-workloads': 'true', 'xyz-workloads-type': '' });
    expect(Object.fromEntries(virtualMachineInstance)).toEqual({ 'workload-type': 'db', 'operating-system': '' });
  });
});
