import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { KubeObject } from '../../api/meta.ts';
import { asking, makeNode, makePod } from '../../migration/fit/cluster.fixture.ts';
import type { Pod, PodSpec } from '../../migration/fit/objects.ts';
import { World } from './world.fixture.ts';

const MINUTE_MS = 60_000;

let world: World;
beforeEach(() => {
  world = new World();
});
afterEach(() => world.stop());

const small = { allocatable: { cpu: '1', memory: '8Gi', pods: '9' } };

function pod(name: string, cpu = '1', spec: PodSpec = {}, creationTimestamp?: string): Pod {
  return makePod(name, { ...asking({ cpu }), ...spec }, { creationTimestamp });
}

const assigned = (name: string, node: string) => `${name} Scheduled: Successfully assigned default/${name} to ${node}`;

describe('order', () => {
  it('is by priority, then by age, whatever order they were listed in', async () => {
    world.put(pod('a-new', '100m', {}, '2026-01-03T00:00:00Z'));
    world.put(pod('b-urgent', '100m', { priority: 10 }, '2026-01-02T00:00:00Z'));
    world.put(pod('c-old', '100m', {}, '2026-01-01T00:00:00Z'));
    world.start();
    world.nodes.set(makeNode('n'));
    await world.settle();
    expect(world.events).toEqual([assigned('b-urgent', 'n'), assigned('c-old', 'n'), assigned('a-new', 'n')]);
  });

  it('is decided on one after the other: room is given away once', async () => {
    world.start();
    world.addNode(makeNode('n', small));
    world.add(pod('a'), pod('b'), pod('c'));
    await world.pass(MINUTE_MS);
    expect(['a', 'b', 'c'].filter((name) => world.nodeOf(name) === 'n')).toEqual(['a']);
  });
});

describe('a server that is slower than the scheduler', () => {
  it('is asked for no more than 64 things at once, and for all of them in the end', async () => {
    world.start();
    world.addNode(makeNode('n', { allocatable: { cpu: '9', memory: '8Gi', pods: '200' } }));
    const names = Array.from({ length: 150 }, (_, index) => `p${index}`);
    let answer = (): void => undefined;
    world.silence = new Promise((resolve) => (answer = resolve));
    world.add(...names.map((name) => pod(name, '1m')));
    for (let turn = 0; turn < 40; turn++) await world.settle();
    const { underWay } = world;
    world.silence = undefined;
    answer();
    await world.pass(MINUTE_MS);
    expect(underWay).toBe(64);
    expect(names.filter((name) => world.nodeOf(name) !== 'n')).toEqual([]);
  });
});

describe('a scheduler that takes over', () => {
  it('does not give away again what another one has given away, though nobody has told it yet', async () => {
    world.start();
    world.addNode(makeNode('n', small));
    world.put(pod('theirs', '1', { nodeName: 'n' }));
    world.add(pod('mine'));
    await world.pass(2 * MINUTE_MS);
    expect(world.nodeOf('mine')).toBeUndefined();
    world.tell('theirs');
    world.pods.delete('default/theirs');
    world.tell('theirs');
    await world.settle();
    expect(world.nodeOf('mine')).toBe('n');
  });

  it('learns by itself that they are gone where nobody ever tells it of them', async () => {
    world.start();
    world.addNode(makeNode('n', small));
    world.put(pod('theirs', '1', { nodeName: 'n' }));
    world.add(pod('mine'));
    await world.settle();
    world.pods.delete('default/theirs');
    await world.pass(MINUTE_MS);
    expect(world.nodeOf('mine')).toBe('n');
  });
});

describe('a pod for which others would have to go', () => {
  const victim = (): boolean => world.pods.get('default/victim')?.metadata.deletionTimestamp !== undefined;

  it.each<[string, boolean, () => void]>([
    ['is waited for', true, () => undefined],
    ['is gone by then, and nobody goes', false, () => world.pods.delete('default/urgent')],
    ['has a node by then, and nobody goes', false, () => world.put(pod('urgent', '1', { nodeName: 'elsewhere' }))],
  ])('%s', async (_, isVictim, meanwhile) => {
    world.start();
    world.addNode(makeNode('n', small));
    world.add(pod('victim'));
    await world.settle();
    let answer = (): void => undefined;
    world.silence = new Promise((resolve) => (answer = resolve));
    world.add(pod('urgent', '1', { priority: 10 }));
    await world.settle();
    meanwhile();
    world.silence = undefined;
    answer();
    await world.settle();
    expect(victim()).toBe(isVictim);
  });
});

