import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LoopsInTime } from '../../../test/support/loops-in-time.ts';
import { formatMicroTime, formatTime, type JsonObject } from '../../api/meta.ts';
import { leaseResource } from '../../kube/leader-lease.ts';
import { makeNode, makePod } from '../../migration/fit/cluster.fixture.ts';
import type { Node, Pod } from '../../migration/fit/objects.ts';
import { nodes, pods } from '../resources.ts';
import { nodeLifecycleLoop } from './loop.ts';

const SECOND_MS = 1000;
const STEP_MS = 5 * SECOND_MS;

let world: LoopsInTime;
/** Nodes whose kubelets are alive, and how they show it. */
let alive: Map<string, 'lease' | 'status'>;
beforeEach(async () => {
  world = await LoopsInTime.start(nodeLifecycleLoop);
  alive = new Map();
});
afterEach(() => world.stop());

async function makeNodes(names: readonly string[], labels: Record<string, string> = {}): Promise<void> {
  for (const name of names) {
    const { kind, apiVersion } = makeNode(name);
    await world.client.create(nodes, { kind, apiVersion, metadata: { name, labels } }, world.signal);
    await report(name);
    alive.set(name, 'status');
  }
  await world.settle();
}

/** What a kubelet says of its node. */
async function report(name: string, status = 'True'): Promise<void> {
  const lastHeartbeatTime = formatTime(world.env.clock.now());
  const body = { status: { conditions: [{ type: 'Ready', status, reason: 'Kubelet', lastHeartbeatTime }] } };
  await world.client.patch<Node>(nodes, '', name, { type: 'strategic', body }, world.signal, { subresource: 'status' });
}

async function renew(name: string, namespace = 'kube-node-lease'): Promise<void> {
  const renewTime = formatMicroTime(world.env.clock.now());
  const metadata = { name, namespace };
  const lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata, spec: { renewTime } };
  await world.client.create(leaseResource, lease, world.signal).catch(async () => {
    const body = { spec: { renewTime } };
    await world.client.patch(leaseResource, metadata.namespace, name, { type: 'merge', body }, world.signal);
  });
}

/** Lets time pass in which those that are alive say so. */
async function pass(seconds: number): Promise<void> {
  for (let left = seconds; left > 0; left -= 5) {
    for (const [name, how] of alive) await (how === 'lease' ? renew(name) : report(name));
    await world.pass(Math.min(left * SECOND_MS, STEP_MS));
  }
}

async function lose(...names: string[]): Promise<void> {
  for (const name of names) alive.delete(name);
  await pass(50);
}

const read = (name: string): Promise<Node> => world.client.get(nodes, '', name, world.signal);

async function readinessOf(name: string): Promise<string> {
  const { status } = await read(name);
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  return ready ? `${ready.status} ${ready.reason}` : 'none';
}

async function taintsOf(name: string): Promise<string> {
  const { spec } = await read(name);
  return (spec?.taints ?? []).map(({ key, effect }) => `${key.replace(/.*\//, '')}:${effect}`).join(' ');
}

async function evicted(names: readonly string[]): Promise<string[]> {
  const taints = await Promise.all(names.map(taintsOf));
  return names.filter((_, index) => taints[index]?.includes('NoExecute'));
}

async function pod(name: string, nodeName: string): Promise<void> {
  const { kind, apiVersion } = makePod(name);
  const spec = { nodeName, containers: [{ name: 'main', image: 'none' } as object] };
  await world.client.create(pods, { kind, apiVersion, metadata: { name, namespace: 'default' }, spec }, world.signal);
  const conditions = [{ type: 'Ready', status: 'True' }] satisfies JsonObject[];
  const body = { status: { phase: 'Running', conditions } };
  await world.client.patch<Pod>(pods, 'default', name, { type: 'strategic', body }, world.signal, {
    subresource: 'status',
  });
}

async function isPodReady(name: string): Promise<string | undefined> {
  const { status } = await world.client.get(pods, 'default', name, world.signal);
  return status?.conditions?.find(({ type }) => type === 'Ready')?.status;
}

