import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { KubeObject, OwnerReference } from '../../api/meta.ts';
import { ApiError } from '../../api/status.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { LoopScene } from '../loops.fixture.ts';
import { deployments, podDisruptionBudgets, pods, replicaSets } from '../resources.ts';
import { disruptionLoop } from './loop.ts';
import type { BudgetStatus, PodDisruptionBudget } from './objects.ts';

const scene = new LoopScene(disruptionLoop);
let rooms = 0;
beforeAll(() => scene.start());
afterAll(() => scene.stop());

/** A namespace of its own, with pods and budgets. */
class Room {
  readonly name = `room-${++rooms}`;

  static async make(...podNames: readonly string[]): Promise<Room> {
    const room = new Room();
    await scene.namespace(room.name);
    for (const name of podNames) await room.pod(name);
    return room;
  }

  async pod(name: string, owner?: OwnerReference): Promise<void> {
    const metadata = {
      name,
      namespace: this.name,
      labels: { app: 'web' },
      ...(owner ? { ownerReferences: [owner] } : {}),
    };
    const spec = { containers: [{ name: 'c', image: 'i' }], nodeName: 'node', terminationGracePeriodSeconds: 30 };
    await scene.create(pods, { metadata, spec: spec as Pod['spec'] });
    await this.ready(name, 'True');
  }

  ready(name: string, status: string): Promise<void> {
    return scene.patchStatus(pods, this.name, name, { phase: 'Running', conditions: [{ type: 'Ready', status }] });
  }

  async budget(spec: object, name = 'b'): Promise<void> {
    const metadata = { name, namespace: this.name };
    const full = { selector: { matchLabels: { app: 'web' } }, ...spec };
    await scene.create(podDisruptionBudgets, { metadata, spec: full });
  }

  get(name = 'b'): Promise<PodDisruptionBudget> {
    return scene.get(podDisruptionBudgets, this.name, name);
  }

  /** Waits for what a budget says. */
  async says(status: BudgetStatus, name = 'b'): Promise<PodDisruptionBudget> {
    return scene.until(async () => {
      const budget = await this.get(name);
      expect(budget.status?.observedGeneration ?? 0).toBe(budget.metadata.generation);
      expect(budget.status).toMatchObject(status);
      return budget;
    });
  }

  /** Evicts a pod: `true`, or the code of the refusal. */
  async evict(name: string): Promise<true | number> {
    const metadata = { name, namespace: this.name };
    const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata };
    try {
      await scene.client.post(pods, this.name, name, 'eviction', eviction, scene.signal);
      return true;
    } catch (error) {
      if (error instanceof ApiError) return error.code;
      throw error;
    }
  }

  delete(name: string): Promise<unknown> {
    return scene.client.delete(pods, this.name, name, scene.signal, { gracePeriodSeconds: 0 });
  }
}

function owner(kind: string, name: string, uid = '', apiVersion = 'apps/v1'): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true };
}

async function replicaSet(
  room: Room,
  name: string,
  replicas: number,
  owners: OwnerReference[] = [],
): Promise<OwnerReference> {
  const labels = { app: 'web' };
  const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };
  const spec = { replicas, selector: { matchLabels: labels }, template };
  const metadata = { name, namespace: room.name, ownerReferences: owners };
  const made = await scene.create<KubeObject>(replicaSets, { metadata, spec });
  return owner('ReplicaSet', name, made.metadata.uid);
}