describe('pods that fit nowhere', () => {
  const failures = () => world.events.filter((event) => event.startsWith('p FailedScheduling')).length;

  it('are tried again when something could help, at once where there is nothing else to do', async () => {
    world.start();
    world.addNode(makeNode('full', small));
    world.add(pod('x'));
    await world.settle();
    world.add(pod('p'), pod('q'));
    await world.settle();
    expect(failures()).toBe(1);
    world.addNode(makeNode('n', small));
    world.addNode(makeNode('m', small));
    await world.settle();
    expect(new Set([world.nodeOf('p'), world.nodeOf('q')])).toEqual(new Set(['m', 'n']));
  });

  it('wait for their backoff where others wait for their turn', async () => {
    world.start();
    world.addNode(makeNode('full', small));
    world.add(pod('x'));
    await world.settle();
    world.add(pod('p', '1', { priority: 10, preemptionPolicy: 'Never' }));
    await world.settle();
    // In one go, so that somebody is in the queue when the node comes.
    world.add(pod('fresh'));
    world.addNode(makeNode('n', small));
    await world.settle();
    expect([world.nodeOf('fresh'), world.nodeOf('p')]).toEqual(['n', undefined]);
  });

  it('are left alone when nothing could help, and tried every five minutes all the same', async () => {
    world.start();
    world.addNode(makeNode('n', small));
    world.add(pod('p', '2'));
    await world.pass(MINUTE_MS);
    world.addNode(makeNode('another', small));
    await world.pass(MINUTE_MS);
    expect(failures()).toBe(1);
    await world.pass(3.5 * MINUTE_MS);
    expect(failures()).toBe(2);
  });

  it('are tried when they change themselves, but not for being told why they wait', async () => {
    world.start();
    world.addNode(makeNode('n', { spec: { taints: [{ key: 'k', effect: 'NoSchedule' }] } }));
    world.add(pod('p'));
    await world.settle();
    world.tell('p');
    await world.pass(MINUTE_MS);
    expect(failures()).toBe(1);
    const told = world.pods.get('default/p') as Pod;
    expect(told.status?.conditions).toMatchObject([{ type: 'PodScheduled', status: 'False' }]);
    world.add({ ...told, spec: { ...told.spec, tolerations: [{ operator: 'Exists' }] } });
    await world.settle();
    expect(world.nodeOf('p')).toBe('n');
  });

  it('are tried when a namespace comes to have the company that they ask for', async () => {
    world.start();
    world.addNode(makeNode('n', { labels: { zone: 'a' } }));
    world.told.set(makePod('w', { nodeName: 'n' }, { namespace: 'other', labels: { app: 'web' } }));
    const term = {
      topologyKey: 'zone',
      labelSelector: { matchLabels: { app: 'web' } },
      namespaceSelector: { matchLabels: { team: 'x' } },
    };
    world.add(pod('p', '1', { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } }));
    await world.settle();
    expect(failures()).toBe(1);
    world.namespaces.set({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'other', labels: { team: 'x' } } });
    await world.settle();
    expect(world.nodeOf('p')).toBe('n');
  });

  it('are tried when the class of their storage comes to be known', async () => {
    world.start();
    world.addNode(makeNode('n'));
    world.claims.set({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'c', namespace: 'default' },
      spec: { storageClassName: 'local' },
    } as KubeObject);
    world.add(pod('p', '1', { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }] }));
    await world.settle();
    expect(world.events.at(-1)).toContain('pod has unbound immediate PersistentVolumeClaims');
    world.storageClasses.set({
      apiVersion: 'storage.k8s.io/v1',
      kind: 'StorageClass',
      metadata: { name: 'local' },
      volumeBindingMode: 'WaitForFirstConsumer',
    } as KubeObject);
    await world.settle();
    expect(failures()).toBe(2);
    expect(world.events.at(-1)).toContain("node(s) didn't find available persistent volumes to bind");
  });

  it('are forgotten when they go', async () => {
    world.start();
    world.addNode(makeNode('n', small));
    world.add(pod('p', '2'));
    await world.settle();
    world.pods.delete('default/p');
    world.tell('p');
    await world.pass(6 * MINUTE_MS);
    expect(failures()).toBe(1);
  });
});

