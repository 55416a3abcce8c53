import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { MigrationPolicy } from '../../api/kubevirt/migration-policy.ts';
import { makePolicy } from './policy.fixture.ts';
import { PolicyIndex } from './policy-index.ts';
import type { Subject } from './ranked-policy.ts';

const order = (policies: readonly MigrationPolicy[], subject: Subject): string[] =>
  new PolicyIndex(policies).matching(subject).map(({ name }) => name);

describe('the example of the proposal', () => {
  const subject = {
    labels: { size: 'small', os: 'fedora', gpu: 'nvidia' },
    namespaceLabels: { priority: 'high', bandwidth: 'medium', 'hpc-workload': 'true' },
  };
  // Their names are in the reverse order of their precedence, so that no name can help.
  const seven = [
    makePolicy('g', { size: 'small', gpu: 'nvidia' }, { priority: 'high', bandwidth: 'medium' }),
    makePolicy('f', { size: 'small', gpu: 'nvidia' }, { priority: 'high', 'hpc-workload': 'true' }),
    makePolicy('e', { size: 'small', gpu: 'nvidia' }, { priority: 'high' }),
    makePolicy('d', { size: 'small' }, { priority: 'high', 'hpc-workload': 'true' }),
    makePolicy('c', { gpu: 'nvidia' }, { priority: 'high' }),
    makePolicy('b', { gpu: 'nvidia' }, {}),
    makePolicy('a', { gpu: 'intel' }, { priority: 'high' }),
  ];

  it('lists six of the seven in its order', () =>
    expect(order(seven, subject)).toEqual(['g', 'f', 'e', 'd', 'c', 'b']));
  it('does so in whichever order they were made', () =>
    expect(order(seven.toReversed(), subject)).toEqual(['g', 'f', 'e', 'd', 'c', 'b']));
});

describe('precedence', () => {
  const subject = {
    labels: { app: 'db', tier: 'gold', zone: 'a', both: 'x' },
    namespaceLabels: { team: 'red', env: 'prod', both: 'x' },
  };
  it.each([
    [
      'more labels, even if fewer of them are the guest’s own',
      makePolicy('z', {}, { team: 'red', env: 'prod' }),
      makePolicy('a', { app: 'db' }),
    ],
    [
      'of as many, more of the guest’s own, even if their keys come later',
      makePolicy('z', { zone: 'a', tier: 'gold' }),
      makePolicy('a', { app: 'db' }, { env: 'prod' }),
    ],
    ['a key that comes earlier', makePolicy('z', { app: 'db' }), makePolicy('a', { tier: 'gold' })],
    [
      'an earlier key of the namespace, among as many of the guest’s own',
      makePolicy('z', { zone: 'a' }, { env: 'prod' }),
      makePolicy('a', { zone: 'a' }, { team: 'red' }),
    ],
    [
      'the second key where the first is the same',
      makePolicy('z', { app: 'db', tier: 'gold' }),
      makePolicy('a', { app: 'db', zone: 'a' }),
    ],
    [
      'an earlier key before an exact value',
      makePolicy('z', { app: '', tier: '' }),
      makePolicy('a', { app: 'db', zone: 'a' }),
    ],
    [
      'a key that both have counts twice',
      makePolicy('z', { both: 'x' }, { both: 'x' }),
      makePolicy('a', { both: 'x' }, { env: 'prod' }),
    ],
    ['an exact value before any', makePolicy('z', { app: 'db' }), makePolicy('a', { app: '' })],
    [
      'more exact values, wherever they are',
      makePolicy('z', { app: '', tier: 'gold', zone: 'a' }),
      makePolicy('a', { app: 'db', tier: '', zone: '' }),
    ],
    [
      'the name, where all else is alike',
      makePolicy('a', { app: '', tier: 'gold' }),
      makePolicy('z', { app: 'db', tier: '' }),
    ],
  ])('%s', (_, winner, loser) => {
    const expected = [winner.metadata.name, loser.metadata.name];
    expect(order([winner, loser], subject)).toEqual(expected);
    expect(order([loser, winner], subject)).toEqual(expected);
  });
});