describe('counting', () => {
  it('follows pods and the budget itself, and writes once', async () => {
    const room = await Room.make('a', 'b', 'c');
    await room.budget({ minAvailable: 2 });
    await room.says({ disruptionsAllowed: 1, currentHealthy: 3, desiredHealthy: 2, expectedPods: 3 });
    await room.ready('a', 'False');
    const { metadata } = await room.says({ disruptionsAllowed: 0, currentHealthy: 2 });
    const patch = { type: 'merge', body: { metadata: { annotations: { a: 'b' } } } } as const;
    await scene.client.patch(pods, room.name, 'b', patch, scene.signal);
    await scene.settle();
    expect((await room.get()).metadata.resourceVersion).toBe(metadata.resourceVersion);
    const body = { spec: { minAvailable: 1 } };
    await scene.client.patch(podDisruptionBudgets, room.name, 'b', { type: 'merge', body }, scene.signal);
    await room.says({ observedGeneration: 2, disruptionsAllowed: 1, desiredHealthy: 1 });
    await room.delete('c');
    await room.says({ disruptionsAllowed: 0, expectedPods: 2 });
  });

  it('follows labels away from one budget to another', async () => {
    const room = await Room.make('a', 'b');
    await room.budget({ minAvailable: 0 });
    await room.budget({ minAvailable: 0, selector: { matchLabels: { app: 'db' } } }, 'other');
    await room.says({ currentHealthy: 2 });
    await room.says({ currentHealthy: 0, disruptionsAllowed: 0 }, 'other');
    const patch = { type: 'merge', body: { metadata: { labels: { app: 'db' } } } } as const;
    await scene.client.patch(pods, room.name, 'a', patch, scene.signal);
    await room.says({ currentHealthy: 1 });
    await room.says({ currentHealthy: 1, disruptionsAllowed: 1 }, 'other');
    const events = await scene.until(async () => {
      const found = await scene.events(room.name);
      expect(found).toHaveLength(1);
      return found;
    });
    expect(events).toEqual(['other Normal NoPods: No matching pods found']);
  });

  it('tells of pods that several budgets claim, and counts them in each', async () => {
    const room = await Room.make();
    await room.budget({ minAvailable: 0 });
    await room.budget({ minAvailable: 0, selector: {} }, 'c');
    await room.says({ currentHealthy: 0 }, 'c');
    await room.pod('a');
    await room.says({ currentHealthy: 1 });
    await room.says({ currentHealthy: 1 }, 'c');
    await scene.until(async () =>
      expect(await scene.events(room.name)).toContain(
        `a Warning MultiplePodDisruptionBudgets: Pod "${room.name}"/"a" matches multiple PodDisruptionBudgets.  Chose "b" arbitrarily.`,
      ),
    );
    expect(await room.evict('a')).toBe(500);
  });
});

