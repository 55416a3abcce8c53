import { describe, expect, it } from 'vitest';
import type { Condition } from '../../api/meta.ts';
import type { Resource } from '../../kube/resource.ts';
import { conditionsWith, type Findings } from './conditions.ts';

const NOW = Date.UTC(2026, 0, 1, 12, 0, 0);
const LATER = NOW + 60_000;
const WELL: Findings = { contentFailures: [], remaining: new Map(), finalizers: new Map() };
const resource = (plural: string, group = ''): Resource => ({
  group,
  version: 'v1',
  plural,
  kind: plural,
  namespaced: true,
});

const told = (findings: Partial<Findings>): Record<string, string> =>
  Object.fromEntries(
    conditionsWith([], { ...WELL, ...findings }, NOW).map(({ type, status, reason, message }) => [
      type,
      `${status} ${reason}: ${message}`,
    ]),
  );

describe('the conditions of a namespace that ends', () => {
  it('say that all is well, each', () => {
    expect(told({})).toEqual({
      NamespaceDeletionDiscoveryFailure: 'False ResourcesDiscovered: All resources successfully discovered',
      NamespaceDeletionGroupVersionParsingFailure:
        'False ParsedGroupVersions: All legacy kube types successfully parsed',
      NamespaceDeletionContentFailure:
        'False ContentDeleted: All content successfully deleted, may be waiting on finalization',
      NamespaceContentRemaining: 'False ContentRemoved: All content successfully removed',
      NamespaceFinalizersRemaining: 'False ContentHasNoFinalizers: All content-preserving finalizers finished',
    });
  });

  it.each<[Partial<Findings>, Record<string, string>]>([
    [{ discoveryFailure: 'no answer' }, { NamespaceDeletionDiscoveryFailure: 'True DiscoveryFailed: no answer' }],
    [
      { parsingFailure: 'unexpected GroupVersion string: a/b/c' },
      {
        NamespaceDeletionGroupVersionParsingFailure:
          'True GroupVersionParsingFailed: unexpected GroupVersion string: a/b/c',
      },
    ],
    [
      { contentFailures: ['b', 'a'] },
      {
        NamespaceDeletionContentFailure:
          'True ContentDeletionFailed: Failed to delete all resource types, 2 remaining: a, b',
      },
    ],
    [
      {
        remaining: new Map([
          [resource('pods'), 2],
          [resource('gadgets', 'example.com'), 1],
        ]),
      },
      {
        NamespaceContentRemaining:
          'True SomeResourcesRemain: Some resources are remaining: gadgets.example.com has 1 resource instances, pods. has 2 resource instances',
      },
    ],
    [
      {
        finalizers: new Map([
          ['b.io/x', 1],
          ['a.io/x', 3],
        ]),
      },
      {
        NamespaceFinalizersRemaining:
          'True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: a.io/x in 3 resource instances, b.io/x in 1 resource instances',
      },
    ],
  ])('tell of %j', (findings, expected) => expect(told(findings)).toMatchObject(expected));

  it('are the same list where nothing is new, and keep what others say', () => {
    const others: Condition[] = [{ type: 'Other', status: 'True' }];
    const first = conditionsWith(others, WELL, NOW);
    expect(first).toHaveLength(6);
    expect(first[0]).toEqual(others[0]);
    expect(conditionsWith(first, WELL, LATER)).toBe(first);
  });

  it('keep the time of the last change of their status', () => {
    const failing = conditionsWith([], { ...WELL, contentFailures: ['a'] }, NOW);
    const otherwise = conditionsWith(failing, { ...WELL, contentFailures: ['b'] }, LATER);
    const well = conditionsWith(otherwise, WELL, LATER);
    const timeOf = (conditions: readonly Condition[]) =>
      conditions.find(({ type }) => type === 'NamespaceDeletionContentFailure')?.lastTransitionTime;
    expect([failing, otherwise, well].map(timeOf)).toEqual([
      '2026-01-01T12:00:00Z',
      '2026-01-01T12:00:00Z',
      '2026-01-01T12:01:00Z',
    ]);
  });
});
