import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { explain } from './explain.ts';
import { makePolicy } from './policy.fixture.ts';
import { PolicyIndex } from './policy-index.ts';

const labelled = (labels?: { [key: string]: string }) => ({ metadata: { labels } });

describe('an explanation', () => {
  const policies = [
    makePolicy('gold', { tier: 'gold' }, { env: 'prod' }, { maxDowntimeMs: 50 }),
    makePolicy('any-tier', { tier: '' }, { env: 'prod' }),
    makePolicy('databases', { app: 'db' }),
    makePolicy('everyone', {}),
    makePolicy('big', { size: 'big', tier: 'gold' }, { env: 'prod' }),
    makePolicy('other', { tier: 'silver', app: 'web' }),
  ];
  const told = explain(labelled({ tier: 'gold', app: 'db' }), labelled({ env: 'prod' }), new PolicyIndex(policies), {
    migrations: { bandwidthPerMigration: '1Gi' },
  });

  it('names the winner and what it matched', () =>
    expect(told.winner).toEqual({
      policy: 'gold',
      labels: [
        { owner: 'VirtualMachineInstance', key: 'tier', value: 'gold', isAnyValue: false },
        { owner: 'Namespace', key: 'env', value: 'prod', isAnyValue: false },
      ],
    }));
  it('says why each other match lost, best first', () =>
    expect(told.beaten.map(({ policy, rule, message }) => [policy, rule, message])).toEqual([
      ['any-tier', 'MoreExactValues', 'the same keys match, but 2 by their exact values, not 1'],
      ['databases', 'MoreMatchingLabels', '2 labels match, not 1'],
      ['everyone', 'MoreMatchingLabels', '2 labels match, not 0'],
    ]));
  it('says what any value was found as', () =>
    expect(told.beaten[0]?.labels[0]).toEqual({
      owner: 'VirtualMachineInstance',
      key: 'tier',
      value: 'gold',
      isAnyValue: true,
    }));
  it('says what follows, and from where', () => {
    expect(told.options).toMatchObject({ maxDowntimeMs: 50, bandwidthPerMigration: '1Gi', progressTimeout: 150 });
    expect(told.origins.get('maxDowntimeMs')).toEqual({ from: 'Policy', policy: 'gold' });
    expect(told.origins.get('bandwidthPerMigration')).toEqual({ from: 'Configuration' });
    expect(told.origins.get('progressTimeout')).toEqual({ from: 'Default' });
  });
  it('says what would change it', () =>
    expect(told.changes).toEqual([
      { kind: 'DeletePolicy', policy: 'gold', winner: 'any-tier' },
      { kind: 'RemoveLabel', owner: 'VirtualMachineInstance', key: 'tier', winner: 'databases' },
      { kind: 'RemoveLabel', owner: 'Namespace', key: 'env', winner: 'databases' },
      { kind: 'SetLabel', owner: 'VirtualMachineInstance', key: 'size', value: 'big', winner: 'big' },
    ]));
  it.each([
    ['MoreGuestLabels', makePolicy('w', { a: '' }), makePolicy('l', {}, { a: '' })],
    ['EarlierLabelKeys', makePolicy('w', { a: '' }), makePolicy('l', { b: '' })],
    ['EarlierName', makePolicy('a', { a: '1', b: '' }), makePolicy('l', { a: '', b: '1' })],
  ])('knows the rule %s', (rule, ...pair) => {
    const { beaten } = explain(labelled({ a: '1', b: '1' }), labelled({ a: '1' }), new PolicyIndex(pair));
    expect(beaten).toEqual([expect.objectContaining({ policy: 'l', rule })]);
  });
});

describe('where no policy matches', () => {
  const told = explain(labelled(), labelled(), new PolicyIndex([makePolicy('p', { app: '' })]));
  it('has no winner, and the configuration alone counts', () => {
    expect(told).toMatchObject({ beaten: [], options: { maxDowntimeMs: 900 } });
    expect(told.winner).toBeUndefined();
  });
  it('says by which label one would', () =>
    expect(told.changes).toEqual([
      { kind: 'SetLabel', owner: 'VirtualMachineInstance', key: 'app', value: undefined, winner: 'p' },
    ]));
});

it('names but a few of the labels that ten thousand policies wait for', () => {
  const many = Array.from({ length: 10_000 }, (_, index) => makePolicy(`p${index}`, { team: `t${index}` }));
  expect(explain(labelled({}), labelled(), new PolicyIndex(many)).changes).toHaveLength(10);
});

it('promises no change that would not come true', () => {
  const key = fc.constantFrom('a', 'b', 'c');
  const labels = fc.dictionary(key, fc.constantFrom<string>('1', '2'), { maxKeys: 3 });
  const selector = fc.dictionary(key, fc.constantFrom('', '1', '2'), { maxKeys: 2 });
  const selectors = fc.array(fc.tuple(selector, selector), { maxLength: 12 });
  fc.assert(
    fc.property(selectors, labels, labels, (pairs, guest, namespace) => {
      const policies = pairs.map((pair, index) => makePolicy(`p${index}`, ...pair));
      const told = explain(labelled(guest), labelled(namespace), new PolicyIndex(policies));
      for (const change of told.changes) {
        expect(change.winner).not.toBe(told.winner?.policy);
        const kept = policies.filter(
          ({ metadata }) => change.kind !== 'DeletePolicy' || metadata.name !== change.policy,
        );
        const changed = { VirtualMachineInstance: { ...guest }, Namespace: { ...namespace } };
        if (change.kind === 'RemoveLabel') delete changed[change.owner][change.key];
        if (change.kind === 'SetLabel') changed[change.owner][change.key] = change.value ?? 'anything';
        const after = explain(
          labelled(changed.VirtualMachineInstance),
          labelled(changed.Namespace),
          new PolicyIndex(kept),
        );
        expect(after.winner?.policy).toBe(change.winner);
      }
    }),
    { numRuns: 300 },
  );
});

it('says of a policy that an older one has its selectors, and what would change that', () => {
  const made = (name: string, creationTimestamp: string) => {
    const policy = makePolicy(name, { app: 'web' });
    return { ...policy, metadata: { ...policy.metadata, creationTimestamp } };
  };
  const policies = new PolicyIndex([made('a', '2026-01-01T00:00:05Z'), made('z', '2026-01-01T00:00:00Z')]);
  const told = explain({ metadata: { labels: { app: 'web' } } }, { metadata: {} }, policies);
  expect(told.winner?.policy).toBe('z');
  expect(told.beaten).toMatchObject([
    {
      policy: 'a',
      rule: 'OlderWithSameSelectors',
      message: 'both have the same selectors, and of such the oldest alone counts: "z"',
    },
  ]);
  expect(told.changes).toContainEqual({ kind: 'DeletePolicy', policy: 'z', winner: 'a' });
});
