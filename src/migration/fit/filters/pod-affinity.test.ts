import { describe, expect, it } from 'vitest';
import { makeCluster, makeNode, makePod, refusals } from '../cluster.fixture.ts';
import { nodeInfoOf } from '../node-state.ts';
import type { PodAffinityTerm, PodSpec } from '../objects.ts';

const nodes = [
  makeNode('a1', { labels: { zone: 'a' } }),
  makeNode('a2', { labels: { zone: 'a' } }),
  makeNode('b1', { labels: { zone: 'b' } }),
  makeNode('none'),
];
const HOST = 'kubernetes.io/hostname';
const ALONE = ["node(s) didn't match pod affinity rules"];
const CROWDED = ["node(s) didn't match pod anti-affinity rules"];
const UNWELCOME = ["node(s) didn't satisfy existing pods anti-affinity rules"];

const term = (app: string, topologyKey: string, more: Partial<PodAffinityTerm> = {}): PodAffinityTerm => ({
  labelSelector: { matchLabels: { app } },
  topologyKey,
  ...more,
});
const near = (...terms: PodAffinityTerm[]): PodSpec => ({
  affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
});
const away = (...terms: PodAffinityTerm[]): PodSpec => ({
  affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } },
});
const web = (name = 'web', spec: PodSpec = {}, namespace = 'default') =>
  makePod(name, spec, { namespace, labels: { app: 'web', tier: 'front' } });

describe('affinity', () => {
  const here = { a1: [web()] };
  it.each([
    ['by zone', near(term('web', 'zone')), here, { a1: [], a2: [], b1: ALONE, none: ALONE }],
    ['by host', near(term('web', HOST)), here, { a1: [], a2: ALONE, b1: ALONE, none: ALONE }],
    ['all terms', near(term('web', 'zone'), term('web', HOST)), here, { a1: [], a2: ALONE, b1: ALONE, none: ALONE }],
    [
      'terms that no single pod matches',
      near(term('web', 'zone'), term('db', 'zone')),
      { a1: [web(), makePod('db', {}, { labels: { app: 'db' } })] },
      { a1: ALONE, a2: ALONE, b1: ALONE, none: ALONE },
    ],
    ['nobody', near(term('db', 'zone')), here, { a1: ALONE, a2: ALONE, b1: ALONE, none: ALONE }],
    [
      'another namespace',
      near(term('web', 'zone', { namespaces: ['other'] })),
      here,
      { a1: ALONE, a2: ALONE, b1: ALONE, none: ALONE },
    ],
    ['no selector', near({ topologyKey: 'zone' }), here, { a1: ALONE, a2: ALONE, b1: ALONE, none: ALONE }],
  ])('%s', (_, spec, pods, expected) => {
    expect(refusals(makePod('p', spec), makeCluster({ nodes, pods }))).toEqual(expected);
  });

  it('lets the first of a series go anywhere that has the topology', () => {
    const first = makePod('p', near(term('web', 'zone')), { labels: { app: 'web' } });
    expect(refusals(first, makeCluster({ nodes }))).toEqual({ a1: [], a2: [], b1: [], none: ALONE });
    expect(refusals(first, makeCluster({ nodes, pods: { b1: [web()] } }))).toEqual({
      a1: ALONE,
      a2: ALONE,
      b1: [],
      none: ALONE,
    });
  });

  it.each([
    ['a selector of namespaces', { namespaceSelector: { matchLabels: { team: 'x' } } }, true],
    ['a selector of others', { namespaceSelector: { matchLabels: { team: 'y' } } }, false],
    ['all namespaces', { namespaceSelector: {} }, true],
    ['names or a selector', { namespaces: ['other'], namespaceSelector: { matchLabels: { team: 'y' } } }, true],
  ])('finds pods of other namespaces by %s: %s', (_, more, isFound) => {
    const pods = { a1: [web('web', {}, 'other')] };
    const cluster = makeCluster({ nodes, pods, namespaces: { other: { team: 'x' }, default: {} } });
    expect(refusals(makePod('p', near(term('web', HOST, more))), cluster).a1).toEqual(isFound ? [] : ALONE);
  });

  it('adds what the own labels say', () => {
    const cluster = makeCluster({ nodes, pods: { a1: [web()] } });
    const like = (labels: Record<string, string>, more: Partial<PodAffinityTerm>) =>
      refusals(makePod('p', near(term('web', HOST, more)), { labels }), cluster).a1;
    expect(like({ tier: 'front' }, { matchLabelKeys: ['tier'] })).toEqual([]);
    expect(like({ tier: 'back' }, { matchLabelKeys: ['tier'] })).toEqual(ALONE);
    expect(like({ tier: 'front' }, { mismatchLabelKeys: ['tier'] })).toEqual(ALONE);
    expect(like({}, { matchLabelKeys: ['tier'] })).toEqual([]);
  });
});

describe('anti-affinity', () => {
  it.each([
    ['by zone', away(term('web', 'zone')), { a1: CROWDED, a2: CROWDED, b1: [], none: [] }],
    ['by host', away(term('web', HOST)), { a1: CROWDED, a2: [], b1: [], none: [] }],
    ['any term', away(term('db', 'zone'), term('web', HOST)), { a1: CROWDED, a2: [], b1: [], none: [] }],
    ['nobody', away(term('db', 'zone')), { a1: [], a2: [], b1: [], none: [] }],
  ])('%s', (_, spec, expected) => {
    expect(refusals(makePod('p', spec), makeCluster({ nodes, pods: { a1: [web()] } }))).toEqual(expected);
  });
});

describe("existing pods' anti-affinity", () => {
  const guard = (more: PodAffinityTerm, namespace = 'default') =>
    makeCluster({
      nodes,
      pods: { a1: [makePod('guard', away(more), { namespace })] },
      namespaces: { default: { team: 'x' }, other: {} },
    });
  const kept = { a1: UNWELCOME, a2: UNWELCOME, b1: [], none: [] };
  const free = { a1: [], a2: [], b1: [], none: [] };
  it.each([
    ['means the pod', guard(term('web', 'zone')), kept],
    ['means others', guard(term('db', 'zone')), free],
    ['lives in another namespace', guard(term('web', 'zone'), 'other'), free],
    ['names the namespace', guard(term('web', 'zone', { namespaces: ['default'] }), 'other'), kept],
    [
      'selects the namespace',
      guard(term('web', 'zone', { namespaceSelector: { matchLabels: { team: 'x' } } }), 'other'),
      kept,
    ],
    [
      'selects by the absence of a label',
      guard({ topologyKey: 'zone', labelSelector: { matchExpressions: [{ key: 'db', operator: 'DoesNotExist' }] } }),
      kept,
    ],
    [
      'selects by the presence of a label',
      guard({ topologyKey: 'zone', labelSelector: { matchExpressions: [{ key: 'tier', operator: 'Exists' }] } }),
      kept,
    ],
  ])('%s', (_, cluster, expected) => {
    expect(refusals(web(), cluster)).toEqual(expected);
  });

  it('ends with the pod, and follows the labels of its node', () => {
    const cluster = guard(term('web', 'zone'));
    cluster.removeNode('a1');
    expect(refusals(web(), cluster)).toEqual({ a2: [], b1: [], none: [] });
    cluster.setNode(nodeInfoOf(makeNode('a1', { labels: { zone: 'b' } })));
    expect(refusals(web(), cluster)).toEqual({ a1: UNWELCOME, a2: [], b1: UNWELCOME, none: [] });
    cluster.removePod('uid-default-guard');
    expect(refusals(web(), cluster)).toEqual({ a1: [], a2: [], b1: [], none: [] });
  });
});
