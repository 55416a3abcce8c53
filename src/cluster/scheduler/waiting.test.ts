import { describe, expect, it } from 'vitest';
import { asking, makeCluster, makeNode, makePod } from '../../migration/fit/cluster.fixture.ts';
import type { PodSpec } from '../../migration/fit/objects.ts';
import { podInfoOf } from '../../migration/fit/pod-info.ts';
import type { FilterName } from '../../migration/fit/reason.ts';
import { Budgets } from './budgets.ts';
import { Nominations } from './nominations.ts';
import { type ClusterEvent, WaitingPods } from './waiting.ts';

const term = { topologyKey: 'zone', labelSelector: { matchLabels: { app: 'web' } } };
const near: PodSpec = { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } };
const away: PodSpec = { affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } };
const mounting: PodSpec = { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] };

const web = podInfoOf(makePod('web', {}, { labels: { app: 'web' } }));
const other = podInfoOf(makePod('other', {}, { labels: { app: 'db' }, namespace: 'elsewhere' }));
const guard = podInfoOf(makePod('guard', away));
const user = podInfoOf(makePod('user', mounting));

const cluster = makeCluster({
  nodes: [
    makeNode('empty', { allocatable: { cpu: '4', memory: '4Gi', pods: '10' } }),
    makeNode('full', { allocatable: { cpu: '4', memory: '4Gi', pods: '10' } }),
    makeNode('tainted', { spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } }),
  ],
  pods: { full: [makePod('big', { ...asking({ cpu: '4' }), priority: 10 })] },
});

function isWoken(spec: PodSpec, filter: FilterName, event: ClusterEvent, labels?: Record<string, string>): boolean {
  const waiting = new WaitingPods({ cluster, nominations: new Nominations(), budgets: new Budgets() });
  waiting.add(podInfoOf(makePod('p', spec, { labels })), new Set([filter]));
  const keys = waiting.wake(event);
  expect(waiting.size).toBe(1 - keys.length);
  return keys.length > 0;
}

describe('a waiting pod', () => {
  const node = (name: string): ClusterEvent => ({ type: 'node-changed', node: name });
  const gone = (name: string, pod = other): ClusterEvent => ({ type: 'pod-removed', node: name, pod });
  const small = asking({ cpu: '1' });
  const cases: [string, PodSpec, FilterName, ClusterEvent, boolean][] = [
    ['a node that could take it', small, 'taints', node('empty'), true],
    ['a node that could take it once pods are gone', small, 'resources', node('full'), true],
    ['a node that is too small', asking({ cpu: '5' }), 'resources', node('empty'), false],
    ['a node that it does not tolerate', small, 'taints', node('tainted'), false],
    ['a node that it does not tolerate, where it counts', small, 'topology-spread', node('tainted'), true],
    ['a node that has gone already', small, 'taints', node('nowhere'), false],
    ['room where it fits', small, 'resources', gone('empty'), true],
    ['room where it does not fit', small, 'resources', gone('full'), false],
    ['room where it can push others out', { ...small, priority: 11 }, 'resources', gone('full'), true],
    ['room where it must not', { ...small, priority: 11, preemptionPolicy: 'Never' }, 'resources', gone('full'), false],
    ['room that it does not wait for', small, 'node-affinity', gone('empty'), false],
    ['a port', small, 'host-ports', gone('empty'), true],
    ['room that was kept', small, 'resources', { type: 'room-freed', node: 'empty' }, true],
    ['a claim that it mounts', mounting, 'volumes', { type: 'claim-changed', key: 'default/data' }, true],
    ['a claim that it does not mount', mounting, 'volumes', { type: 'claim-changed', key: 'default/x' }, false],
    ['a claim that is let go', mounting, 'claims', gone('empty', user), true],
    ['a volume', mounting, 'volumes', { type: 'volumes-changed' }, true],
    ['company', near, 'pod-affinity', { type: 'pod-placed', pod: web }, true],
    ['other company', near, 'pod-affinity', { type: 'pod-placed', pod: other }, false],
    ['being the last of its kind', near, 'pod-affinity', gone('empty', web), true],
    ['the end of a rival', away, 'pod-affinity', gone('empty', web), true],
    ['the end of others', away, 'pod-affinity', gone('empty', other), false],
    ['other labels', away, 'pod-affinity', { type: 'pod-relabelled', pod: other }, true],
    ['other namespaces', away, 'pod-affinity', { type: 'namespace-changed' }, true],
    ['fewer nodes', near, 'pod-affinity', { type: 'node-removed' }, true],
    ['pods of its namespace that come', small, 'topology-spread', { type: 'pod-placed', pod: web }, true],
    ['pods of its namespace that go', small, 'topology-spread', { type: 'pod-leaving', pod: web }, true],
    ['pods of others', small, 'topology-spread', { type: 'pod-placed', pod: other }, false],
    ['pods that come, where only room helps', small, 'resources', { type: 'pod-placed', pod: web }, false],
  ];
  it.each(cases)('is woken by %s: %#', (_, spec, filter, event, expected) => {
    expect(isWoken(spec, filter, event)).toBe(expected);
  });

  it('is woken by the end of a pod that kept it away', () => {
    const event = gone('empty', guard);
    expect(isWoken({}, 'pod-affinity', event, { app: 'web' })).toBe(true);
    expect(isWoken({}, 'pod-affinity', event, { app: 'db' })).toBe(false);
  });

  it('is woken once', () => {
    const waiting = new WaitingPods({ cluster, nominations: new Nominations(), budgets: new Budgets() });
    const pod = podInfoOf(makePod('p', { ...small, ...mounting }));
    waiting.add(pod, new Set(['resources', 'host-ports', 'claims']));
    expect(waiting.wake(gone('empty', user))).toEqual(['default/p']);
    expect(waiting.wake(gone('empty', user))).toEqual([]);
    expect(waiting.delete('default/p')).toBe(false);
  });
});
