import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { VirtualMachineInstanceMigration } from '../api/kubevirt/virtual-machine-instance-migration.ts';
import {
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../kube/kubevirt-resources.ts';
import { ControlScene } from './control.fixture.ts';
import { countBudgets } from './disruption-budget/played-counts.fixture.ts';
import { DisruptionBudgets } from './disruption-budget/disruption-budgets.ts';
import { Disruptions } from './disruption/disruptions.ts';
import { Evacuations } from './evacuation/evacuations.ts';
import { MigrationLeftovers } from './migration/migration-leftovers.ts';
import { makeMigrations, PlayedAgents } from './migration/played-agents.fixture.ts';
import { type LauncherPod, pods } from './resources.ts';

/** A guest whose pod is preempted, by all controllers that have a part in it; schedulers and agents are played. */

let scene: ControlScene;
let agents: PlayedAgents;
beforeEach(async () => {
  scene = new ControlScene(
    makeMigrations,
    (context) => new MigrationLeftovers(context),
    (context) => new Disruptions(context),
    (context) => new Evacuations(context),
    (context) => new DisruptionBudgets(context),
    countBudgets(() => scene),
  );
  agents = new PlayedAgents(scene);
  await scene.start();
  await agents.addNodes('node-a', 'node-b');
  const domain = { devices: {}, memory: { guest: '64Mi' } };
  await agents.addGuest('web', 'node-a', { spec: { domain, evictionStrategy: 'LiveMigrate' } });
  await agents.says('web', { conditions: [{ type: 'LiveMigratable', status: 'True' }] });
});
afterEach(() => scene.stop());

const FIRST = 'virt-launcher-web-first';

async function preempt(): Promise<LauncherPod> {
  const condition = { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' };
  await scene.patch(pods, FIRST, { status: { conditions: [condition] } }, 'status');
  await scene.delete(pods, FIRST);
  return scene.get(pods, FIRST);
}

const theOnlyMove = (): Promise<VirtualMachineInstanceMigration> =>
  scene.until(async () => {
    const [move, ...others] = await scene.list(migrations);
    expect(others).toEqual([]);
    if (!move?.status?.causes?.some(({ cause }) => cause === 'Preemption')) throw new Error(JSON.stringify(move));
    return move;
  });

describe('a guest whose pod is preempted', () => {
  it('moves, though its pod is about to end, and is as any other then', async () => {
    const { deletionTimestamp: deadline } = (await preempt()).metadata;
    const { metadata, spec, status } = await theOnlyMove();
    expect(metadata.name).toMatch(/^kubevirt-evacuation-/);
    expect(spec).toMatchObject({ cause: 'Preemption', priority: 'system-critical' });
    expect(status?.causes).toEqual([expect.objectContaining({ cause: 'Preemption', deadline })]);
    expect(status?.effectivePriority).toBe(100);
    await agents.carryOut(metadata.name ?? '', 'web');
    // The agent of the source lets go of its pod.
    await scene.delete(pods, FIRST, 0);
    await scene.until(async () => {
      const guest = (await scene.get(guests, 'web')).status;
      expect(guest).toMatchObject({ phase: 'Running', rightToRun: { holder: { node: 'node-b' } } });
      expect(guest?.evacuationNodeName).toBeUndefined();
      expect(guest?.evacuationCauses).toBeUndefined();
    });
    await scene.pass(5000);
    expect(await scene.list(migrations)).toHaveLength(1);
  });

  it('moves by the migration that its owner asked for, which is as urgent as that from then on', async () => {
    await agents.move('mine', 'web');
    await agents.targetPod('mine');
    const { deletionTimestamp: deadline } = (await preempt()).metadata;
    const { metadata, status } = await theOnlyMove();
    expect(metadata.name).toBe('mine');
    expect(status?.causes).toContainEqual(expect.objectContaining({ cause: 'Preemption', deadline }));
    expect(status?.effectivePriority).toBe(100);
    await agents.carryOut('mine', 'web');
  });

  it('is tried again, soon, while there is time', async () => {
    await preempt();
    const { name = '' } = (await theOnlyMove()).metadata;
    const target = await agents.runTarget(name);
    await agents.reaches(name, 'PreparingTarget');
    await agents.giveUp('web', 'in vain');
    await agents.reaches(name, 'Failed');
    await scene.patch(pods, target.metadata.name ?? '', { status: { phase: 'Failed' } }, 'status');
    await scene.until(async () => expect(await scene.list(migrations)).toHaveLength(2));
    const next = (await scene.list(migrations)).find(({ metadata }) => metadata.name !== name);
    await scene.pass(5000);
    await agents.carryOut(next?.metadata.name ?? '', 'web');
  });

  it('finishes the move that it is in though it could not begin one any more, and nobody writes the same again and again', async () => {
    await scene.patch(guests, 'web', { spec: { evictionStrategy: 'LiveMigrateIfPossible' } });
    await preempt();
    const { name = '' } = (await theOnlyMove()).metadata;
    await agents.runTarget(name);
    await agents.reaches(name, 'PreparingTarget');
    await agents.says('web', { migrationState: { startTimestamp: '2026-01-01T00:00:00Z' } });
    await agents.says('web', { conditions: [{ type: 'LiveMigratable', status: 'False', reason: 'Test' }] });
    await scene.pass(1000);
    const { length: before } = scene.writes;
    for (let turn = 0; turn < 50; turn++) await scene.pass(100);
    expect(scene.writes.slice(before)).toEqual([]);
    const { evacuationCauses } = (await scene.get(guests, 'web')).status ?? {};
    expect(evacuationCauses).toMatchObject([{ cause: 'Preemption' }]);
    expect(await scene.list(migrations)).toHaveLength(1);
  });
});
