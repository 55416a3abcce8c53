import { describe, expect, it } from 'vitest';
import { seededRandom } from '../../env/test.ts';
import { asking, makeCluster, makeNode, makePod } from './cluster.fixture.ts';
import type { ClusterState } from './cluster-state.ts';
import type { Pod } from './objects.ts';
import { podInfoOf } from './pod-info.ts';
import { best, score } from './score.ts';

function scores(pod: Pod, cluster: ClusterState): Record<string, number> {
  const nodes = [...cluster.nodes.values()];
  const points = score(podInfoOf(pod), nodes, cluster);
  return Object.fromEntries(nodes.map(({ name }, index) => [name, points[index] ?? Number.NaN]));
}

function winner(pod: Pod, cluster: ClusterState): string | undefined {
  const nodes = [...cluster.nodes.values()];
  return best(podInfoOf(pod), nodes, cluster, seededRandom(1))?.name;
}

const HOST = 'kubernetes.io/hostname';
const zones = [
  makeNode('a1', { labels: { zone: 'a' } }),
  makeNode('a2', { labels: { zone: 'a' } }),
  makeNode('b1', { labels: { zone: 'b' } }),
];
const web = (name: string, spec = {}) => makePod(name, spec, { labels: { app: 'web' } });

describe('allocation', () => {
  it('prefers the emptier node', () => {
    const pods = { a1: [makePod('x', asking({ cpu: '1', memory: '2Gi' }))] };
    const cluster = makeCluster({ nodes: [makeNode('a1'), makeNode('a2')], pods });
    // A quarter used against half used, each of cpu and memory alike.
    expect(scores(makePod('p', asking({ cpu: '1', memory: '2Gi' })), cluster)).toEqual({ a1: 50 + 100, a2: 75 + 100 });
  });

  it('prefers cpu and memory to be used alike', () => {
    const pods = {
      a1: [makePod('x', asking({ cpu: '2', memory: '0' }))],
      a2: [makePod('y', asking({ cpu: '1', memory: '2Gi' }))],
    };
    const cluster = makeCluster({ nodes: [makeNode('a1'), makeNode('a2')], pods });
    expect(scores(makePod('p', asking({ cpu: '1', memory: '2Gi' })), cluster)).toEqual({ a1: 50 + 75, a2: 50 + 100 });
  });

  it('counts pods that request nothing as using something', () => {
    const cluster = makeCluster({
      nodes: [makeNode('a1'), makeNode('a2')],
      pods: { a1: [makePod('x', { containers: [{}] })] },
    });
    expect(winner(makePod('p', { containers: [{}] }), cluster)).toBe('a2');
  });
});

describe('preferences', () => {
  it('follows preferred node affinity', () => {
    const prefer = (zone: string, weight: number) => ({
      weight,
      preference: { matchExpressions: [{ key: 'zone', operator: 'In', values: [zone] }] },
    });
    const pod = makePod('p', {
      affinity: {
        nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [prefer('b', 10), prefer('a', 5)] },
      },
    });
    const { a1 = 0, b1 = 0 } = scores(pod, makeCluster({ nodes: zones }));
    expect(b1 - a1).toBe(2 * 50);
  });

  it('avoids taints that ask to stay away, unless tolerated', () => {
    const nodes = [makeNode('a1', { spec: { taints: [{ key: 'k', effect: 'PreferNoSchedule' }] } }), makeNode('a2')];
    const cluster = makeCluster({ nodes });
    const { a1 = 0, a2 = 0 } = scores(makePod('p'), cluster);
    expect(a2 - a1).toBe(3 * 100);
    const tolerant = scores(makePod('p', { tolerations: [{ key: 'k', operator: 'Exists' }] }), cluster);
    expect(tolerant.a1).toBe(tolerant.a2);
  });

  it.each([
    ['podAffinity', 'a1'],
    ['podAntiAffinity', 'b1'],
  ])("follows the pod's preferred %s", (kind, expected) => {
    const preferred = [
      { weight: 5, podAffinityTerm: { topologyKey: 'zone', labelSelector: { matchLabels: { app: 'web' } } } },
      { weight: 1, podAffinityTerm: { topologyKey: HOST, labelSelector: { matchLabels: { app: 'web' } } } },
    ];
    const pod = makePod('p', { affinity: { [kind]: { preferredDuringSchedulingIgnoredDuringExecution: preferred } } });
    expect(winner(pod, makeCluster({ nodes: zones, pods: { a1: [web('w')] } }))).toBe(expected);
  });

  it.each([
    ['podAffinity', 'preferredDuringSchedulingIgnoredDuringExecution', 'b1'],
    ['podAffinity', 'requiredDuringSchedulingIgnoredDuringExecution', 'b1'],
    ['podAntiAffinity', 'preferredDuringSchedulingIgnoredDuringExecution', 'a'],
  ])('follows the %s of pods that are there: %s', (kind, rule, expected) => {
    const term = { topologyKey: 'zone', labelSelector: { matchLabels: { app: 'web' } } };
    const terms = rule.startsWith('required') ? [term] : [{ weight: 100, podAffinityTerm: term }];
    const guest = makePod('guest', { affinity: { [kind]: { [rule]: terms } } });
    expect(winner(web('p'), makeCluster({ nodes: zones, pods: { b1: [guest] } }))).toMatch(new RegExp(`^${expected}`));
  });

  it('spreads by wish', () => {
    const pod = web('p', {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'zone',
          whenUnsatisfiable: 'ScheduleAnyway',
          labelSelector: { matchLabels: { app: 'web' } },
        },
      ],
    });
    const bare = makeNode('bare');
    const cluster = makeCluster({ nodes: [...zones, bare], pods: { a2: [web('w')] } });
    expect(winner(pod, cluster)).toBe('b1');
    const { a1 = 0, bare: none = 0 } = scores(pod, cluster);
    expect(a1).toBeGreaterThanOrEqual(none);
  });
});

describe('equals', () => {
  it('are chosen by chance, and by nothing else', () => {
    const nodes = [...makeCluster({ nodes: zones }).nodes.values()];
    const cluster = makeCluster({ nodes: zones });
    const pod = podInfoOf(makePod('p'));
    const random = seededRandom(7);
    const chosen = new Set(Array.from({ length: 50 }, () => best(pod, nodes, cluster, random)?.name));
    expect(chosen).toEqual(new Set(['a1', 'a2', 'b1']));
    const replay = (seed: number) => {
      const each = seededRandom(seed);
      return Array.from({ length: 10 }, () => best(pod, nodes, cluster, each)?.name);
    };
    expect(replay(3)).toEqual(replay(3));
  });
});
