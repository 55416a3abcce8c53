import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { JsonObject, KubeObject, OwnerReference } from '../../src/api/meta.ts';
import { ApiError } from '../../src/api/status.ts';
import type { BudgetStatus, PodDisruptionBudget } from '../../src/cluster/disruption-budgets/objects.ts';
import { ClusterUnderTest, resource } from '../support/cluster-under-test.ts';
import { eventually } from '../support/eventually.ts';
import { pods, Room } from '../support/room.ts';

/** What disruption budgets allow as seen through the API: on these inputs, kube-controller-manager says the same. */

const budgets = resource<PodDisruptionBudget>('poddisruptionbudgets', 'PodDisruptionBudget', 'policy');
const definitions = resource('customresourcedefinitions', 'CustomResourceDefinition', 'apiextensions.k8s.io', false);
const group = `p${process.pid}.budgets.example.com`;
const flocks = resource('flocks', 'Flock', group);

let cluster: ClusterUnderTest;
const scenes: Scene[] = [];

beforeAll(async () => {
  cluster = await ClusterUnderTest.start();
});
afterAll(async () => {
  for (const scene of scenes) await scene.clear();
  await cluster.client.delete(definitions, '', `flocks.${group}`, cluster.signal);
  await cluster.stop();
});

/** A room with a node, pods that are ready there, and budgets. */
class Scene {
  readonly #room: Room;
  readonly #node: string;

  private constructor(room: Room, node: string) {
    this.#room = room;
    this.#node = node;
  }

  static async make(...podNames: readonly string[]): Promise<Scene> {
    const room = await Room.make(cluster);
    const scene = new Scene(room, await room.node('a'));
    scenes.push(scene);
    for (const name of podNames) await scene.pod(name);
    return scene;
  }

  get namespace(): string {
    return this.#room.namespace;
  }

  clear(): Promise<void> {
    return this.#room.clear();
  }

  async pod(name: string, owner?: OwnerReference): Promise<void> {
    await this.#room.podOn(this.#node, name, { terminationGracePeriodSeconds: 60 } as object);
    const ownerReferences = owner ? [{ ...owner }] : [];
    await this.#room.changePod(name, { metadata: { labels: { app: 'web' }, ownerReferences } });
    await this.ready(name, 'True');
  }

  async ready(name: string, status: string): Promise<void> {
    const body = { status: { phase: 'Running', conditions: [{ type: 'Ready', status }] } };
    await cluster.client.patch(pods, this.namespace, name, { type: 'strategic', body }, cluster.signal, {
      subresource: 'status',
    });
  }

  end(name: string): Promise<void> {
    return this.#room.end(name);
  }

  told(name: string, pattern: RegExp): Promise<void> {
    return this.#room.told(name, pattern);
  }

  async budget(spec: PodDisruptionBudget['spec'], name = 'budget'): Promise<void> {
    const object: PodDisruptionBudget = {
      apiVersion: 'policy/v1',
      kind: 'PodDisruptionBudget',
      metadata: { name, namespace: this.namespace },
      spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
    };
    await cluster.client.create(budgets, object, cluster.signal);
  }

  async change(body: JsonObject, name = 'budget'): Promise<void> {
    await cluster.client.patch(budgets, this.namespace, name, { type: 'merge', body }, cluster.signal);
  }

  /** Waits for what a budget says, of its newest spec. */
  async says(status: BudgetStatus, name = 'budget'): Promise<BudgetStatus> {
    return eventually(async () => {
      const budget = await cluster.client.get(budgets, this.namespace, name, cluster.signal);
      expect(budget.status?.observedGeneration).toBe(budget.metadata.generation);
      expect(budget.status).toMatchObject(status);
      return budget.status ?? {};
    });
  }

