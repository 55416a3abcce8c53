import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { JsonObject } from '../../api/meta.ts';
import {
  kubeVirts,
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../../kube/kubevirt-resources.ts';
import { ControlScene } from '../control.fixture.ts';
import { makeMigrations, PlayedAgents } from '../migration/played-agents.fixture.ts';
import { pods } from '../resources.ts';
import { WorkloadUpdates } from './workload-updates.ts';

let scene: ControlScene;
let agents: PlayedAgents;

beforeEach(async () => {
  scene = new ControlScene(
    makeMigrations,
    (context) => new WorkloadUpdates({ ...context, launcherImage: 'launcher:2' }),
  );
  agents = new PlayedAgents(scene);
  await scene.start();
  await agents.addNodes('node-a', 'node-b');
});
afterEach(() => scene.stop());

const CAN = { type: 'LiveMigratable', status: 'True' };
const CANNOT = { type: 'LiveMigratable', status: 'False', reason: 'DisksNotLiveMigratable' };
const PLUG = { type: 'HotVCPUChange', status: 'True' };

async function addGuest(name: string, image = 'launcher:1', ...conditions: readonly JsonObject[]): Promise<void> {
  await agents.addGuest(name);
  await agents.says(name, { launcherContainerImageVersion: image, conditions: [...conditions] });
}

async function configure(spec: JsonObject, status?: JsonObject): Promise<void> {
  const patch = (body: JsonObject, options = {}) =>
    scene.client.patch(kubeVirts, SYSTEM_NAMESPACE, 'kubevirt', { type: 'merge', body }, scene.signal, options);
  await patch({ spec });
  if (status) await patch({ status }, { subresource: 'status' });
}
const allow = (...workloadUpdateMethods: readonly string[]): Promise<void> =>
  configure({ workloadUpdateStrategy: { workloadUpdateMethods: [...workloadUpdateMethods] } });

const all = async (): Promise<readonly VirtualMachineInstanceMigration[]> => scene.list(migrations);
const outdatedCount = async (): Promise<number | undefined> =>
  (await scene.client.get(kubeVirts, SYSTEM_NAMESPACE, 'kubevirt', scene.signal)).status
    ?.outdatedVirtualMachineInstanceWorkloads;

const onlyMigration = (): Promise<VirtualMachineInstanceMigration> =>
  scene.until(async () => {
    const [migration, ...others] = await all();
    expect(others).toEqual([]);
    if (!migration) throw new Error('there is no migration');
    return migration;
  });

describe('outdated launchers', () => {
  it('moves a guest to a new launcher, says so, and counts those that are left', async () => {
    await addGuest('web', 'launcher:1', CAN);
    await scene.until(async () => expect(await outdatedCount()).toBe(1));
    expect(await all()).toEqual([]);
    await allow('LiveMigrate');
    const { metadata, spec } = await onlyMigration();
    expect(spec).toMatchObject({ vmiName: 'web', cause: 'WorkloadUpdate', priority: 'system-critical' });
    await agents.carryOut(metadata.name ?? '', 'web');
    await agents.says('web', { launcherContainerImageVersion: 'launcher:2' });
    await scene.until(async () => expect(await outdatedCount()).toBe(0));
    await scene.pass(5000);
    expect(await all()).toHaveLength(1);
    await scene.until(async () =>
      expect(await scene.events()).toContain(
        `web Normal SuccessfulCreate: Created Migration ${metadata.name} for automated workload update`,
      ),
    );
  });

  it('makes no more than the cluster carries out, and goes on as they end', async () => {
    await configure({ configuration: { migrations: { parallelMigrationsPerCluster: 2 } } });
    for (const name of ['a', 'b', 'c']) await addGuest(name, 'launcher:1', CAN);
    await allow('LiveMigrate');
    await scene.until(async () => expect(await all()).toHaveLength(2));
    await scene.pass(5000);
    expect(await all()).toHaveLength(2);
    const [first] = await all();
    await agents.carryOut(first?.metadata.name ?? '', first?.spec.vmiName ?? '');
    await agents.says(first?.spec.vmiName ?? '', { launcherContainerImageVersion: 'launcher:2' });
    await scene.until(async () => expect(await all()).toHaveLength(3));
  });

  it('does nothing while the control plane is being exchanged', async () => {
    await configure({}, { phase: 'Deploying' });
    await addGuest('web', 'launcher:1', CAN);
    await allow('LiveMigrate');
    await scene.pass(5000);
    expect(await all()).toEqual([]);
    await configure({}, { phase: 'Deployed' });
    await onlyMigration();
  });

  it('tries again after a failure, each time under another name', async () => {
    await addGuest('web', 'launcher:1', CAN);
    await allow('LiveMigrate');
    const { metadata } = await onlyMigration();
    await agents.runTarget(metadata.name ?? '');
    await agents.reaches(metadata.name ?? '', 'PreparingTarget');
    await agents.prepare('web');
    await agents.begin('web');
    await agents.giveUp('web', 'the link broke');
    await agents.reaches(metadata.name ?? '', 'Failed');
    await scene.until(async () => expect(new Set((await all()).map((each) => each.metadata.name)).size).toBe(2));
  });

  it('makes none beside one that is there: that move serves, too', async () => {
    await addGuest('web', 'launcher:1', CAN);
    await agents.move('mine', 'web');
    await allow('LiveMigrate');
    await scene.pass(3000);
    expect((await all()).map(({ metadata }) => metadata.name)).toEqual(['mine']);
  });

  it('evicts those that cannot move, a batch at a time', async () => {
    await addGuest('a', 'launcher:1', CANNOT);
    await addGuest('b', 'launcher:1', CANNOT);
    const strategy = { workloadUpdateMethods: ['Evict'], batchEvictionSize: 1, batchEvictionInterval: '20s' };
    await configure({ workloadUpdateStrategy: strategy });
    const going = async (): Promise<readonly string[]> =>
      (await scene.list(pods)).flatMap(({ metadata }) => (metadata.deletionTimestamp ? [metadata.name ?? ''] : []));
    await scene.until(async () => expect(await going()).toHaveLength(1));
    await scene.pass(10_000);
    expect(await going()).toHaveLength(1);
    await scene.pass(15_000);
    expect(await going()).toHaveLength(2);
    expect(await scene.events()).toContain(
      'a Normal SuccessfulEvict: Evicted Pod virt-launcher-a-first for automated workload update',
    );
  });
});

/** Brings a guest to a pod of the current launcher, of which its status does not say so yet. */
async function comesToCurrentPod(name: string): Promise<void> {
  const { metadata } = await scene.create(pods, {
    metadata: { name: `virt-launcher-${name}-second`, labels: { 'kubevirt.io': 'virt-launcher' } },
    spec: { containers: [{ name: 'compute', image: 'launcher:2' }] },
  });
  const successor = { node: 'node-b', nodeUID: 'uid-of-node-b', podUID: metadata.uid ?? '' };
  await agents.says(name, { rightToRun: { successor } });
  await agents.take(name);
}

describe('a guest whose status is still of an old launcher', () => {
  it.each(['Evict', 'LiveMigrate'])('is left where it is in a current one: %s', async (method) => {
    await addGuest('web', 'launcher:1', method === 'Evict' ? CANNOT : CAN);
    await comesToCurrentPod('web');
    await allow(method);
    await scene.pass(3000);
    expect(await all()).toEqual([]);
    expect((await scene.list(pods)).filter(({ metadata }) => metadata.deletionTimestamp)).toEqual([]);
    expect(await outdatedCount()).toBe(1);
  });

  it('is not evicted where nobody had heard yet that it moved', async () => {
    await addGuest('web', 'launcher:1', CANNOT);
    scene.hold('virtualmachineinstances');
    await comesToCurrentPod('web');
    await allow('Evict');
    await scene.pass(3000);
    scene.release('virtualmachineinstances');
    await scene.pass(3000);
    expect((await scene.list(pods)).filter(({ metadata }) => metadata.deletionTimestamp)).toEqual([]);
  });
});

describe('changes of guests', () => {
  it('moves a guest for a change, and takes that back with the change', async () => {
    await allow('LiveMigrate');
    await addGuest('web', 'launcher:2', CAN, PLUG);
    const { metadata, spec } = await onlyMigration();
    expect(spec).toMatchObject({ cause: 'WorkloadUpdate', priority: 'user-triggered' });
    await agents.says('web', { conditions: [CAN] });
    await scene.until(async () => expect((await all()).every((each) => each.metadata.deletionTimestamp)).toBe(true));
    await scene.until(async () =>
      expect(await scene.events()).toContain(
        `web Normal SuccessfulChangeAbortion: Deleted Migration ${metadata.name}: the change was taken back`,
      ),
    );
  });

  it('lets a guest arrive that is about to run at its target, whatever became of the change', async () => {
    await allow('LiveMigrate');
    await addGuest('web', 'launcher:2', CAN, PLUG);
    const name = (await onlyMigration()).metadata.name ?? '';
    await agents.runTarget(name);
    await agents.reaches(name, 'PreparingTarget');
    await agents.prepare('web');
    await agents.begin('web');
    await agents.says('web', { migrationState: { targetNodeDomainReadyTimestamp: '2026-01-01T00:00:00Z' } });
    await agents.says('web', { conditions: [CAN] });
    await scene.pass(3000);
    expect((await scene.get(migrations, name)).metadata.deletionTimestamp).toBeUndefined();
  });

  it('is not misled by a late cache into moving a guest whose change was taken back', async () => {
    await allow('LiveMigrate');
    await addGuest('web', 'launcher:2', CAN);
    scene.hold('virtualmachineinstances');
    await agents.says('web', { conditions: [CAN, PLUG] });
    await agents.says('web', { conditions: [CAN] });
    scene.release('virtualmachineinstances');
    await scene.pass(3000);
    expect(await all()).toEqual([]);
    expect((await scene.get(guests, 'web')).status?.phase).toBe('Running');
  });

  it('does not move a guest again whose status is still of the pod that it has left', async () => {
    await allow('LiveMigrate');
    await addGuest('web', 'launcher:2', CAN, PLUG);
    const name = (await onlyMigration()).metadata.name ?? '';
    await agents.carryOut(name, 'web');
    await agents.reaches(name, 'Succeeded');
    await scene.pass(3000);
    expect((await scene.get(guests, 'web')).status?.conditions).toContainEqual(expect.objectContaining(PLUG));
    expect(await all()).toHaveLength(1);
  });

  it('carries on where the answer to a deletion was lost', async () => {
    await allow('LiveMigrate');
    await addGuest('web', 'launcher:2', CAN, PLUG);
    await onlyMigration();
    scene.loseAnswerOf = /DELETE .*virtualmachineinstancemigrations/;
    await agents.says('web', { conditions: [CAN] });
    await scene.until(async () => expect((await all()).every((each) => each.metadata.deletionTimestamp)).toBe(true));
    expect(scene.loseAnswerOf).toBeUndefined();
  });
});