describe('a node that falls silent', () => {
  it('is not known to be ready any more, nor are its pods', async () => {
    await makeNodes(['n', 'well']);
    await pod('p', 'n');
    await pod('q', 'well');
    alive.delete('n');
    await pass(49);
    expect(await readinessOf('n')).toBe('True Kubelet');
    await pass(1);
    expect(await readinessOf('n')).toBe('Unknown NodeStatusUnknown');
    expect(await taintsOf('n')).toBe('unreachable:NoSchedule unreachable:NoExecute');
    expect((await read('n')).spec?.taints?.[1]?.timeAdded).toBe(formatTime(world.env.clock.now()));
    expect([await isPodReady('p'), await isPodReady('q')]).toEqual(['False', 'True']);
    expect(await world.events()).toEqual([
      'n RegisteredNode: Node n event: Registered Node n in Controller',
      'well RegisteredNode: Node well event: Registered Node well in Controller',
      'n NodeNotReady: Node n status is now: NodeNotReady',
      'p NodeNotReady: Node is not ready',
    ]);
  });

  it('is written to once', async () => {
    await makeNodes(['n', 'well']);
    await lose('n');
    const { resourceVersion } = (await read('n')).metadata;
    await pass(300);
    expect((await read('n')).metadata.resourceVersion).toBe(resourceVersion);
  });

  it('is ready again when it says so, and not when it only renews its lease', async () => {
    await makeNodes(['n', 'well']);
    await lose('n');
    alive.set('n', 'lease');
    await pass(60);
    expect(await readinessOf('n')).toBe('Unknown NodeStatusUnknown');
    await report('n');
    await pass(5);
    expect([await readinessOf('n'), await taintsOf('n')]).toEqual(['True Kubelet', '']);
  });

  it('is told apart from one that is not ready', async () => {
    await makeNodes(['n', 'well']);
    // The first node of a cluster is all of it for a moment, and lost until it says something.
    await pass(10);
    alive.delete('n');
    await report('n', 'False');
    await world.settle();
    expect(await taintsOf('n')).toBe('not-ready:NoSchedule not-ready:NoExecute');
    await pass(50);
    expect(await taintsOf('n')).toBe('unreachable:NoSchedule unreachable:NoExecute');
    await report('n', 'False');
    await world.settle();
    expect(await taintsOf('n')).toBe('not-ready:NoSchedule not-ready:NoExecute');
  });

  it('is none whose lease is renewed', async () => {
    await makeNodes(['n']);
    alive.set('n', 'lease');
    await pass(200);
    expect(await readinessOf('n')).toBe('True Kubelet');
  });

  it('is one though something else of its name has a lease that is renewed', async () => {
    await makeNodes(['n', 'well']);
    alive.delete('n');
    for (let seconds = 0; seconds < 50; seconds += 5) {
      await renew('n', 'default');
      await pass(5);
    }
    expect(await readinessOf('n')).toBe('Unknown NodeStatusUnknown');
  });

  it('may take a little longer at first', async () => {
    await makeNodes(['well']);
    await world.client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'new' } }, world.signal);
    await pass(55);
    expect(await readinessOf('new')).toBe('none');
    await pass(5);
    expect(await readinessOf('new')).toBe('Unknown NodeStatusNeverUpdated');
    expect(await taintsOf('new')).toBe('unreachable:NoSchedule unreachable:NoExecute');
  });

  it('is given all its time by who has just started, or was away', async () => {
    await makeNodes(['n', 'well']);
    alive.clear();
    await pass(40);
    await world.restart();
    await pass(40);
    expect(await readinessOf('n')).toBe('True Kubelet');
    await world.pass(3600 * SECOND_MS);
    expect(await readinessOf('n')).toBe('True Kubelet');
    await pass(50);
    expect(await readinessOf('n')).toBe('Unknown NodeStatusUnknown');
  });

  it('has its pods told by whoever comes next, where that was left undone', async () => {
    await makeNodes(['n', 'well']);
    await lose('n');
    await pod('late', 'n');
    await world.settle();
    expect(await isPodReady('late')).toBe('True');
    await world.restart();
    expect(await isPodReady('late')).toBe('False');
  });
});

