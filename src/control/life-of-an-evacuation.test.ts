import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../api/meta.ts';
import {
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
  virtualMachines,
} from '../kube/kubevirt-resources.ts';
import { ControlScene } from './control.fixture.ts';
import { DisruptionBudgets } from './disruption-budget/disruption-budgets.ts';
import { countBudgets } from './disruption-budget/played-counts.fixture.ts';
import { DrainReports } from './evacuation/drain-reports.ts';
import { Evacuations } from './evacuation/evacuations.ts';
import { MigrationLeftovers } from './migration/migration-leftovers.ts';
import { makeMigrations, PlayedAgents } from './migration/played-agents.fixture.ts';
import { disruptionBudgets, nodes, pods } from './resources.ts';
import { VirtualMachines } from './vm/virtual-machines.ts';
import { VirtualMachineInstances } from './vmi/virtual-machine-instances.ts';

/**
 * A machine that is driven from node to node, by all controllers that have a part in it. The eviction webhook, scheduler,
 * agents and the cluster's disruption controller are played.
 */

const IN_PROGRESS = 'descheduler.alpha.kubernetes.io/eviction-in-progress';

let scene: ControlScene;
let agents: PlayedAgents;

beforeEach(async () => {
  scene = new ControlScene(
    (context) => new VirtualMachines(context),
    (context) => new VirtualMachineInstances({ ...context, launcherImage: 'launcher:1' }),
    makeMigrations,
    (context) => new MigrationLeftovers(context),
    (context) => new Evacuations(context),
    (context) => new DrainReports(context),
    (context) => new DisruptionBudgets(context),
    countBudgets(() => scene),
  );
  agents = new PlayedAgents(scene);
  await scene.start();
  await agents.addNodes('node-a', 'node-b');
  const domain = { devices: {}, memory: { guest: '64Mi' } };
  const template = { spec: { domain, evictionStrategy: 'LiveMigrate' as const } };
  await scene.create(virtualMachines, { metadata: { name: 'web' }, spec: { runStrategy: 'Always', template } });
  await boot();
});
afterEach(() => scene.stop());

const guest = async () => (await scene.get(guests, 'web')).status ?? {};

/** Runs the guest in its first pod. */
async function boot(): Promise<void> {
  const pod = await scene.until(async () => {
    const [first] = await scene.list(pods);
    if (!first) throw new Error('there is no pod');
    return first;
  });
  await agents.bind(pod.metadata.name ?? '', 'node-a');
  await agents.start(pod.metadata.name ?? '');
  await scene.until(async () => expect((await guest()).phase).toBe('Scheduled'));
  const holder = { node: 'node-a', nodeUID: 'uid-of-node-a', podUID: pod.metadata.uid ?? '' };
  await agents.says('web', { phase: 'Running', rightToRun: { epoch: 1, holder } });
  await isSettled('node-a');
}

const setNode = async (name: string, spec: JsonObject): Promise<void> =>
  void (await scene.client.patch(nodes, '', name, { type: 'merge', body: { spec } }, scene.signal));

/** What the eviction webhook writes when a cordoned node is drained. */
async function drain(node: string): Promise<void> {
  await setNode(node, { unschedulable: true });
  await agents.says('web', {
    evacuationNodeName: node,
    evacuationCauses: [{ cause: 'APIEviction', untilUncordon: true }],
  });
}

/** Waits for the migration that is not over. */
const moveAway = (): Promise<string> =>
  scene.until(async () => {
    const left = (await scene.list(migrations)).filter(
      ({ status }) => !['Succeeded', 'Failed'].includes(status?.phase ?? ''),
    );
    expect(left).toHaveLength(1);
    return left[0]?.metadata.name ?? '';
  });

/** The guest is on a node, nobody wants anything of it, and its budget keeps the one pod that it has. */
const isSettled = (node: string): Promise<void> =>
  scene.until(async () => {
    const status = await guest();
    expect(status).toMatchObject({ phase: 'Running', nodeName: node, rightToRun: { holder: { node } } });
    expect(status.evacuationNodeName).toBeUndefined();
    expect(status.evacuationCauses).toBeUndefined();
    expect(Object.values(status.activePods ?? {})).toEqual([node]);
    const [budget, ...others] = await scene.list(disruptionBudgets);
    expect(others).toEqual([]);
    expect(budget?.spec?.minAvailable).toBe(1);
    expect(budget?.metadata.labels).toBeUndefined();
    for (const { metadata } of await scene.list(pods)) {
      const isHolder = metadata.uid === status.rightToRun?.holder?.podUID;
      if (isHolder) expect(metadata.annotations).not.toHaveProperty(IN_PROGRESS);
    }
  });

