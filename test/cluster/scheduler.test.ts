import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject, KubeObject, ObjectMeta } from '../../src/api/meta.ts';
import type { Resource } from '../../src/kube/resource.ts';
import type { Node, Pod, PodSpec } from '../../src/migration/fit/objects.ts';
import { ClusterUnderTest, resource } from '../support/cluster-under-test.ts';
import { eventually } from '../support/eventually.ts';

/** What a scheduler does as seen through the API: on these inputs, kube-scheduler does the same. */

const pods = resource<Pod>('pods', 'Pod');
const nodes = resource<Node>('nodes', 'Node', '', false);
const namespaces = resource('namespaces', 'Namespace', '', false);
const priorityClasses = resource('priorityclasses', 'PriorityClass', 'scheduling.k8s.io', false);
const budgets = resource('poddisruptionbudgets', 'PodDisruptionBudget', 'policy');
const events = resource<Event>('events', 'Event');
const claims = resource('persistentvolumeclaims', 'PersistentVolumeClaim');
const volumes = resource('persistentvolumes', 'PersistentVolume', '', false);

interface Event extends KubeObject {
  reason: string;
  message: string;
  type: string;
  involvedObject: { name: string };
}

let cluster: ClusterUnderTest;
let rooms = 0;
const made: [Resource, string][] = [];
const classOf = (name: string): string => `test-${process.pid}-${name}`;

beforeAll(async () => {
  cluster = await ClusterUnderTest.start();
  for (const [name, value, preemptionPolicy] of [
    ['high', 1000, 'PreemptLowerPriority'],
    ['middle', 500, 'PreemptLowerPriority'],
    ['shy', 1000, 'Never'],
  ] as const) {
    const object = { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass', metadata: { name: classOf(name) } };
    await make<KubeObject>(priorityClasses, { ...object, value, preemptionPolicy });
  }
});

afterAll(async () => {
  const { client, signal } = cluster;
  // Another cluster outlives the suite.
  await Promise.all(made.map(([kind, name]) => client.delete(kind, '', name, signal)));
  await cluster.stop();
});

/** Makes an object without a namespace, to be deleted in the end. */
async function make<T extends KubeObject>(kind: Resource<T>, object: T): Promise<void> {
  await cluster.client.create(kind, object, cluster.signal);
  made.push([kind, object.metadata.name ?? '']);
}

/** A namespace and nodes that no other test uses: its pods ask for these nodes. */
class Room {
  readonly namespace: string;

  private constructor(namespace: string) {
    this.namespace = namespace;
  }

  static async make(): Promise<Room> {
    const name = `room-${process.pid}-${rooms++}`;
    const object = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } };
    await make(namespaces, object);
    return new Room(name);
  }

  /** Makes a node, and plays its kubelet to the extent that it says what it has. */
  async node(
    name: string,
    more: { labels?: Record<string, string>; spec?: Node['spec']; cpu?: string } = {},
  ): Promise<string> {
    const { client, signal } = cluster;
    const full = `${this.namespace}-${name}`;
    const labels = { room: this.namespace, 'kubernetes.io/hostname': full, ...more.labels };
    const object = { apiVersion: 'v1', kind: 'Node', metadata: { name: full, labels }, spec: more.spec ?? {} };
    await make(nodes, object);
    const amounts = { cpu: more.cpu ?? '4', memory: '8Gi', pods: '20' };
    const conditions = [{ type: 'Ready', status: 'True', reason: 'Test', message: '' }];
    const body = { status: { allocatable: amounts, capacity: amounts, conditions } };
    await client.patch(nodes, '', full, { type: 'strategic', body }, signal, { subresource: 'status' });
    // Whoever looks after nodes lets pods in once it has seen that.
    await eventually(async () => {
      const { spec } = await client.get(nodes, '', full, signal);
      expect((spec?.taints ?? []).map(({ key }) => key)).not.toContain('node.kubernetes.io/not-ready');
    });
    return full;
  }

  async pod(name: string, spec: PodSpec = {}, metadata: ObjectMeta = {}): Promise<Pod> {
    const object: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: this.namespace, ...metadata },
      spec: {
        nodeSelector: { room: this.namespace },
        containers: [{ name: 'main', image: 'none' } as object],
        terminationGracePeriodSeconds: 5,
        ...spec,
      } as PodSpec,
    };
    return cluster.client.create(pods, object, cluster.signal);
  }

  get(name: string): Promise<Pod> {
    return cluster.client.get(pods, this.namespace, name, cluster.signal);
  }

  /** Plays the kubelet whose pod has stopped. */
  async end(name: string): Promise<void> {
    await cluster.client.delete(pods, this.namespace, name, cluster.signal, { gracePeriodSeconds: 0 });
  }

  /** The node that a pod gets, by its short name. */
  async placed(name: string): Promise<string> {
    return eventually(async () => {
      const { spec } = await this.get(name);
      expect(spec?.nodeName ?? '').not.toBe('');
      return (spec?.nodeName ?? '').slice(this.namespace.length + 1);
    });
  }

  /** What a pod is told that gets none. */
  async refused(name: string, pattern: RegExp): Promise<Pod> {
    return eventually(async () => {
      const pod = await this.get(name);
      const condition = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled');
      expect(condition).toMatchObject({ status: 'False', reason: 'Unschedulable' });
      expect(condition?.message).toMatch(pattern);
      expect(pod.spec?.nodeName ?? '').toBe('');
      return pod;
    });
  }

  /** Waits until people are told so about a pod: `type reason: message`. */
  async told(name: string, pattern: RegExp): Promise<void> {
    await eventually(async () => {
      const { items } = await cluster.client.list(events, { namespace: this.namespace }, cluster.signal);
      const lines = items
        .filter(({ involvedObject }) => involvedObject.name === name)
        .map(({ type, reason, message }) => `${type} ${reason}: ${message}`);
      expect(lines.join('\n')).toMatch(pattern);
    });
  }

  async nodeCount(): Promise<number> {
    return (await cluster.client.list(nodes, {}, cluster.signal)).items.length;
  }
}