describe('what controllers want', () => {
  it('is asked of replica sets, and of the deployment above them', async () => {
    const room = await Room.make();
    const template = { metadata: { labels: { app: 'web' } }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    const spec = { replicas: 4, selector: { matchLabels: { app: 'web' } }, template };
    const deployment = await scene.create<KubeObject>(deployments, {
      metadata: { name: 'd', namespace: room.name },
      spec,
    });
    const above = owner('Deployment', 'd', deployment.metadata.uid);
    const [old, next] = [await replicaSet(room, 'old', 3, [above]), await replicaSet(room, 'next', 2, [above])];
    const alone = await replicaSet(room, 'alone', 5);
    await room.pod('p1', old);
    await room.pod('p2', next);
    await room.pod('p3', alone);
    await room.budget({ maxUnavailable: '50%' });
    await room.says({ expectedPods: 9, desiredHealthy: 4, currentHealthy: 3, disruptionsAllowed: 0 });
    const body = { spec: { replicas: 1 } };
    await scene.client.patch(deployments, room.name, 'd', { type: 'merge', body }, scene.signal);
    await room.says({ expectedPods: 6, desiredHealthy: 3, disruptionsAllowed: 0 });
    await scene.client.patch(replicaSets, room.name, 'alone', { type: 'merge', body }, scene.signal);
    await room.says({ expectedPods: 2, desiredHealthy: 1, disruptionsAllowed: 2 });
  });

  it('is asked of whatever has a scale', async () => {
    const room = await Room.make();
    const crds = {
      group: 'apiextensions.k8s.io',
      version: 'v1',
      plural: 'customresourcedefinitions',
      kind: 'CustomResourceDefinition',
      namespaced: false,
    };
    const names = { plural: 'flocks', singular: 'flock', kind: 'Flock', listKind: 'FlockList' };
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
    const scale = { specReplicasPath: '.spec.birds', statusReplicasPath: '.status.birds' };
    const versions = [{ name: 'v1', served: true, storage: true, schema, subresources: { scale, status: {} } }];
    await scene.create<KubeObject>(crds, {
      metadata: { name: 'flocks.example.com' },
      spec: { group: 'example.com', scope: 'Namespaced', names, versions },
    });
    const flocks = { group: 'example.com', version: 'v1', plural: 'flocks', kind: 'Flock', namespaced: true };
    const flock = await scene.until(() =>
      scene.create<KubeObject>(flocks, { metadata: { name: 'f', namespace: room.name }, spec: { birds: 3 } }),
    );
    await room.pod('a', owner('Flock', 'f', flock.metadata.uid, 'example.com/v1'));
    await room.budget({ maxUnavailable: 1 });
    await room.says({ expectedPods: 3, desiredHealthy: 2, currentHealthy: 1, disruptionsAllowed: 0 });
  });

  it.each<[string, OwnerReference, string]>([
    ['not there', owner('ReplicaSet', 'gone', 'u'), 'found no controllers for pod "a"'],
    ['of no kind', owner('Goose', 'g', 'u', 'birds/v1'), 'no matches for kind "Goose" in version "birds/v1"'],
    ['without a scale', owner('Job', 'j', 'u', 'batch/v1'), 'jobs.batch does not implement the scale subresource'],
  ])('is unknown where the controller is %s: then nothing is allowed', async (_, above, message) => {
    const room = await Room.make();
    await room.pod('a', above);
    await room.budget({ minAvailable: '0%' });
    const { status } = await scene.until(async () => {
      const budget = await room.get();
      expect(budget.status?.conditions).toMatchObject([{ status: 'False', reason: 'SyncFailed', message }]);
      return budget;
    });
    expect(status).toMatchObject({ disruptionsAllowed: 0 });
    const told = `b Warning CalculateExpectedPodCountFailed: Failed to calculate the number of expected pods: ${message}`;
    await scene.until(async () => expect(await scene.events(room.name)).toContain(told));
    expect(await room.evict('a')).toBe(429);
  });

  it('becomes known when the controller comes', async () => {
    const room = await Room.make();
    scene.hold('replicasets');
    const above = await replicaSet(room, 'r', 3);
    await room.pod('a', { ...above, uid: above.uid });
    await room.budget({ minAvailable: '1%' });
    // The scale subresource knows what the cache does not.
    await room.says({ expectedPods: 3 });
    await scene.release('replicasets');
    await room.says({ expectedPods: 3, desiredHealthy: 1 });
  });

  it('is nothing for pods that nobody manages', async () => {
    const room = await Room.make('a', 'b');
    await room.budget({ maxUnavailable: 1 });
    await room.says({ expectedPods: 0, desiredHealthy: 0, currentHealthy: 2, disruptionsAllowed: 0 });
    await scene.until(async () =>
      expect((await scene.events(room.name)).join()).toContain(
        'b Warning UnmanagedPods: Pods selected by this PodDisruptionBudget (selector: &LabelSelector{MatchLabels:map[string]string{app: web,},MatchExpressions:[]LabelSelectorRequirement{},}) were found to be unmanaged.',
      ),
    );
  });
});

describe('evictions', () => {
  it('are granted once each', async () => {
    const room = await Room.make('a', 'b', 'c');
    await room.budget({ minAvailable: 2 });
    await room.says({ disruptionsAllowed: 1 });
    expect(await room.evict('a')).toBe(true);
    expect(await room.evict('b')).toBe(429);
    const { status } = await room.says({ disruptionsAllowed: 0, currentHealthy: 2 });
    expect(status?.disruptedPods).toBeUndefined();
    await room.delete('a');
    await room.pod('a');
    await room.says({ disruptionsAllowed: 1 });
    expect(await room.evict('a')).toBe(true);
  });

  it('are not granted again for a pod whose departure the cache has not seen', async () => {
    const room = await Room.make('a', 'b', 'c');
    await room.budget({ minAvailable: 2 });
    await room.says({ disruptionsAllowed: 1 });
    scene.hold('pods');
    expect(await room.evict('a')).toBe(true);
    await scene.settle();
    expect((await room.get()).status).toMatchObject({
      disruptionsAllowed: 0,
      disruptedPods: { a: expect.any(String) as string },
    });
    expect(await room.evict('b')).toBe(429);
    // Long after the note has run out, the cache still has the pod: the server is asked.
    await scene.pass(3 * 60_000, 10_000);
    await room.says({ disruptionsAllowed: 0, currentHealthy: 2 });
    expect(await room.evict('b')).toBe(429);
    await scene.release('pods');
    await room.says({ disruptionsAllowed: 0, currentHealthy: 2 });
  });

  it('are not forgotten for a pod that the cache has not even seen come', async () => {
    const room = await Room.make('a', 'b');
    await room.budget({ minAvailable: 1 });
    await room.says({ disruptionsAllowed: 1 });
    scene.hold('pods');
    await room.pod('c');
    expect(await room.evict('c')).toBe(true);
    await scene.settle();
    const body = { metadata: { labels: { look: 'again' } } };
    await scene.client.patch(podDisruptionBudgets, room.name, 'b', { type: 'merge', body }, scene.signal);
    await scene.settle();
    expect((await room.get()).status?.disruptedPods).toHaveProperty('c');
    await scene.release('pods');
    await room.says({ currentHealthy: 2, disruptionsAllowed: 1 });
  });

  it('are not granted on the word of a cache that is older than the budget', async () => {
    const room = await Room.make('a', 'b', 'c');
    await room.budget({ minAvailable: 2 });
    await room.says({ disruptionsAllowed: 1 });
    expect(await room.evict('a')).toBe(true);
    await room.says({ disruptionsAllowed: 0, currentHealthy: 2 });
    scene.hold('pods');
    await room.delete('b');
    const body = { spec: { minAvailable: 1 } };
    await scene.client.patch(podDisruptionBudgets, room.name, 'b', { type: 'merge', body }, scene.signal);
    // The cache has two healthy pods, the server has one.
    await room.says({ observedGeneration: 2, currentHealthy: 1, disruptionsAllowed: 0 });
    expect(await room.evict('c')).toBe(429);
    await scene.release('pods');
  });

  it('are not granted, nor taken back, where the server cannot be asked', async () => {
    const room = await Room.make('a', 'b');
    await room.budget({ minAvailable: 1 });
    const { metadata } = await room.says({ disruptionsAllowed: 1 });
    scene.lost = /resourceVersionMatch=NotOlderThan/;
    const body = { spec: { minAvailable: 0 } };
    await scene.client.patch(podDisruptionBudgets, room.name, 'b', { type: 'merge', body }, scene.signal);
    await scene.pass(5000);
    const { status } = await room.get();
    expect(status).toMatchObject({ observedGeneration: metadata.generation, disruptionsAllowed: 1 });
    expect(status?.conditions).toMatchObject([{ status: 'True', reason: 'SufficientPods' }]);
    expect(await room.evict('a')).toBe(429);
    scene.lost = undefined;
    await scene.pass(10_000);
    await room.says({ observedGeneration: 2, disruptionsAllowed: 2 });
  });

  it('that never happened are given back after two minutes, and somebody is told', async () => {
    const room = await Room.make('a', 'b');
    await room.budget({ minAvailable: 1 });
    const { metadata, status } = await room.says({ disruptionsAllowed: 1 });
    expect(metadata.generation).toBe(1);
    const time = new Date(scene.clock.now()).toISOString().replace(/\.\d+/, '');
    await scene.patchStatus(podDisruptionBudgets, room.name, 'b', {
      ...(status as object),
      disruptionsAllowed: 0,
      disruptedPods: { a: time },
    });
    await room.says({ disruptionsAllowed: 0, currentHealthy: 1 });
    await scene.pass(2 * 60_000 - 5000, 5000);
    expect((await room.get()).status).toMatchObject({ disruptionsAllowed: 0, currentHealthy: 1 });
    await scene.pass(7000);
    await room.says({ disruptionsAllowed: 1, currentHealthy: 2 });
    expect((await room.get()).status?.disruptedPods).toBeUndefined();
    const told = `a Warning NotDeleted: Pod was expected by PDB ${room.name}/b to be deleted but it wasn't`;
    await scene.until(async () => expect(await scene.events(room.name)).toContain(told));
  });

  it('that were granted while it was away are found in the budget', async () => {
    const room = await Room.make('a', 'b', 'c');
    await room.budget({ minAvailable: 2 });
    await room.says({ disruptionsAllowed: 1 });
    await scene.stopLoops();
    expect(await room.evict('a')).toBe(true);
    await scene.startLoops();
    const { status } = await room.says({ disruptionsAllowed: 0, currentHealthy: 2 });
    await scene.until(async () => expect((await room.get()).status?.disruptedPods).toBeUndefined());
    expect(status?.conditions).toMatchObject([{ status: 'False', reason: 'InsufficientPods' }]);
  });
});

describe('disruptions that did not come', () => {
  const marked = (reason: string) => ({
    conditions: [
      {
        type: 'DisruptionTarget',
        status: 'True',
        reason,
        message: 'soon',
        lastTransitionTime: new Date(scene.clock.now()).toISOString().replace(/\.\d+/, ''),
      },
    ],
  });
  const conditionOf = async (room: Room, name: string) => {
    const { status } = await scene.get(pods, room.name, name);
    return status?.conditions?.find(({ type }) => type === 'DisruptionTarget');
  };

  it('are taken back after two minutes, but for those of kubelets and of finished pods', async () => {
    const room = await Room.make('a', 'kubelets', 'finished');
    await scene.patchStatus(pods, room.name, 'a', marked('PreemptionByScheduler'));
    await scene.patchStatus(pods, room.name, 'kubelets', marked('TerminationByKubelet'));
    await scene.patchStatus(pods, room.name, 'finished', { ...marked('PreemptionByScheduler'), phase: 'Failed' });
    await scene.pass(115_000, 5000);
    expect(await conditionOf(room, 'a')).toMatchObject({ status: 'True' });
    await scene.pass(10_000);
    const condition = await conditionOf(room, 'a');
    expect(condition).toMatchObject({ type: 'DisruptionTarget', status: 'False' });
    expect(condition).not.toHaveProperty('reason');
    expect(condition).not.toHaveProperty('message');
    expect(Date.parse(condition?.lastTransitionTime ?? '')).toBeGreaterThan(scene.clock.now() - 30_000);
    expect(await conditionOf(room, 'kubelets')).toMatchObject({ status: 'True' });
    expect(await conditionOf(room, 'finished')).toMatchObject({ status: 'True' });
  });
});