describe('bindings', () => {
  it('hold their room until the scheduler is told of them, however long that takes', async () => {
    world.start();
    world.addNode(makeNode('n', small));
    world.add(pod('a'));
    await world.settle();
    expect(world.nodeOf('a')).toBe('n');
    world.add(pod('b'));
    await world.pass(10 * MINUTE_MS);
    expect(world.nodeOf('b')).toBeUndefined();
  });

  it('hold their room when the answer is lost', async () => {
    world.start();
    world.addNode(makeNode('n', small));
    world.mishaps.push('answer', 'request', 'answer');
    world.add(pod('a'));
    await world.settle();
    world.add(pod('b'));
    await world.pass(MINUTE_MS);
    expect(world.nodeOf('a')).toBe('n');
    expect(world.nodeOf('b')).toBeUndefined();
    expect(world.events).toContain(assigned('a', 'n'));
  });

  it('are tried again when the request is lost', async () => {
    world.start();
    world.addNode(makeNode('n', small));
    world.mishaps.push('request', 'request', 'request');
    world.add(pod('a'));
    await world.pass(MINUTE_MS);
    expect(world.nodeOf('a')).toBe('n');
  });

  it('give their room back when somebody else was faster', async () => {
    world.start();
    world.addNode(makeNode('n', small));
    world.put(pod('a'));
    const unaware = world.pods.get('default/a') as Pod;
    world.put({ ...unaware, spec: { ...unaware.spec, nodeName: 'elsewhere' } });
    world.told.set(unaware);
    await world.settle();
    world.add(pod('b'));
    await world.pass(MINUTE_MS);
    expect(world.nodeOf('b')).toBe('n');
  });

  it('give their room back when the pod is gone, without anybody saying so', async () => {
    world.start();
    world.addNode(makeNode('n', small));
    world.add(pod('a'));
    await world.settle();
    world.pods.delete('default/a');
    world.add(pod('b'));
    await world.pass(MINUTE_MS);
    expect(world.nodeOf('b')).toBe('n');
  });
});

describe('preemption', () => {
  const vip = pod('vip', '1', { priority: 100 });

  async function occupied(): Promise<void> {
    world.start();
    world.addNode(makeNode('n', small));
    world.add(pod('victim'));
    await world.settle();
    world.tell('victim');
  }

  it('nominates first, then pushes out, then waits for the victim to be gone', async () => {
    await occupied();
    world.add(vip);
    await world.settle();
    expect(world.pods.get('default/vip')?.status?.nominatedNodeName).toBe('n');
    const victim = world.pods.get('default/victim');
    expect(victim?.metadata.deletionTimestamp).toBeDefined();
    expect(victim?.status?.conditions).toMatchObject([{ type: 'DisruptionTarget', reason: 'PreemptionByScheduler' }]);
    world.tell('vip');
    world.tell('victim');
    await world.pass(MINUTE_MS);
    expect(world.nodeOf('vip')).toBeUndefined();
    world.pods.delete('default/victim');
    world.tell('victim');
    await world.pass(11_000);
    expect(world.nodeOf('vip')).toBe('n');
  });

  it('pushes nobody out when the nomination cannot be written', async () => {
    await occupied();
    world.mishaps.push('request');
    world.add(vip);
    await world.settle();
    expect(world.pods.get('default/victim')?.metadata.deletionTimestamp).toBeUndefined();
    await world.pass(2000);
    expect(world.pods.get('default/victim')?.metadata.deletionTimestamp).toBeDefined();
  });

  it('is tried again where all that it would push out were gone already', async () => {
    await occupied();
    world.pods.delete('default/victim');
    world.add(vip);
    await world.settle();
    const tries = () => world.events.filter((event) => event.startsWith('vip FailedScheduling')).length;
    expect(tries()).toBe(1);
    await world.pass(1500);
    expect(tries()).toBe(2);
    world.tell('victim');
    await world.pass(11_000);
    expect(world.nodeOf('vip')).toBe('n');
  });

  it('is taken up by the next scheduler where one ends in between', async () => {
    world.addNode(makeNode('n', small));
    const nominated = { ...vip, status: { nominatedNodeName: 'n' } };
    const condition = { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' };
    const leaving = pod('victim', '1', { nodeName: 'n' });
    world.put(nominated);
    world.put({
      ...leaving,
      metadata: { ...leaving.metadata, deletionTimestamp: '2026-01-01T00:00:30Z' },
      status: { conditions: [condition] },
    });
    world.put(pod('bystander', '1', { nodeName: 'm' }));
    world.start();
    world.addNode(makeNode('m', small));
    world.addNode(makeNode('n', small));
    await world.pass(MINUTE_MS);
    expect(world.pods.get('default/bystander')?.metadata.deletionTimestamp).toBeUndefined();
    world.pods.delete('default/victim');
    world.tell('victim');
    await world.pass(11_000);
    expect(world.nodeOf('vip')).toBe('n');
  });

  it('takes a nomination over from a lesser pod, which is told', async () => {
    await occupied();
    world.add(pod('minor', '1', { priority: 50 }));
    await world.settle();
    world.tell('minor');
    world.tell('victim');
    expect(world.pods.get('default/minor')?.status?.nominatedNodeName).toBe('n');
    world.add(vip);
    await world.settle();
    expect(world.pods.get('default/vip')?.status?.nominatedNodeName).toBe('n');
    expect(world.pods.get('default/minor')?.status?.nominatedNodeName ?? null).toBeNull();
  });
});