  /** Evicts as kubectl drain does: true, or the refusal. */
  async evict(name: string): Promise<true | ApiError> {
    const metadata = { name, namespace: this.namespace };
    const eviction: KubeObject = { apiVersion: 'policy/v1', kind: 'Eviction', metadata };
    try {
      await cluster.client.post(pods, this.namespace, name, 'eviction', eviction, cluster.signal);
      return true;
    } catch (error) {
      if (error instanceof ApiError) return error;
      throw error;
    }
  }
}

describe('the status of a budget', () => {
  it('counts pods that are ready, and says what may go', async () => {
    const scene = await Scene.make('a', 'b', 'c');
    await scene.budget({ minAvailable: 2 });
    const status = await scene.says({ expectedPods: 3, currentHealthy: 3, desiredHealthy: 2, disruptionsAllowed: 1 });
    expect(status.conditions).toMatchObject([
      { type: 'DisruptionAllowed', status: 'True', reason: 'SufficientPods', message: '', observedGeneration: 1 },
    ]);
    await scene.ready('a', 'False');
    const { conditions } = await scene.says({ currentHealthy: 2, disruptionsAllowed: 0 });
    expect(conditions).toMatchObject([{ status: 'False', reason: 'InsufficientPods', observedGeneration: 1 }]);
    await scene.change({ spec: { minAvailable: 1 } });
    await scene.says({ observedGeneration: 2, desiredHealthy: 1, disruptionsAllowed: 1 });
    await scene.end('a');
    await scene.says({ expectedPods: 2, currentHealthy: 2, disruptionsAllowed: 1 });
  });

  it('allows nothing where there are no pods, and says so', async () => {
    const scene = await Scene.make();
    await scene.budget({ minAvailable: 0 });
    await scene.says({ expectedPods: 0, currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0 });
    await scene.told('budget', /^Normal NoPods: No matching pods found$/m);
    await scene.pod('a');
    await scene.says({ expectedPods: 1, currentHealthy: 1, disruptionsAllowed: 1 });
  });

  it('knows pods that nobody manages by their number alone', async () => {
    const scene = await Scene.make('a', 'b');
    await scene.budget({ maxUnavailable: 1 });
    await scene.says({ expectedPods: 0, currentHealthy: 2, disruptionsAllowed: 0 });
    await scene.told('budget', /^Warning UnmanagedPods: Pods selected by this PodDisruptionBudget \(selector: /m);
  });

  it('asks any controller for its scale, and rounds shares up', async () => {
    await makeFlocks();
    // Whoever counts learns of a new kind in its own time, and nodes that nobody speaks for are given up before that.
    await (await flockOfFive()).scene.says({ expectedPods: 5 });
    const { scene, owner } = await flockOfFive();
    await scene.says({ expectedPods: 5, desiredHealthy: 3, currentHealthy: 4, disruptionsAllowed: 1 });
    await scene.change({ spec: { minAvailable: null, maxUnavailable: '50%' } });
    await scene.says({ expectedPods: 5, desiredHealthy: 2, currentHealthy: 4, disruptionsAllowed: 2 });
    await scene.pod('stray', { ...owner, name: 'gone', uid: '5b0a9a6e-0000-4000-8000-000000000000' });
    await eventually(async () => {
      const { status } = await cluster.client.get(budgets, scene.namespace, 'budget', cluster.signal);
      expect(status?.disruptionsAllowed).toBe(0);
      const message = 'found no controllers for pod "stray"';
      expect(status?.conditions).toMatchObject([{ status: 'False', reason: 'SyncFailed', message }]);
    });
    await scene.told('budget', /^Warning CalculateExpectedPodCountFailed: .*found no controllers for pod "stray"$/m);
    expect(await scene.evict('a')).toMatchObject({ code: 429 });
    await scene.end('stray');
    await scene.says({ disruptionsAllowed: 2 });
  });
});

/** Four pods of a flock that should have five, half of which have to stay. */
async function flockOfFive(): Promise<{ readonly scene: Scene; readonly owner: OwnerReference }> {
  const scene = await Scene.make();
  const kind = { apiVersion: `${group}/v1`, kind: 'Flock' };
  const object = { ...kind, metadata: { name: 'flock', namespace: scene.namespace }, spec: { birds: 5 } };
  const flock = await cluster.client.create<KubeObject>(flocks, object, cluster.signal);
  const owner = { ...kind, name: 'flock', uid: flock.metadata.uid ?? '', controller: true };
  for (const name of ['a', 'b', 'c', 'd']) await scene.pod(name, owner);
  await scene.budget({ minAvailable: '50%' });
  return { scene, owner };
}

describe('evictions', () => {
  it('are granted as long as the budget allows, and again when it does', async () => {
    const scene = await Scene.make('a', 'b', 'c');
    await scene.budget({ minAvailable: 2 });
    await scene.says({ disruptionsAllowed: 1 });
    expect(await scene.evict('a')).toBe(true);
    const refusal = await scene.evict('b');
    expect(refusal).toMatchObject({
      code: 429,
      message: "Cannot evict pod as it would violate the pod's disruption budget.",
      details: { causes: [{ reason: 'DisruptionBudget' }] },
    });
    await eventually(async () => expect((await scene.says({ currentHealthy: 2 })).disruptedPods ?? {}).toEqual({}));
    await scene.end('a');
    await scene.pod('d');
    await scene.says({ disruptionsAllowed: 1, currentHealthy: 3 });
    expect(await scene.evict('b')).toBe(true);
    expect(await scene.evict('c')).toMatchObject({ code: 429 });
  });

  it('all at once break no budget', async () => {
    const names = Array.from({ length: 12 }, (_, index) => `p${index}`);
    const scene = await Scene.make(...names);
    await scene.budget({ minAvailable: 9 });
    await scene.says({ disruptionsAllowed: 3 });
    for (let round = 0; round < 3; round++) await Promise.all(names.map((name) => scene.evict(name)));
    const { items } = await cluster.client.list(pods, { namespace: scene.namespace }, cluster.signal);
    expect(items.filter(({ metadata }) => metadata.deletionTimestamp === undefined)).toHaveLength(9);
    await scene.says({ disruptionsAllowed: 0, currentHealthy: 9 });
  });

  it('wait until a changed budget has been looked at', async () => {
    const scene = await Scene.make('a', 'b');
    await scene.budget({ minAvailable: 1 });
    await scene.says({ disruptionsAllowed: 1 });
    await scene.change({ spec: { minAvailable: 2 } });
    // Either it is being processed, or it has been: the pod stays.
    expect(await scene.evict('a')).toMatchObject({ code: 429 });
    await scene.says({ observedGeneration: 2, disruptionsAllowed: 0, desiredHealthy: 2 });
  });

  it('of pods that two budgets cover are no business of the API', async () => {
    const scene = await Scene.make('a', 'b');
    await scene.budget({ minAvailable: 0 });
    await scene.budget({ minAvailable: 0 }, 'another');
    await scene.ready('a', 'False');
    await scene.told(
      'a',
      /^Warning MultiplePodDisruptionBudgets: Pod "[^"]+"\/"a" matches multiple PodDisruptionBudgets\./m,
    );
    expect(await scene.evict('b')).toMatchObject({ code: 500 });
  });
});

/** A kind whose objects want as many pods as they have birds. */
async function makeFlocks(): Promise<void> {
  const { client, signal } = cluster;
  const names = { plural: 'flocks', singular: 'flock', kind: 'Flock', listKind: 'FlockList' };
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  const scale = { specReplicasPath: '.spec.birds', statusReplicasPath: '.status.birds' };
  const versions = [{ name: 'v1', served: true, storage: true, schema, subresources: { scale } }];
  const spec = { group, scope: 'Namespaced', names, versions };
  const metadata = { name: `flocks.${group}` };
  await client.create<KubeObject>(definitions, { apiVersion: '', kind: '', metadata, spec }, signal);
  await eventually(() => client.list(flocks, { namespace: 'default' }, signal));
}
