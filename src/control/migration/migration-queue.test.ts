import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { MigrationPhase } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { MIGRATION_UID_LABEL, SYSTEM_NAMESPACE } from '../../api/kubevirt/well-known.ts';
import {
  kubeVirts,
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../../kube/kubevirt-resources.ts';
import { usageOf } from '../../migration/slots/ledger.ts';
import { ControlScene } from '../control.fixture.ts';
import { pods } from '../resources.ts';
import { configMaps, LEDGER_NAME } from './ledger-object.ts';
import { makeMigrations, PlayedAgents } from './played-agents.fixture.ts';

/** Many migrations at once: who goes, who waits, and what it costs. */

let scene: ControlScene;
let agents: PlayedAgents;

async function start(leaders = 1): Promise<void> {
  scene = new ControlScene(...Array.from({ length: leaders }, () => makeMigrations));
  agents = new PlayedAgents(scene);
  await scene.start();
}

afterEach(() => scene.stop());

const configure = (configuration: object): Promise<unknown> =>
  scene.client.patch(
    kubeVirts,
    SYSTEM_NAMESPACE,
    'kubevirt',
    { type: 'merge', body: { spec: { configuration } } } as never,
    scene.signal,
  );

/** Names of the migrations in a phase, in order. */
async function inPhase(phase: string): Promise<string[]> {
  const all = await scene.list(migrations);
  return all.flatMap(({ metadata, status }) => (status?.phase === phase ? [metadata.name ?? ''] : [])).toSorted();
}

/** Never more than the limits, in the ledger and in what has begun. */
async function expectWithinLimits(): Promise<void> {
  const ledger = await agents.ledger();
  const usage = usageOf(ledger);
  expect(usage.excessOver(usageOf({ ...ledger, holders: new Map() }))).toEqual([]);
  const begun = (await scene.list(guests)).flatMap(({ status }) => {
    const state = status?.migrationState;
    return state && state.completed !== true ? [state] : [];
  });
  const { perCluster, outboundPerNode, inboundPerNode } = ledger.limits;
  expect(begun.length).toBeLessThanOrEqual(perCluster);
  const count = (name: string | undefined, of: 'sourceNode' | 'targetNode') =>
    begun.filter((state) => state[of] === name).length;
  for (const { sourceNode, targetNode } of begun) {
    expect(count(sourceNode, 'sourceNode')).toBeLessThanOrEqual(outboundPerNode);
    expect(count(targetNode, 'targetNode')).toBeLessThanOrEqual(inboundPerNode);
  }
}

/** One round of everything that scheduler and agents have to do; true when nothing was left to do. */
async function playRound(targetOf: (guest: string) => string): Promise<boolean> {
  let isIdle = true;
  const unbound = (await scene.list(pods)).filter(({ spec }) => !spec?.nodeName);
  const podOf = new Map(unbound.map(({ metadata }) => [metadata.labels?.[MIGRATION_UID_LABEL], metadata.name ?? '']));
  for (const { metadata, spec, status } of await scene.list(migrations)) {
    const guest = spec.vmName ?? '';
    const phase = status?.phase ?? '';
    if (phase === 'Succeeded' || phase === 'Failed') continue;
    isIdle = false;
    const pod = podOf.get(metadata.uid);
    if (pod !== undefined) {
      await agents.bind(pod, targetOf(guest));
      await agents.start(pod);
    }
    if (phase === 'PreparingTarget') await agents.prepare(guest);
    if (phase === 'TargetReady') await agents.begin(guest);
    if (phase === 'Running') await agents.take(guest);
  }
  return isIdle;
}

describe('fifty migrations at the same moment', () => {
  beforeEach(async () => {
    await start();
    await agents.addNodes(...Array.from({ length: 6 }, (_, index) => `node-${index}`));
  });

  it('all get there, and never are there more than the limits allow', { timeout: 60_000 }, async () => {
    const names = Array.from({ length: 50 }, (_, index) => `web-${index}`);
    for (const [index, name] of names.entries()) await agents.addGuest(name, `node-${index % 3}`);
    await Promise.all(names.map((name) => agents.move(`move-${name}`, name)));
    // Three nodes send; each guest goes to one of the other three.
    const targetOf = (guest: string): string => `node-${3 + (Number(guest.split('-')[1]) % 3)}`;
    for (let round = 0; !(await playRound(targetOf)); round++) {
      expect(round).toBeLessThan(500);
      // News of moves are looked at together.
      await scene.pass(100);
      await expectWithinLimits();
    }
    expect(await inPhase('Succeeded')).toHaveLength(50);
    await scene.until(async () => expect(await agents.slotHolders()).toEqual([]));
  });
});

describe('those that wait', () => {
  beforeEach(async () => {
    await start();
    await agents.addNodes('node-a', 'node-b', 'node-c', 'node-d');
  });

  it('cost nothing', async () => {
    await configure({ migrations: { parallelMigrationsPerCluster: 0 } });
    for (let index = 0; index < 20; index++) {
      await agents.addGuest(`web-${index}`);
      await agents.move(`move-${index}`, `web-${index}`);
    }
    await scene.until(async () => expect(await inPhase('Pending')).toHaveLength(20));
    await scene.settle();
    scene.writes.length = 0;
    await scene.pass(30 * 60_000, 60_000);
    expect(scene.writes).toEqual([]);
  });

  it('do not wait for one that fits nowhere, which goes on once there is a node for it', async () => {
    await configure({ migrations: { parallelMigrationsPerCluster: 1, parallelOutboundMigrationsPerNode: 9 } });
    await agents.addGuest('homeless');
    await agents.addGuest('web');
    const elsewhere = { priority: 'system-critical', addedNodeSelector: { zone: 'moon' } };
    await agents.move('move-homeless', 'homeless', elsewhere);
    await agents.move('move-web', 'web');
    await agents.reaches('move-homeless', 'Scheduling');
    const { metadata } = await agents.targetPod('move-homeless');
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }];
    await scene.patch(pods, metadata.name ?? '', { status: { conditions } }, 'status');
    await agents.carryOut('move-web', 'web');
    expect(await inPhase('Scheduling')).toEqual(['move-homeless']);
    await agents.carryOut('move-homeless', 'homeless');
    await scene.until(async () => expect(await agents.slotHolders()).toEqual([]));
  });

  it('go by class, then by age, as slots get free, whenever they came', async () => {
    await configure({ migrations: { parallelMigrationsPerCluster: 1, parallelOutboundMigrationsPerNode: 9 } });
    await agents.addGuest('busy');
    await agents.move('move-busy', 'busy');
    await agents.reaches('move-busy', 'Scheduling');
    const classes = [undefined, 'system-maintenance', 'user-triggered', 'system-critical', 'user-triggered'];
    for (const [index, priority] of classes.entries()) {
      await agents.addGuest(`web-${index}`);
      await agents.move(`move-${index}`, `web-${index}`, priority === undefined ? {} : { priority });
      await scene.pass(2000);
    }
    await agents.carryOut('move-busy', 'busy');
    for (const next of [3, 2, 4, 1, 0]) {
      await agents.reaches(`move-${next}`, 'Scheduling');
      expect(await inPhase('Scheduling')).toEqual([`move-${next}`]);
      await agents.carryOut(`move-${next}`, `web-${next}`);
    }
    const { status } = await scene.get(migrations, 'move-3');
    expect(status).toMatchObject({ effectivePriority: 100, causes: [{ cause: 'User', priority: 100 }] });
  });

  it('go by age alone where priorities are off', async () => {
    await configure({
      migrations: { parallelMigrationsPerCluster: 1, parallelOutboundMigrationsPerNode: 9 },
      developerConfiguration: { disabledFeatureGates: ['MigrationPriorityQueue'] },
    });
    await agents.addGuest('busy');
    await agents.move('move-busy', 'busy');
    await agents.reaches('move-busy', 'Scheduling');
    for (const [index, priority] of [undefined, 'system-critical'].entries()) {
      await agents.addGuest(`web-${index}`);
      await agents.move(`move-${index}`, `web-${index}`, priority === undefined ? {} : { priority });
      await scene.pass(2000);
    }
    await agents.carryOut('move-busy', 'busy');
    await agents.reaches('move-0', 'Scheduling');
    expect(await inPhase('Pending')).toEqual(['move-1']);
  });

  it('are lifted by what drives their guests off their nodes, for as long as it does', async () => {
    await configure({ migrations: { parallelMigrationsPerCluster: 1, parallelOutboundMigrationsPerNode: 9 } });
    await agents.addGuest('busy');
    await agents.move('move-busy', 'busy');
    await agents.reaches('move-busy', 'Scheduling');
    for (const index of [0, 1]) {
      await agents.addGuest(`web-${index}`);
      await agents.move(`move-${index}`, `web-${index}`, index === 0 ? { priority: 'user-triggered' } : {});
    }
    await agents.reaches('move-1', 'Pending');
    const isWorth = (effectivePriority: number, ...causes: readonly string[]): Promise<void> =>
      scene.until(async () => {
        const { status } = await scene.get(migrations, 'move-1');
        expect(status?.causes?.map(({ cause }) => cause)).toEqual(['User', ...causes]);
        expect(status?.effectivePriority).toBe(effectivePriority);
      });
    const evacuationCauses = [{ cause: 'APIEviction', untilUncordon: true }];
    await agents.says('web-1', { evacuationNodeName: 'node-a', evacuationCauses });
    await isWorth(100, 'APIEviction');
    await agents.says('web-1', { evacuationNodeName: null, evacuationCauses: null });
    await isWorth(0);
    await agents.says('web-1', { evacuationNodeName: 'node-a', evacuationCauses });
    await isWorth(100, 'APIEviction');
    await agents.carryOut('move-busy', 'busy');
    await agents.reaches('move-1', 'Scheduling');
    expect(await inPhase('Pending')).toEqual(['move-0']);
  });

  it('for a target node that is full give their other slots back', async () => {
    await configure({
      migrations: {
        parallelMigrationsPerCluster: 2,
        parallelOutboundMigrationsPerNode: 9,
        parallelInboundMigrationsPerNode: 1,
      },
    });
    for (const name of ['one', 'two', 'three']) {
      await agents.addGuest(name);
      await agents.move(`move-${name}`, name);
      await scene.pass(2000);
    }
    await agents.runTarget('move-one', 'node-b');
    await agents.reaches('move-one', 'PreparingTarget');
    await agents.runTarget('move-two', 'node-b');
    await agents.reaches('move-two', 'Scheduled');
    // Its place is taken by the next one, which goes elsewhere.
    await agents.runTarget('move-three', 'node-c');
    await agents.reaches('move-three', 'PreparingTarget');
    await agents.reaches('move-two', 'Scheduled');
    await agents.finish('move-one', 'one');
    await agents.reaches('move-two', 'PreparingTarget');
  });

  it('because their guest does not run yet stand in nobody’s way', async () => {
    await configure({ migrations: { parallelMigrationsPerCluster: 1 } });
    await agents.addGuest('sleepy');
    await agents.says('sleepy', { phase: 'Scheduled' });
    await agents.move('move-sleepy', 'sleepy');
    await agents.reaches('move-sleepy', 'Pending');
    await agents.addGuest('web');
    await agents.move('move-web', 'web');
    await agents.reaches('move-web', 'Scheduling');
    await agents.carryOut('move-web', 'web');
    await agents.says('sleepy', { phase: 'Running' });
    await agents.reaches('move-sleepy', 'Scheduling');
  });

  it('because others of theirs failed wait longer each time, if the cluster asks for them', async () => {
    const annotations = { 'kubevirt.io/evacuationMigration': 'node-a' };
    await agents.addGuest('web');
    for (const [index, waitMs] of [0, 20_000, 40_000].entries()) {
      const name = `move-${index}`;
      await agents.move(name, 'web', {}, { annotations });
      if (waitMs > 0) {
        await agents.reaches(name, 'Pending');
        await scene.pass(waitMs - 5000);
        await agents.reaches(name, 'Pending');
        await scene.until(async () => expect((await scene.events()).join()).toContain('MigrationBackoff'));
        await scene.pass(8000);
      }
      const { metadata } = await agents.targetPod(name);
      await agents.reaches(name, 'Scheduling');
      await scene.patch(pods, metadata.name ?? '', { status: { phase: 'Failed' } }, 'status');
      await agents.reaches(name, 'Failed');
    }
    await agents.move('asked', 'web');
    await agents.reaches('asked', 'Scheduling');
  });
});