describe('matching', () => {
  const policy = makePolicy('p', {});
  const withSpec = (spec: object) => ({ ...policy, spec }) as MigrationPolicy;
  it.each<[string, string[], MigrationPolicy, Subject]>([
    ['needs all labels', [], makePolicy('p', { a: '1', b: '2' }), { labels: { a: '1' } }],
    ['needs those of the namespace, too', [], makePolicy('p', { a: '1' }, { b: '2' }), { labels: { a: '1' } }],
    ['takes no label of the one for the other’s', [], makePolicy('p', { a: '1' }), { namespaceLabels: { a: '1' } }],
    ['takes any value', ['p'], makePolicy('p', { a: '' }), { labels: { a: 'whatever' } }],
    ['takes any value, the empty one as well', ['p'], makePolicy('p', { a: '' }), { labels: { a: '' } }],
    ['wants the label even where any value does', [], makePolicy('p', { a: '' }), { labels: { b: '' } }],
    ['takes no empty value for an exact one', [], makePolicy('p', { a: '1' }), { labels: { a: '' } }],
    ['is for every guest without labels', ['p'], makePolicy('p', {}), {}],
    ['is for no guest that has no labels, if it asks for some', [], makePolicy('p', { a: '1' }), {}],
    ['knows no label that objects have by themselves', [], makePolicy('p', { constructor: '' }), { labels: {} }],
    [
      'reads the form of the proposal, with what YAML makes of its values',
      ['p'],
      withSpec({
        selectors: { namespaceSelector: { matchLabels: { 'hpc-workloads': true, 'xyz-workloads-type': '' } } },
      }),
      { namespaceLabels: { 'hpc-workloads': 'true', 'xyz-workloads-type': 'batch' } },
    ],
    ['is for nobody without selectors', [], withSpec({}), { labels: { a: '1' } }],
    ['is for everybody with empty ones', ['p'], withSpec({ selectors: {} }), {}],
  ])('%s', (_, expected, tried, subject) => expect(order([tried], subject)).toEqual(expected));
});

describe('the index', () => {
  it('replaces and forgets policies', () => {
    const index = new PolicyIndex([makePolicy('p', { a: '1' }), makePolicy('q', { a: '' })]);
    index.set(makePolicy('p', { a: '2' }));
    expect(index.winner({ labels: { a: '1' } })?.name).toBe('q');
    expect(index.winner({ labels: { a: '2' } })?.name).toBe('p');
    index.delete('p');
    index.delete('p');
    expect(index.winner({ labels: { a: '2' } })?.name).toBe('q');
    index.set({ ...makePolicy('q', {}), spec: {} } as MigrationPolicy);
    expect(index.winner({ labels: { a: '2' } })).toBeUndefined();
    expect([...index.all()]).toEqual([]);
  });

  it.each<[string, (index: number) => MigrationPolicy]>([
    ['each has a value of its own', (index) => makePolicy(`p${index}`, { team: `t${index}` })],
    ['all share a label', (index) => makePolicy(`p${index}`, { app: 'db', team: `t${index}` }, { env: 'prod' })],
    ['all share an any-value label', (index) => makePolicy(`p${index}`, { app: '' }, { owner: `t${index}` })],
    ['each has a key of its own', (index) => makePolicy(`p${index}`, { app: 'db', [`key${index}`]: '' })],
    [
      'two labels together tell them apart',
      (index) => makePolicy(`p${index}`, { app: 'db', team: `t${index % 100}`, tier: `l${Math.floor(index / 100)}` }),
    ],
  ])('looks at few of ten thousand: %s', (_, make) => {
    const index = new PolicyIndex(Array.from({ length: 10_000 }, (__, number) => make(number)));
    const subject = {
      labels: { app: 'db', team: 't77', tier: 'l42', key77: 'x' },
      namespaceLabels: { env: 'prod', owner: 't77' },
    };
    expect(index.winner(subject)).toBeDefined();
    expect([...index.candidates(subject)].length).toBeLessThan(300);
  });
});