const asking = (cpu: string): PodSpec => ({
  containers: [{ name: 'main', image: 'none', resources: { requests: { cpu } } } as object],
});

const using = (priorityClass: string, cpu: string): PodSpec =>
  ({ ...asking(cpu), priorityClassName: classOf(priorityClass) }) as PodSpec;

describe('placing', () => {
  it('gives a pod a node, and says so', async () => {
    const room = await Room.make();
    await room.node('a');
    await room.pod('p');
    expect(await room.placed('p')).toBe('a');
    const { status } = await room.get('p');
    expect(status?.conditions?.find(({ type }) => type === 'PodScheduled')).toMatchObject({ status: 'True' });
    await room.told(
      'p',
      new RegExp(`^Normal Scheduled: Successfully assigned ${room.namespace}/p to ${room.namespace}-a$`),
    );
  });

  it('fills nodes evenly, and none beyond what it has', async () => {
    const room = await Room.make();
    await room.node('a');
    await room.node('b');
    await Promise.all(Array.from({ length: 8 }, (_, index) => room.pod(`p${index}`, asking('1'))));
    const placed = await Promise.all(Array.from({ length: 8 }, (_, index) => room.placed(`p${index}`)));
    expect(placed.filter((node) => node === 'a').length).toBe(4);
    await room.pod('one-too-many', asking('1'));
    await room.refused('one-too-many', /2 Insufficient cpu/);
  });

  it('names every reason with its count', async () => {
    const room = await Room.make();
    await room.node('small', { cpu: '1' });
    await room.node('cordoned', { spec: { unschedulable: true } });
    await room.node('tainted', { spec: { taints: [{ key: 'dedicated', value: 'gpu', effect: 'NoSchedule' }] } });
    await room.pod('p', asking('2'));
    const count = await room.nodeCount();
    const pod = await room.refused('p', new RegExp(`^0/${count} nodes are available: `));
    const message = pod.status?.conditions?.find(({ type }) => type === 'PodScheduled')?.message ?? '';
    expect(message).toContain('1 Insufficient cpu, ');
    expect(message).toContain('1 node(s) had untolerated taint {dedicated: gpu}');
    expect(message).toContain('1 node(s) were unschedulable');
    expect(message).toContain(`preemption: 0/${count} nodes are available: `);
    await room.told('p', /^Warning FailedScheduling: 0\/\d+ nodes are available: .*1 Insufficient cpu, /);
  });

  it('leaves pods alone that are gated, or that ask for another scheduler', async () => {
    const room = await Room.make();
    await room.node('a');
    await room.pod('gated', { schedulingGates: [{ name: 'test.example/wait' }] });
    await room.pod('foreign', { schedulerName: 'another' });
    await room.pod('plain');
    await room.placed('plain');
    expect((await room.get('gated')).spec?.nodeName).toBeUndefined();
    expect((await room.get('foreign')).spec?.nodeName).toBeUndefined();
    const body = { spec: { schedulingGates: [] } };
    await cluster.client.patch(pods, room.namespace, 'gated', { type: 'merge', body }, cluster.signal);
    expect(await room.placed('gated')).toBe('a');
  });

  it('keeps pods apart, and together', async () => {
    const room = await Room.make();
    await room.node('a1', { labels: { zone: 'a' } });
    await room.node('a2', { labels: { zone: 'a' } });
    await room.node('b1', { labels: { zone: 'b' } });
    const term = (topologyKey: string) => ({ topologyKey, labelSelector: { matchLabels: { app: 'web' } } });
    const apart = {
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term('zone')] } },
    };
    await room.pod('w1', apart, { labels: { app: 'web' } });
    await room.pod('w2', apart, { labels: { app: 'web' } });
    const zones = [await room.placed('w1'), await room.placed('w2')].map((node) => node[0]);
    expect(new Set(zones)).toEqual(new Set(['a', 'b']));
    await room.pod('w3', apart, { labels: { app: 'web' } });
    await room.refused('w3', /3 node\(s\) didn't match pod anti-affinity rules/);
    await room.pod('x', {}, { labels: { app: 'web' } });
    await room.refused('x', /3 node\(s\) didn't satisfy existing pods anti-affinity rules/);
    const together = {
      affinity: {
        podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term('kubernetes.io/hostname')] },
      },
    };
    await room.pod('companion', together);
    expect([await room.placed('w1'), await room.placed('w2')]).toContain(await room.placed('companion'));
  });

  it('spreads pods', async () => {
    const room = await Room.make();
    await room.node('a', { labels: { zone: 'a' } });
    await room.node('b', { labels: { zone: 'b' } });
    const spread: PodSpec = {
      topologySpreadConstraints: [
        {
          maxSkew: 1,
          topologyKey: 'zone',
          whenUnsatisfiable: 'DoNotSchedule',
          labelSelector: { matchLabels: { app: 'web' } },
        },
      ],
    };
    const names = ['s0', 's1', 's2', 's3'];
    for (const name of names) await room.pod(name, spread, { labels: { app: 'web' } });
    const placed = await Promise.all(names.map((name) => room.placed(name)));
    expect(placed.filter((node) => node === 'a').length).toBe(2);
  });

  it('follows volumes', async () => {
    const room = await Room.make();
    await room.node('a');
    const b = await room.node('b');
    const name = `${room.namespace}-disk`;
    const mode = { accessModes: ['ReadWriteOnce'] };
    const claim = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'data', namespace: room.namespace },
      spec: { ...mode, storageClassName: '', volumeName: name, resources: { requests: { storage: '1Gi' } } },
    };
    await room.pod('p', { volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }] });
    await room.refused('p', /^0\/\d+ nodes are available: persistentvolumeclaim "data" not found\. /);
    await cluster.client.create<KubeObject>(claims, claim, cluster.signal);
    await room.refused('p', /pod has unbound immediate PersistentVolumeClaims/);
    const affinity = {
      required: {
        nodeSelectorTerms: [{ matchExpressions: [{ key: 'kubernetes.io/hostname', operator: 'In', values: [b] }] }],
      },
    };
    const volume = {
      apiVersion: 'v1',
      kind: 'PersistentVolume',
      metadata: { name },
      spec: { ...mode, capacity: { storage: '1Gi' }, local: { path: '/disk' }, nodeAffinity: affinity },
    };
    await make<KubeObject>(volumes, volume);
    expect(await room.placed('p')).toBe('b');
  });
});

