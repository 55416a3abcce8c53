import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { JsonObject, OwnerReference } from '../../api/meta.ts';
import { nodes, podDisruptionBudgets, pods } from '../../cluster/resources.ts';
import { ControlScene } from '../../control/control.fixture.ts';
import { seededRandom, silentLogger } from '../../env/test.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import type { Pod } from '../../migration/fit/objects.ts';
import { Drain, type DrainResult } from './drain.ts';
import { LineView } from './drain-view.ts';

/** A drain against the API alone: the test plays controllers, webhooks and agents. */

const NO_RULES = { force: false, deleteEmptydirData: false };

let scene: ControlScene;
let lines: string[];
let stopping: AbortController;

beforeEach(async () => {
  scene = new ControlScene();
  await scene.start();
  lines = [];
  stopping = new AbortController();
  for (const name of ['node-a', 'node-b'])
    await scene.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name } });
});
afterEach(async () => {
  stopping.abort();
  await scene.settle();
  await scene.stop();
});

/** A guest on node-a, with its launcher pod. */
async function runs(name: string, strategy: string, isMigratable = true): Promise<void> {
  const spec = { domain: { devices: {}, memory: { guest: '64Mi' } }, evictionStrategy: strategy };
  const { metadata } = await scene.create(virtualMachineInstances, {
    metadata: { name },
    spec: spec as unknown as VirtualMachineInstance['spec'],
  });
  const { uid = '' } = metadata;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name, uid, controller: true };
  await pod(`virt-launcher-${name}`, owner);
  const status = {
    phase: 'Running',
    nodeName: 'node-a',
    conditions: [{ type: 'LiveMigratable', status: isMigratable ? 'True' : 'False', reason: 'Disks' }],
  };
  await scene.patch(virtualMachineInstances, name, { status }, 'status');
}

async function pod(name: string, owner?: OwnerReference): Promise<void> {
  await scene.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, labels: { name }, ...(owner ? { ownerReferences: [owner] } : {}) },
    spec: { nodeName: 'node-a', containers: [{ name: 'c', image: 'i' }] } as Pod['spec'] & object,
  });
  await scene.patch(
    pods,
    name,
    { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
    'status',
  );
}

/** Nobody may evict the pod. */
async function keep(name: string): Promise<void> {
  const spec = { minAvailable: 1, selector: { matchLabels: { name } } };
  const { metadata } = await scene.create(podDisruptionBudgets, { metadata: { name }, spec });
  const status = {
    observedGeneration: metadata.generation ?? 0,
    disruptionsAllowed: 0,
    currentHealthy: 1,
    desiredHealthy: 1,
    expectedPods: 1,
  };
  await scene.patch(podDisruptionBudgets, name, { status }, 'status');
}

const guest = (name: string, status: JsonObject): Promise<void> =>
  scene.patch(virtualMachineInstances, name, { status }, 'status');

interface Running {
  result: DrainResult | undefined;
  error: unknown;
}

function drain(rules: Partial<typeof NO_RULES> = {}): Running {
  const print = (line: string): void => void lines.push(line);
  const env = { clock: scene.clock, random: seededRandom(1), log: silentLogger };
  const options = {
    client: scene.client,
    env,
    node: 'node-a',
    print,
    view: new LineView(print),
    ...NO_RULES,
    ...rules,
  };
  const running: Running = { result: undefined, error: undefined };
  new Drain(options).run(stopping.signal).then(
    (result) => (running.result = result),
    (error: unknown) => (running.error = error),
  );
  return running;
}

const says = (line: string): Promise<void> => scene.until(() => expect(lines).toContain(line));
const unschedulable = async (): Promise<boolean | undefined> => (await scene.get(nodes, 'node-a')).spec?.unschedulable;

describe('a drain', () => {
  it('ends when machines have moved or stopped', async () => {
    await runs('web', 'LiveMigrate');
    await keep('virt-launcher-web');
    await runs('batch', 'None');
    const running = drain();
    await says('node/node-a cordoned');
    expect(await unschedulable()).toBe(true);
    await says('shop/batch: Stopping, it is being shut down');
    await guest('batch', { phase: 'Succeeded' });
    await scene.delete(pods, 'virt-launcher-batch', 0);
    await says('shop/batch: Gone, it has ended');
    expect(running.result).toBeUndefined();
    await guest('web', { nodeName: 'node-b' });
    await says('shop/web: Left, it runs on node-b');
    expect(running.result).toBeUndefined();
    await scene.patch(pods, 'virt-launcher-web', { status: { phase: 'Succeeded' } }, 'status');
    await scene.until(() => expect(running.result).toEqual({ kind: 'empty' }));
  });

  it('asks again while nobody marks a machine that its budget keeps, and then no more', async () => {
    await runs('web', 'LiveMigrate');
    await keep('virt-launcher-web');
    drain();
    await says(
      'shop/web: Waiting, its disruption budget keeps it, and nobody moves it: is the eviction webhook there?',
    );
    await guest('web', { evacuationNodeName: 'node-a' });
    await says('shop/web: Waiting, it is about to move');
    // Whoever asked once more would be let through now.
    await scene.delete(podDisruptionBudgets, 'virt-launcher-web');
    await scene.pass(30_000);
    expect((await scene.get(pods, 'virt-launcher-web')).metadata.deletionTimestamp).toBeUndefined();
    await guest('web', { evacuationNodeName: null });
    await scene.pass(10_000);
    expect((await scene.get(pods, 'virt-launcher-web')).metadata.deletionTimestamp).toBeDefined();
  });

  it('says what to do when nothing but that is left', async () => {
    await runs('db', 'LiveMigrate', false);
    await keep('virt-launcher-db');
    const running = drain();
    await says('shop/db: Blocked, cannot be live-migrated: Disks');
    await scene.pass(5000);
    expect(running.result).toBeUndefined();
    await scene.pass(20_000);
    expect(running.result).toMatchObject({ kind: 'hopeless', rows: [{ machine: 'shop/db' }] });
  });

  it('waits for whoever else moves a machine', async () => {
    await runs('node', 'External');
    await keep('virt-launcher-node');
    const running = drain();
    await says('shop/node: Blocked, its eviction strategy is External: whoever manages it has to move or to end it');
    await scene.pass(60_000);
    expect(running.result).toBeUndefined();
  });

  it('takes machines with it that come later', async () => {
    await runs('batch', 'None');
    const running = drain();
    await says('shop/batch: Stopping, it is being shut down');
    await runs('late', 'None');
    await says('shop/late: Stopping, it is being shut down');
    for (const name of ['batch', 'late']) {
      await guest(name, { phase: 'Failed' });
      await scene.delete(pods, `virt-launcher-${name}`, 0);
    }
    await scene.until(() => expect(running.result).toEqual({ kind: 'empty' }));
  });

  it('changes nothing where it would take what nobody has said may go', async () => {
    await pod('lonely');
    const running = drain();
    await scene.until(() => expect(running.result).toMatchObject({ kind: 'refused', pods: [{ pod: 'shop/lonely' }] }));
    expect(await unschedulable()).toBeUndefined();
    const forced = drain({ force: true });
    await says('pod shop/lonely: is being evicted');
    await scene.delete(pods, 'lonely', 0);
    await scene.until(() => expect(forced.result).toEqual({ kind: 'empty' }));
  });

  it('stops when it is told to', async () => {
    await runs('node', 'External');
    await keep('virt-launcher-node');
    const running = drain();
    await says('node/node-a cordoned');
    stopping.abort();
    await scene.until(() => expect(running.error).toBeDefined());
    expect(await unschedulable()).toBe(true);
  });
});