describe('those that are over', () => {
  beforeEach(async () => {
    await start();
    await agents.addNodes('node-a', 'node-b');
    await agents.addGuest('web');
  });

  it('are kept, the newest of them, and the others go with their pods', async () => {
    await configure({ migrations: { finishedMigrationsKept: 2 } });
    const failed: string[] = [];
    for (let index = 0; index < 4; index++) {
      await agents.run(`move-${index}`, 'web');
      failed.push((await agents.state('web')).targetPod ?? '');
      await agents.giveUp('web', 'in vain');
      await agents.reaches(`move-${index}`, 'Failed');
      await scene.patch(pods, failed[index] ?? '', { status: { phase: 'Failed' } }, 'status');
      await scene.pass(2000);
    }
    await scene.until(async () => expect(await inPhase('Failed')).toEqual(['move-2', 'move-3']));
    const left = (await scene.list(pods)).map(({ metadata }) => metadata.name);
    expect(failed.map((name) => left.includes(name))).toEqual([false, false, true, true]);
  });

  it('are kept, the five newest, where nobody says how many', async () => {
    for (let index = 0; index < 7; index++) {
      await agents.run(`move-${index}`, 'web');
      await agents.giveUp('web', 'in vain');
      await agents.reaches(`move-${index}`, 'Failed');
      await scene.pass(2000);
    }
    await scene.pass(60_000);
    expect(await inPhase('Failed')).toEqual(['move-2', 'move-3', 'move-4', 'move-5', 'move-6']);
  });

  /** How a migration gets into each phase in which it is not over, from the moment in which it is asked for. */
  const UNFINISHED: readonly [phase: MigrationPhase, limits: object, reach: () => Promise<unknown>][] = [
    ['Pending', { parallelMigrationsPerCluster: 0 }, () => Promise.resolve()],
    ['Scheduling', {}, () => agents.targetPod('move')],
    [
      'Scheduled',
      { parallelInboundMigrationsPerNode: 1 },
      async () => {
        await agents.addGuest('other');
        await agents.run('move-other', 'other');
        await agents.runTarget('move');
      },
    ],
    ['PreparingTarget', {}, () => agents.runTarget('move')],
    [
      'TargetReady',
      {},
      async () => {
        await agents.runTarget('move');
        await agents.reaches('move', 'PreparingTarget');
        await agents.prepare('web');
      },
    ],
  ];

  it.each(UNFINISHED)('go alone: one that is %s stays', async (phase, limits, reach) => {
    await configure({ migrations: { finishedMigrationsKept: 0, ...limits } });
    await agents.move('move', 'web');
    await reach();
    await expectSpared(phase);
  });

  it('go alone: one that is Running stays', async () => {
    await configure({ migrations: { finishedMigrationsKept: 0 } });
    await agents.run('move', 'web');
    await expectSpared('Running');
  });

  /** Another one of the guest, which is over as soon as it is seen, goes; the one that is not over does not. */
  async function expectSpared(phase: MigrationPhase): Promise<void> {
    await agents.reaches('move', phase);
    await scene.pass(2000);
    await agents.move('rival', 'web');
    await scene.until(async () => {
      const own = (await scene.list(migrations)).filter(({ spec }) => spec.vmName === 'web');
      expect(own.map(({ metadata }) => metadata.name)).toEqual(['move']);
    });
    await scene.pass(5000);
    expect((await agents.reaches('move', phase)).metadata.deletionTimestamp).toBeUndefined();
  }

  it('go also where deleting their pods failed at first', async () => {
    await configure({ migrations: { finishedMigrationsKept: 0 } });
    await agents.run('move', 'web');
    scene.loseAnswerOf = /DELETE .*\/pods\//;
    await agents.giveUp('web', 'in vain');
    await scene.until(async () => expect(await scene.list(migrations)).toEqual([]));
    expect(scene.loseAnswerOf).toBeUndefined();
  });

  it('leave no pod of a guest that has moved, and never the one that it runs in', async () => {
    await configure({ migrations: { finishedMigrationsKept: 0 } });
    const first = 'virt-launcher-web-first';
    await agents.run('move-there', 'web');
    const { targetPod = '' } = await agents.state('web');
    await agents.take('web');
    await scene.until(async () => expect(await scene.list(migrations)).toEqual([]));
    await scene.until(async () => {
      const left = (await scene.list(pods)).filter(({ metadata }) => metadata.deletionTimestamp === undefined);
      expect(left.map(({ metadata }) => metadata.name)).toEqual([targetPod]);
      expect(left).not.toContain(first);
    });
  });
});

