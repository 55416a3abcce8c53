import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import type { JsonObject } from '../../api/meta.ts';
import {
  kubeVirts,
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../../kube/kubevirt-resources.ts';
import { controllerOf } from '../../kube/owner.ts';
import {
  BUDGET_MIGRATION_LABEL,
  budgetFor,
  budgetName,
  type DisruptionBudget,
} from '../../migration/eviction/disruption-budget.ts';
import { ControlScene } from '../control.fixture.ts';
import { makeMigrations, PlayedAgents } from '../migration/played-agents.fixture.ts';
import { disruptionBudgets as budgets, pods } from '../resources.ts';
import { DisruptionBudgets } from './disruption-budgets.ts';

const scene = new ControlScene(makeMigrations, (context) => new DisruptionBudgets(context));
const agents = new PlayedAgents(scene);
const DOMAIN = { devices: {}, memory: { guest: '64Mi' } };
let name = '';
let count = 0;

beforeAll(async () => {
  await scene.start();
  await agents.addNodes('node-a', 'node-b');
});
afterAll(() => scene.stop());
beforeEach(async () => {
  name = `web-${++count}`;
  await strategyOfCluster(null);
});

async function strategyOfCluster(evictionStrategy: EvictionStrategy | null): Promise<void> {
  const body = { spec: { configuration: { evictionStrategy } } };
  await scene.client.patch(kubeVirts, SYSTEM_NAMESPACE, 'kubevirt', { type: 'merge', body }, scene.signal);
}

function made(evictionStrategy?: EvictionStrategy): Promise<VirtualMachineInstance> {
  const spec = { domain: DOMAIN, ...(evictionStrategy ? { evictionStrategy } : {}) };
  return scene.create(guests, { metadata: { name }, spec });
}

/** A guest that runs on node-a, in one pod. */
async function running(evictionStrategy: EvictionStrategy): Promise<void> {
  await agents.addGuest(name, 'node-a', { spec: { domain: DOMAIN, evictionStrategy } });
  await movable('True');
}

const movable = (status: 'True' | 'False'): Promise<void> =>
  agents.says(name, { conditions: [{ type: 'LiveMigratable', status }] });

/** The budgets of the guest, whichever way they are its own. */
async function all(): Promise<readonly DisruptionBudget[]> {
  return (await scene.list(budgets)).filter((each) => controllerOf(each)?.name === name);
}

async function only(): Promise<DisruptionBudget> {
  const found = await all();
  expect(found).toHaveLength(1);
  return found[0] as DisruptionBudget;
}

const kept = (): Promise<DisruptionBudget> => scene.until(only);

async function none(): Promise<void> {
  await scene.until(async () => expect(await all()).toEqual([]));
}

/** As the disruption controller of the cluster does. */
async function counted(): Promise<void> {
  const { metadata } = await only();
  const status = {
    observedGeneration: metadata.generation,
    disruptionsAllowed: 0,
    currentHealthy: 0,
    desiredHealthy: 0,
    expectedPods: 0,
  };
  await scene.patch(budgets, metadata.name ?? '', { status } as JsonObject, 'status');
}

async function keeps(pods: number, migration?: string): Promise<void> {
  await scene.until(async () => {
    const { spec, metadata } = await only();
    expect(spec?.minAvailable).toBe(pods);
    expect(metadata.labels?.[BUDGET_MIGRATION_LABEL]).toBe(migration);
  });
}

const told = async (): Promise<readonly string[]> =>
  (await scene.events()).filter((event) => event.startsWith(`${name} `)).map((event) => event.slice(name.length + 1));

describe('a disruption budget', () => {
  it.each<EvictionStrategy>(['LiveMigrate', 'External'])('is there with the guest itself: %s', async (strategy) => {
    const guest = await made(strategy);
    const budget = await kept();
    expect(budget.metadata.name).toBe(budgetName(guest));
    expect(controllerOf(budget)).toMatchObject({ kind: 'VirtualMachineInstance', uid: guest.metadata.uid });
    expect(budget.spec).toMatchObject({
      minAvailable: 1,
      selector: { matchLabels: { 'kubevirt.io/created-by': guest.metadata.uid } },
    });
    await scene.until(async () =>
      expect(await told()).toEqual([`Normal SuccessfulCreate: Created PodDisruptionBudget ${budgetName(guest)}`]),
    );
  });

  it('is there for LiveMigrateIfPossible once the guest can move, and only as long', async () => {
    await made('LiveMigrateIfPossible');
    await scene.settle();
    expect(await all()).toEqual([]);
    await movable('True');
    await kept();
    await movable('False');
    await none();
    await scene.until(async () =>
      expect((await told()).join()).toContain('SuccessfulDelete: Deleted PodDisruptionBudget'),
    );
  });

  it('is not there for None, whatever the cluster says', async () => {
    await strategyOfCluster('LiveMigrate');
    await made('None');
    await movable('True');
    await scene.settle();
    expect(await all()).toEqual([]);
  });

  it('follows what the cluster says where the guest says nothing', async () => {
    await made();
    await scene.settle();
    expect(await all()).toEqual([]);
    await strategyOfCluster('LiveMigrate');
    await kept();
    await strategyOfCluster('None');
    await none();
  });

  it.each<EvictionStrategy>(['LiveMigrate', 'LiveMigrateIfPossible', 'External'])(
    'is left alone where nothing is wrong: %s',
    async (strategy) => {
      await running(strategy);
      const { metadata } = await kept();
      scene.writes.length = 0;
      await agents.says(name, { guestOSInfo: { name: 'linux' } });
      await counted();
      await scene.settle();
      expect((await only()).metadata.uid).toBe(metadata.uid);
      expect(scene.writes.filter((write) => write.includes('poddisruptionbudgets'))).toEqual([]);
    },
  );

  it('is made anew when somebody deletes it', async () => {
    await made('LiveMigrate');
    const { metadata } = await kept();
    await scene.delete(budgets, metadata.name ?? '');
    await scene.until(async () => expect((await only()).metadata.uid).not.toBe(metadata.uid));
  });

  it('belongs to its guest again when somebody takes that away', async () => {
    await made('External');
    const { metadata } = await kept();
    await scene.patch(budgets, metadata.name ?? '', { metadata: { ownerReferences: null } });
    await kept();
    expect((await only()).metadata.uid).toBe(metadata.uid);
  });

  it.each<[string, JsonObject]>([
    ['allows what must not be', { minAvailable: 0 }],
    ['counts the other way round', { minAvailable: null, maxUnavailable: 1 }],
    ['selects nothing', { selector: { matchLabels: { 'kubevirt.io/created-by': 'nobody' } } }],
    ['wants one more label', { selector: { matchLabels: { app: 'web' } } }],
    ['lets pods go that are not ready', { unhealthyPodEvictionPolicy: 'AlwaysAllow' }],
    ['selects less', { selector: { matchExpressions: [{ key: 'x', operator: 'Exists' }] } }],
  ])('is corrected when somebody %s', async (_, spec) => {
    const guest = await made('LiveMigrate');
    const before = await kept();
    await scene.patch(budgets, before.metadata.name ?? '', { spec });
    await scene.until(async () => expect((await only()).spec).toEqual(budgetFor(guest, 1).spec));
  });

  it('goes with its guest, and a new guest of the name has its own', async () => {
    await made('LiveMigrate');
    const { metadata } = await kept();
    await scene.delete(guests, name);
    await none();
    await made('LiveMigrate');
    expect((await kept()).metadata.name).not.toBe(metadata.name);
  });

  it.each(['Succeeded', 'Failed'])('goes when the guest has %s', async (phase) => {
    await made('LiveMigrate');
    await kept();
    await agents.says(name, { phase });
    await none();
  });

  it('goes when the guest is being deleted', async () => {
    await scene.create(guests, {
      metadata: { name, finalizers: ['example.com/kept'] },
      spec: { domain: DOMAIN, evictionStrategy: 'LiveMigrate' },
    });
    await kept();
    await scene.delete(guests, name);
    await none();
    await scene.patch(guests, name, { metadata: { finalizers: null } });
  });

  it('replaces those that others made for the guest, which has one at every moment', async () => {
    await scene.stopControllers();
    const guest = await made('LiveMigrate');
    const foreign = budgetFor(guest, 1);
    await scene.create(budgets, {
      ...foreign,
      metadata: { ...foreign.metadata, name: `kubevirt-disruption-budget-${count}` },
    });
    scene.writes.length = 0;
    await scene.startControllers();
    await scene.until(async () => expect((await only()).metadata.name).toBe(budgetName(guest)));
    expect(
      scene.writes.filter((write) => write.includes('poddisruptionbudgets')).map((write) => write.split(' ')[0]),
    ).toEqual(['POST', 'DELETE']);
  });

  it.each<[string, JsonObject]>([['marked', { nodeName: 'node-a', evacuationNodeName: 'node-a' }]])(
    'stays for as long as a guest that cannot move any more is %s',
    async (_, status) => {
      await running('LiveMigrateIfPossible');
      await kept();
      await agents.says(name, status);
      await movable('False');
      await scene.settle();
      await kept();
      await agents.says(name, { evacuationNodeName: null });
      await none();
    },
  );

  it('is not taken away on the word of a late cache', async () => {
    await running('LiveMigrateIfPossible');
    await kept();
    scene.hold('virtualmachineinstances');
    // What the controllers hear of last is that the guest cannot move, when it can again.
    await movable('False');
    await movable('True');
    const before = scene.writes.length;
    scene.release('virtualmachineinstances');
    await scene.settle();
    expect(scene.writes.slice(before).filter((write) => write.startsWith('DELETE'))).toEqual([]);
    await kept();
  });
});

describe('while a guest moves', () => {
  const move = (): string => `move-${count}`;
  /** Nobody keeps slots for the next one. */
  afterEach(async () => {
    await agents.says(name, { phase: 'Failed' });
    await scene.until(async () => expect(await agents.slotHolders()).toEqual([]));
  });
  const expanded = async (): Promise<void> => {
    await agents.move(move(), name);
    await keeps(2, move());
  };

  it('its budget keeps both pods, from before the second is there until one is left', async () => {
    await running('LiveMigrate');
    await kept();
    await counted();
    scene.writes.length = 0;
    await expanded();
    await scene.settle();
    expect(await agents.findTargetPod(move())).toBeUndefined();
    await counted();
    await agents.carryOut(move(), name);
    await keeps(2, move());
    await scene.delete(pods, `virt-launcher-${name}-first`, 0);
    await keeps(1);
    expect(
      scene.writes.filter((write) => write.includes('poddisruptionbudgets')).map((write) => write.split(' ')[0]),
    ).toEqual(['PATCH', 'PATCH']);
    const budget = (await only()).metadata.name;
    await scene.until(async () =>
      expect(await told()).toEqual(
        expect.arrayContaining([
          `Normal SuccessfulUpdate: Expanded PodDisruptionBudget ${budget}`,
          `Normal SuccessfulUpdate: shrank PodDisruptionBudget ${budget}`,
        ]),
      ),
    );
  });

  it('also by the strategy of the cluster', async () => {
    await strategyOfCluster('LiveMigrate');
    await agents.addGuest(name, 'node-a', { spec: { domain: DOMAIN } });
    await movable('True');
    await kept();
    await expanded();
  });

  it('it is made with room for both where there was none', async () => {
    await running('LiveMigrateIfPossible');
    const { metadata } = await kept();
    scene.hold('poddisruptionbudgets');
    await scene.delete(budgets, metadata.name ?? '');
    scene.release('poddisruptionbudgets');
    await expanded();
  });

  it('it shrinks when the migration is gone, or has failed', async () => {
    await running('LiveMigrate');
    await kept();
    await expanded();
    await counted();
    await agents.targetPod(move());
    await scene.delete(migrations, move());
    await scene.until(async () => expect(await scene.find(migrations, move())).toBeUndefined());
    await keeps(1);
  });

  it('it stays as it is while the migration is under way, however few pods are left', async () => {
    await running('LiveMigrate');
    await kept();
    await expanded();
    await counted();
    await agents.runTarget(move());
    await agents.reaches(move(), 'PreparingTarget');
    await scene.delete(pods, `virt-launcher-${name}-first`, 0);
    await scene.settle();
    await keeps(2, move());
  });

  it('it stays as it is while the other pod is there, though nobody has heard of that yet', async () => {
    await running('LiveMigrate');
    await kept();
    await expanded();
    scene.hold('pods');
    await counted();
    const target = await agents.targetPod(move());
    await scene.patch(migrations, move(), { status: { phase: 'Failed' } }, 'status');
    await scene.pass(3000);
    await keeps(2, move());
    await scene.delete(pods, target.metadata.name ?? '', 0);
    scene.release('pods');
    await keeps(1);
  });

  it('people are told where nobody counts it', async () => {
    await running('LiveMigrate');
    await kept();
    await expanded();
    await scene.pass(29_000);
    const warnings = async (): Promise<readonly string[]> =>
      (await scene.events()).filter((event) => event.includes('DisruptionBudgetPending'));
    expect(await warnings()).toEqual([]);
    await scene.pass(2000);
    await scene.until(async () => expect(await warnings()).toHaveLength(1));
    await counted();
    await agents.targetPod(move());
  });

  it('nobody who needs no budget waits for one', async () => {
    await running('None');
    await agents.move(move(), name);
    await agents.targetPod(move());
    expect(await all()).toEqual([]);
  });

  it('it stays for as long as the migration does, also where nobody needs it any more', async () => {
    await running('LiveMigrateIfPossible');
    await kept();
    await expanded();
    await counted();
    await agents.runTarget(move());
    await agents.reaches(move(), 'PreparingTarget');
    await movable('False');
    await scene.settle();
    await keeps(2, move());
    await scene.delete(migrations, move());
    await none();
  });
});