describe('nodes that are lost', () => {
  const names = Array.from({ length: 8 }, (_, index) => `n${index}`);

  it('are given up one after the other', async () => {
    await makeNodes(names);
    const lost = names.slice(0, 3);
    await lose(...lost);
    expect(await evicted(names)).toHaveLength(1);
    await pass(10);
    expect(await evicted(names)).toHaveLength(2);
    await pass(10);
    expect(await evicted(names)).toEqual(lost);
  });

  it('are not given up where they are most of a small zone', async () => {
    await makeNodes(names);
    await lose(...names.slice(0, 5));
    const before = await evicted(names);
    expect(before.length).toBeLessThanOrEqual(1);
    await pass(60);
    expect(await evicted(names)).toEqual(before);
    await report('n4');
    alive.set('n4', 'status');
    await pass(30);
    expect(await evicted(names)).toHaveLength(4);
  });

  it('are given up in each zone by itself', async () => {
    await makeNodes(names.slice(0, 4), { 'topology.kubernetes.io/zone': 'a' });
    await makeNodes(names.slice(4), { 'topology.kubernetes.io/zone': 'b' });
    await lose('n0', 'n1', 'n4', 'n5');
    expect(await evicted(names)).toHaveLength(2);
  });

  it('are all kept where all are lost, until some are back', async () => {
    await makeNodes(names.slice(0, 3));
    await lose('n0');
    expect(await evicted(names.slice(0, 3))).toEqual(['n0']);
    await lose('n1', 'n2');
    expect(await evicted(names.slice(0, 3))).toEqual([]);
    expect(await taintsOf('n0')).toBe('unreachable:NoSchedule');
    await report('n1');
    alive.set('n1', 'status');
    await pass(5);
    expect(await evicted(names.slice(0, 3))).toEqual([]);
    await pass(25);
    expect(await evicted(names.slice(0, 3))).toEqual(['n0', 'n2']);
  });
});

describe('a node', () => {
  it('has all its time again when others are back, where nobody was heard of', async () => {
    await makeNodes(['n', 'other']);
    alive.clear();
    await pass(30);
    await report('n', 'False');
    await pass(45);
    expect(await readinessOf('other')).toBe('Unknown NodeStatusUnknown');
    await report('other');
    alive.set('other', 'status');
    await pass(45);
    expect(await readinessOf('n')).toBe('False Kubelet');
    await pass(5);
    expect(await readinessOf('n')).toBe('Unknown NodeStatusUnknown');
  });

  it('keeps in step, and what others put on it', async () => {
    await makeNodes(['n'], { 'kubernetes.io/os': 'linux' });
    expect((await read('n')).metadata.labels).toMatchObject({ 'beta.kubernetes.io/os': 'linux' });
    const mine = { key: 'example.com/mine', effect: 'NoExecute' };
    const body = { spec: { unschedulable: true, taints: [mine] } };
    await world.client.patch<Node>(nodes, '', 'n', { type: 'merge', body }, world.signal);
    await world.settle();
    expect(await taintsOf('n')).toBe('mine:NoExecute unschedulable:NoSchedule');
    const cordoned = { spec: { unschedulable: null } };
    await world.client.patch<Node>(nodes, '', 'n', { type: 'merge', body: cordoned }, world.signal);
    await world.settle();
    expect(await taintsOf('n')).toBe('mine:NoExecute');
  });

  it('is forgotten when it goes', async () => {
    await makeNodes(['n', 'well']);
    alive.delete('n');
    await world.client.delete(nodes, '', 'n', world.signal);
    await pass(100);
    expect((await world.events()).at(-1)).toBe('n RemovingNode: Node n event: Removing Node n from Controller');
  });
});