describe('against looking at every policy', () => {
  const key = fc.constantFrom('a', 'b', 'c', 'constructor');
  const selector = fc.dictionary(key, fc.constantFrom('', '1', '2'), { maxKeys: 3 });
  const labels = fc.option(fc.dictionary(key, fc.constantFrom('', '1', '2'), { maxKeys: 4 }), { nil: undefined });
  const policy = fc
    .tuple(fc.constantFrom('p0', 'p1', 'p2', 'p3', 'p4', 'p5', 'p6', 'p7', 'p8', 'p9'), selector, selector)
    .map(([name, ...selectors]) => makePolicy(name, ...selectors));
  const changes = fc.array(fc.oneof({ weight: 5, arbitrary: policy }, fc.constantFrom('p1', 'p2', 'p3')), {
    maxLength: 30,
  });

  it('finds the same policies in the same order', () => {
    fc.assert(
      fc.property(changes, labels, labels, (steps, guest, namespace) => {
        const index = new PolicyIndex();
        const known = new Map<string, MigrationPolicy>();
        for (const step of steps) {
          if (typeof step === 'string') {
            index.delete(step);
            known.delete(step);
          } else {
            index.set(step);
            known.set(step.metadata.name ?? '', step);
          }
        }
        const subject = { labels: guest, namespaceLabels: namespace };
        const expected = naiveOrder([...known.values()], guest ?? {}, namespace ?? {});
        expect(index.matching(subject).map(({ name }) => name)).toEqual(expected);
        expect(index.winner(subject)?.name).toBe(expected[0]);
        const looked = [...index.candidates(subject)];
        expect(new Set(looked).size).toBe(looked.length);
      }),
      { numRuns: 500 },
    );
  });
});

type Labels = { [key: string]: string };

/** Precedence as the design words it, written down without a thought for cost. */
function naiveOrder(policies: MigrationPolicy[], guest: Labels, namespace: Labels): string[] {
  const fits = (selector: Labels, labels: Labels): boolean =>
    Object.keys(selector).every(
      (key) => Object.hasOwn(labels, key) && (selector[key] === '' || selector[key] === labels[key]),
    );
  return policies
    .map((policy) => {
      const own = policy.spec.selectors.virtualMachineInstanceSelector as Labels;
      const theirs = policy.spec.selectors.namespaceSelector as Labels;
      const keys = [...Object.keys(own), ...Object.keys(theirs)].toSorted();
      const exact = [...Object.values(own), ...Object.values(theirs)].filter((value) => value !== '').length;
      // Padded so that texts order as the numbers and lists do; no key holds a space.
      const rank = [9 - keys.length, 9 - Object.keys(own).length, keys.join(' '), 9 - exact, policy.metadata.name];
      return { name: policy.metadata.name ?? '', own, theirs, rank: rank.join('\0') };
    })
    .filter(({ own, theirs }) => fits(own, guest) && fits(theirs, namespace))
    .toSorted((left, right) => (left.rank < right.rank ? -1 : 1))
    .map(({ name }) => name);
}

describe('policies with the same selectors', () => {
  const made = (name: string, creationTimestamp: string, labels: Record<string, string> = { app: 'web' }) => {
    const policy = makePolicy(name, labels);
    return { ...policy, metadata: { ...policy.metadata, creationTimestamp } };
  };
  const [early, late] = ['2026-01-01T00:00:00Z', '2026-01-01T00:00:05Z'];
  const subject = { labels: { app: 'web', tier: 'front' } };
  const names = (index: PolicyIndex) => index.matching(subject).map(({ name }) => name);

  it('do not count but for the oldest, whichever was heard of first', () => {
    const both = [made('z-older', early), made('a-younger', late)];
    for (const order of [both, both.toReversed()]) {
      const index = new PolicyIndex(order);
      expect(index.winner(subject)?.name).toBe('z-older');
      expect(names(index)).toEqual(['z-older', 'a-younger']);
    }
  });

  it('count by their names where they are as old', () => {
    expect(new PolicyIndex([made('b', early), made('a', early)]).winner(subject)?.name).toBe('a');
  });

  it('count once no older one is left, or has the same', () => {
    const index = new PolicyIndex([made('older', early), made('younger', late)]);
    index.set(made('older', early, { app: 'db' }));
    expect(names(index)).toEqual(['younger']);
    index.set(made('older', early));
    expect(names(index)).toEqual(['older', 'younger']);
    index.delete('older');
    expect(index.winner(subject)?.name).toBe('younger');
    index.delete('younger');
    expect(names(index)).toEqual([]);
  });

  it('do not stand between others that their names alone tell apart', () => {
    const ties = [made('z', early, { app: 'web', tier: '' }), made('a', late, { app: 'web', tier: '' })];
    const other = made('m', late, { app: '', tier: 'front' });
    for (const order of [
      [...ties, other],
      [other, ...ties.toReversed()],
    ])
      expect(names(new PolicyIndex(order))).toEqual(['m', 'z', 'a']);
  });
});