describe('leaders', () => {
  it('who all think they lead move each guest once, within the limits', { timeout: 60_000 }, async () => {
    await start(2);
    await agents.addNodes('node-0', 'node-1', 'node-2', 'node-3');
    const names = Array.from({ length: 12 }, (_, index) => `web-${index}`);
    for (const [index, name] of names.entries()) await agents.addGuest(name, `node-${index % 2}`);
    await Promise.all(names.map((name) => agents.move(`move-${name}`, name)));
    for (let round = 0; !(await playRound((guest) => `node-${2 + (Number(guest.split('-')[1]) % 2)}`)); round++) {
      expect(round).toBeLessThan(500);
      await scene.pass(1000);
      await expectWithinLimits();
    }
    expect(await inPhase('Succeeded')).toHaveLength(12);
    const epochs = (await scene.list(guests)).map(({ status }) => status?.rightToRun?.epoch);
    expect(new Set(epochs)).toEqual(new Set([2]));
  });

  it('who die after any of their writes leave a migration that another one carries on', {
    timeout: 60_000,
  }, async () => {
    await start();
    await agents.addNodes('node-a', 'node-b');
    await agents.addGuest('web');
    await agents.move('move', 'web');
    const targetOf = (): string => 'node-b';
    let deaths = 0;
    for (; !(await playRound(targetOf)); deaths++) {
      expect(deaths).toBeLessThan(60);
      // Each of them makes one write, hears no answer, and is gone.
      scene.writesLeft = 1;
      await scene.pass(2000);
      await scene.stopControllers();
      await scene.startControllers();
    }
    scene.writesLeft = Number.POSITIVE_INFINITY;
    expect(deaths).toBeGreaterThan(5);
    await agents.reaches('move', 'Succeeded');
    await scene.until(async () => expect(await agents.slotHolders()).toEqual([]));
    expect((await scene.get(migrations, 'move')).metadata.finalizers).toBeUndefined();
  });

  it('find a ledger anew that somebody deleted, and forget nobody who has begun', async () => {
    await start();
    await agents.addNodes('node-a', 'node-b');
    await configure({ migrations: { parallelMigrationsPerCluster: 1 } });
    await agents.addGuest('one');
    await agents.addGuest('two');
    await agents.run('move-one', 'one');
    await agents.move('move-two', 'two');
    await agents.reaches('move-two', 'Pending');
    await scene.stopControllers();
    await scene.client.delete(configMaps, SYSTEM_NAMESPACE, LEDGER_NAME, scene.signal);
    await scene.startControllers();
    await scene.until(async () => expect(await agents.slotHolders()).toEqual(['move-one']));
    await scene.pass(5000);
    await agents.reaches('move-two', 'Pending');
    await agents.take('one');
    await agents.reaches('move-two', 'Scheduling');
  });
});