/** Plays all that others do for a guest that leaves a node, up to the end of the pod that it left. */
async function carryOut(node: string): Promise<void> {
  const { rightToRun } = await guest();
  const source = (await scene.list(pods)).find(({ metadata }) => metadata.uid === rightToRun?.holder?.podUID);
  await scene.until(async () =>
    expect((await scene.get(pods, source?.metadata.name ?? '')).metadata.annotations?.[IN_PROGRESS]).toBe('true'),
  );
  const move = await moveAway();
  await scene.until(async () => {
    const [budget] = await scene.list(disruptionBudgets);
    expect(budget?.spec?.minAvailable).toBe(2);
    expect(budget?.metadata.labels).toEqual({ 'kubevirt.io/migrationName': move });
  });
  await agents.carryOut(move, 'web', node);
  await scene.patch(pods, source?.metadata.name ?? '', { status: { phase: 'Succeeded' } }, 'status');
}

describe('a machine that is driven from node to node', () => {
  it('goes there and back, by one migration each', async () => {
    await drain('node-a');
    await carryOut('node-b');
    await isSettled('node-b');
    await setNode('node-a', { unschedulable: null });
    await drain('node-b');
    await carryOut('node-a');
    await isSettled('node-a');
    await scene.pass(30_000);
    const all = await scene.list(migrations);
    expect(all.map(({ status }) => status?.phase)).toEqual(['Succeeded', 'Succeeded']);
    expect((await scene.get(virtualMachines, 'web')).status?.printableStatus).toBe('Running');
  });

  it('costs the controllers so many writes, from the mark until its target pod waits for a node', async () => {
    scene.writes.length = 0;
    await drain('node-a');
    await agents.targetPod(await moveAway());
    await scene.pass(3000);
    const resourceOf = (write: string): string =>
      /^(\w+) .*\/(?:shop|kubevirt)\/(\w+)(?:\/[^/]+)?(\/status)?$/.exec(write)?.slice(1).filter(Boolean).join(' ') ??
      write;
    expect(scene.writes.map(resourceOf).toSorted()).toEqual([
      'PATCH poddisruptionbudgets',
      // That somebody sees to it, for whoever would ask again.
      'PATCH pods',
      // Pending, and then Scheduling.
      'PATCH virtualmachineinstancemigrations /status',
      'PATCH virtualmachineinstancemigrations /status',
      // The condition EvictionRequested, on the guest and on its machine.
      'PATCH virtualmachineinstances /status',
      'PATCH virtualmachines /status',
      'POST pods',
      'POST virtualmachineinstancemigrations',
      'PUT configmaps',
    ]);
  });

  it('stays when that is called off before it has begun, and nothing is left of it', async () => {
    await drain('node-a');
    const move = await moveAway();
    await agents.targetPod(move);
    await setNode('node-a', { unschedulable: null });
    await scene.until(async () => {
      expect(await scene.list(migrations)).toEqual([]);
      expect(await scene.list(pods)).toHaveLength(1);
    });
    await isSettled('node-a');
  });

  it('is not kept there by what its user asks for, where no node has that', async () => {
    await agents.move('to-zone-b', 'web', { addedNodeSelector: { zone: 'b' } });
    const target = await agents.targetPod('to-zone-b');
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }];
    await scene.patch(pods, target.metadata.name ?? '', { status: { conditions } }, 'status');
    await agents.reaches('to-zone-b', 'Scheduling');
    await drain('node-a');
    const { status } = await agents.reaches('to-zone-b', 'Failed');
    expect(status?.causes?.map(({ cause }) => cause)).toEqual(['User', 'APIEviction']);
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({
        type: 'migrationFailed',
        reason: 'Superseded',
        message: expect.stringMatching(/: APIEviction$/),
      }),
    );
    await carryOut('node-b');
    await isSettled('node-b');
    expect(await scene.list(migrations)).toHaveLength(2);
  });

  it.each(Array.from({ length: 10 }, (_, writes) => writes))(
    'goes although the controllers die after write %d, and others take over',
    async (writes) => {
      scene.writesLeft = writes;
      await drain('node-a');
      await scene.pass(3000);
      await scene.stopControllers();
      scene.writesLeft = Number.POSITIVE_INFINITY;
      await scene.startControllers();
      await carryOut('node-b');
      await isSettled('node-b');
      expect(await scene.list(migrations)).toHaveLength(1);
    },
  );
});