describe('waiting', () => {
  it('ends when a node comes, is uncordoned, or loses its taint', async () => {
    const room = await Room.make();
    const { client, signal } = cluster;
    await room.pod('p');
    await room.refused('p', /didn't match Pod's node affinity\/selector|no nodes available/);
    const node = await room.node('a', { spec: { unschedulable: true } });
    await room.refused('p', /were unschedulable/);
    const change = (body: JsonObject) => client.patch(nodes, '', node, { type: 'merge', body }, signal);
    await change({ spec: { unschedulable: null, taints: [{ key: 'k', effect: 'NoSchedule' }] } });
    await room.pod('witness');
    await room.refused('witness', /had untolerated taint \{k: \}/);
    expect((await room.get('p')).spec?.nodeName).toBeUndefined();
    await change({ spec: { taints: null } });
    expect(await room.placed('witness')).toBe('a');
    expect(await room.placed('p')).toBe('a');
  });

  it('ends when another pod goes', async () => {
    const room = await Room.make();
    await room.node('a');
    await room.pod('first', asking('3'));
    await room.placed('first');
    await room.pod('second', asking('3'));
    await room.refused('second', /Insufficient cpu/);
    await room.end('first');
    expect(await room.placed('second')).toBe('a');
  });
});

describe('preemption', () => {
  it('pushes out lesser pods, with their grace, and takes their room', async () => {
    const room = await Room.make();
    const node = await room.node('a');
    await room.pod('victim', asking('3'));
    await room.placed('victim');
    await room.pod('vip', using('high', '3'));
    const victim = await eventually(async () => {
      const pod = await room.get('victim');
      expect(pod.metadata.deletionTimestamp).toBeDefined();
      return pod;
    });
    expect(victim.metadata.deletionGracePeriodSeconds).toBe(5);
    expect(victim.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')).toMatchObject({
      status: 'True',
      reason: 'PreemptionByScheduler',
      message: 'default-scheduler: preempting to accommodate a higher priority pod',
    });
    await eventually(async () => expect((await room.get('vip')).status?.nominatedNodeName).toBe(node));
    const { uid } = (await room.get('vip')).metadata;
    await room.told('victim', new RegExp(`Normal Preempted: Preempted by pod ${uid} on node ${node}$`, 'm'));
    await room.refused('vip', /1 Insufficient cpu/);
    // The room is kept for it.
    await room.pod('greedy', asking('3'));
    await room.refused('greedy', /Insufficient cpu/);
    await room.pod('modest', asking('1'));
    await room.end('victim');
    expect(await room.placed('vip')).toBe('a');
    await room.placed('modest');
    await room.refused('greedy', /Insufficient cpu/);
  });

  it('is not for pods that push nobody out, nor against equals', async () => {
    const room = await Room.make();
    await room.node('a');
    await room.pod('resident', using('middle', '3'));
    await room.placed('resident');
    await room.pod('shy', using('shy', '3'));
    await room.refused('shy', /preemption: not eligible due to preemptionPolicy=Never\.$/);
    await room.pod('equal', using('middle', '3'));
    await room.refused('equal', /1 No preemption victims found for incoming pod/);
    expect((await room.get('resident')).metadata.deletionTimestamp).toBeUndefined();
  });

  it('spares pods that a budget protects', async () => {
    const room = await Room.make();
    await room.node('a');
    await room.node('b');
    const { client, signal } = cluster;
    const budget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name: 'budget', namespace: room.namespace },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'web' } } },
    };
    await client.create<KubeObject>(budgets, budget, signal);
    await room.pod('guarded', asking('3'), { labels: { app: 'web' } });
    await room.placed('guarded');
    await room.pod('plain', using('middle', '3'));
    await room.placed('plain');
    await room.pod('vip', using('high', '3'));
    await eventually(async () => expect((await room.get('plain')).metadata.deletionTimestamp).toBeDefined());
    expect((await room.get('guarded')).metadata.deletionTimestamp).toBeUndefined();
  });

  it('does not push out again while the first victims are going', async () => {
    const room = await Room.make();
    await room.node('a');
    await room.node('b');
    await room.pod('v1', asking('3'));
    await room.pod('v2', using('middle', '3'));
    await Promise.all([room.placed('v1'), room.placed('v2')]);
    await room.pod('vip', using('high', '3'));
    await eventually(async () => expect((await room.get('v1')).metadata.deletionTimestamp).toBeDefined());
    // A change that makes the scheduler look again.
    await room.node('c', { cpu: '2' });
    const patch = { type: 'merge', body: { metadata: { labels: { look: 'again' } } } } as const;
    await cluster.client.patch(pods, room.namespace, 'vip', patch, cluster.signal);
    await room.refused('vip', /preemption: not eligible due to a terminating pod on the nominated node\.$/);
    expect((await room.get('v2')).metadata.deletionTimestamp).toBeUndefined();
    await room.end('v1');
    await room.placed('vip');
  });
});
