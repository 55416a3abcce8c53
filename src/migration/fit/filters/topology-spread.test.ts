import { describe, expect, it } from 'vitest';
import { makeCluster, makeNode, makePod, refusals } from '../cluster.fixture.ts';
import type { PodSpec, TopologySpreadConstraint } from '../objects.ts';

/** Cases as in kube-scheduler's PodTopologySpread. */

const nodes = [
  makeNode('a1', { labels: { zone: 'a' } }),
  makeNode('a2', { labels: { zone: 'a' } }),
  makeNode('b1', { labels: { zone: 'b' } }),
];
const UNEVEN = ["node(s) didn't match pod topology spread constraints"];
const NO_DOMAIN = ["node(s) didn't match pod topology spread constraints (missing required label)"];
const HOST = 'kubernetes.io/hostname';

const spread = (topologyKey: string, more: Partial<TopologySpreadConstraint> = {}): TopologySpreadConstraint => ({
  maxSkew: 1,
  topologyKey,
  whenUnsatisfiable: 'DoNotSchedule',
  labelSelector: { matchLabels: { app: 'web' } },
  ...more,
});
const web = (name: string, more: { namespace?: string; deletionTimestamp?: string } = {}) =>
  makePod(name, {}, { labels: { app: 'web', version: '1' }, ...more });
const incoming = (constraints: TopologySpreadConstraint[], spec: PodSpec = {}) =>
  makePod('p', { topologySpreadConstraints: constraints, ...spec }, { labels: { app: 'web', version: '1' } });

describe('PodTopologySpread', () => {
  const pods = { a1: [web('w1'), web('w2')], b1: [web('w3')] };
  const even = { a1: [web('w1')], b1: [web('w2')] };
  const none = { a1: [], a2: [], b1: [] };
  const notA = { a1: UNEVEN, a2: UNEVEN, b1: [] };
  it.each([
    ['even', [spread('zone')], even, none],
    ['uneven', [spread('zone')], pods, notA],
    ['a larger skew', [spread('zone', { maxSkew: 2 })], pods, none],
    ['by host', [spread(HOST)], pods, { a1: UNEVEN, a2: [], b1: UNEVEN }],
    ['both', [spread('zone'), spread(HOST)], pods, { a1: UNEVEN, a2: UNEVEN, b1: UNEVEN }],
    ['a mere wish', [spread('zone', { whenUnsatisfiable: 'ScheduleAnyway' })], pods, none],
    ['too few domains', [spread('zone', { minDomains: 3 })], even, { a1: UNEVEN, a2: UNEVEN, b1: UNEVEN }],
    ['domains enough', [spread('zone', { minDomains: 2 })], even, none],
    ['other namespaces do not count', [spread('zone')], { a1: [web('w', { namespace: 'other' })] }, none],
    [
      'pods on their way out do not count',
      [spread('zone')],
      { a1: [web('w', { deletionTimestamp: '2026-01-01T00:00:00Z' })] },
      none,
    ],
    ['an empty selector counts nothing', [spread('zone', { labelSelector: {} })], pods, none],
    ['no selector counts nothing', [spread('zone', { labelSelector: undefined })], pods, none],
    ['more keys', [spread('zone', { matchLabelKeys: ['version'] })], pods, notA],
  ])('%s', (_, constraints, placed, expected) => {
    expect(refusals(incoming(constraints), makeCluster({ nodes, pods: placed }))).toEqual(expected);
  });

  it('counts only pods that share the values of more keys', () => {
    const pod = makePod(
      'p',
      { topologySpreadConstraints: [spread('zone', { matchLabelKeys: ['version'] })] },
      { labels: { app: 'web', version: '2' } },
    );
    expect(refusals(pod, makeCluster({ nodes, pods }))).toEqual(none);
  });

  it('counts a pod that its own selector does not mean as none', () => {
    const pod = makePod('p', { topologySpreadConstraints: [spread('zone')] });
    expect(refusals(pod, makeCluster({ nodes, pods }))).toEqual(none);
    expect(refusals(pod, makeCluster({ nodes, pods: { a1: pods.a1 } }))).toEqual({ a1: UNEVEN, a2: UNEVEN, b1: [] });
  });

  it('refuses nodes without the label, and counts nothing on them', () => {
    const bare = [...nodes, makeNode('bare')];
    const cluster = makeCluster({ nodes: bare, pods: { bare: [web('w')] } });
    expect(refusals(incoming([spread('zone')]), cluster)).toEqual({ ...none, bare: NO_DOMAIN });
  });

  it('leaves out nodes that the pod cannot be on by affinity, unless told to ignore it', () => {
    const spec = { nodeSelector: { zone: 'a' } };
    const placed = { a1: [web('w')] };
    const reasons = (more: Partial<TopologySpreadConstraint>) =>
      refusals(incoming([spread('zone', more)], spec), makeCluster({ nodes, pods: placed })).a2;
    expect(reasons({})).toEqual([]);
    expect(reasons({ nodeAffinityPolicy: 'Ignore' })).toEqual(UNEVEN);
  });

  it('counts nodes whose taints keep the pod away, unless told to honor them', () => {
    const tainted = [
      ...nodes.slice(0, 2),
      makeNode('b1', { labels: { zone: 'b' }, spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } }),
    ];
    const placed = { a1: [web('w')] };
    const reasons = (more: Partial<TopologySpreadConstraint>) =>
      refusals(incoming([spread('zone', more)]), makeCluster({ nodes: tainted, pods: placed })).a2;
    expect(reasons({})).toEqual(UNEVEN);
    expect(reasons({ nodeTaintsPolicy: 'Honor' })).toEqual([]);
  });
});
