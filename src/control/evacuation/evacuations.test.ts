import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import type { VirtualMachineInstanceMigration } from '../../api/kubevirt/virtual-machine-instance-migration.ts';
import { formatTime, type JsonObject } from '../../api/meta.ts';
import {
  kubeVirts,
  virtualMachineInstanceMigrations as migrations,
  virtualMachineInstances as guests,
} from '../../kube/kubevirt-resources.ts';
import type { Node } from '../../migration/fit/objects.ts';
import { ControlScene, NAMESPACE } from '../control.fixture.ts';
import { countBudgets } from '../disruption-budget/played-counts.fixture.ts';
import { makeMigrations, PlayedAgents } from '../migration/played-agents.fixture.ts';
import { nodes, pods } from '../resources.ts';
import { DrainReports } from './drain-reports.ts';
import { DRAIN_TAINT } from './evacuation.fixture.ts';
import { Evacuations } from './evacuations.ts';

/**
 * Guests that have to leave their nodes. The cases of KubeVirt's evacuation_test.go are named as there, those that it had
 * before its webhook kept everybody in line included.
 */

let scene: ControlScene;
let agents: PlayedAgents;

beforeEach(async () => {
  scene = new ControlScene(
    makeMigrations,
    countBudgets(() => scene),
    (context) => new Evacuations(context),
    (context) => new DrainReports(context),
  );
  agents = new PlayedAgents(scene);
  await scene.start();
  await agents.addNodes('node-a', 'node-b', 'node-c');
});
afterEach(() => scene.stop());

const MIGRATABLE = { type: 'LiveMigratable', status: 'True' };
const STUCK = { type: 'LiveMigratable', status: 'False', reason: 'DisksNotLiveMigratable', message: 'disk-a is local' };
const BY_DRAIN = { cause: 'APIEviction', untilUncordon: true };

async function addGuest(
  name: string,
  evictionStrategy: EvictionStrategy | undefined = 'LiveMigrate',
  { node = 'node-a', condition = MIGRATABLE }: { node?: string; condition?: JsonObject } = {},
): Promise<void> {
  const domain = { devices: {}, memory: { guest: '64Mi' } };
  await agents.addGuest(name, node, { spec: { domain, ...(evictionStrategy ? { evictionStrategy } : {}) } });
  await agents.says(name, { conditions: [condition] });
}

/** What the eviction webhook writes. */
const mark = (guest: string, ...evacuationCauses: readonly JsonObject[]): Promise<void> =>
  agents.says(guest, { evacuationNodeName: 'node-a', evacuationCauses: [...evacuationCauses] });

const setNode = async (name: string, spec: JsonObject): Promise<void> =>
  void (await scene.client.patch(nodes, '', name, { type: 'merge', body: { spec } }, scene.signal));
const cordon = (name = 'node-a'): Promise<void> => setNode(name, { unschedulable: true });
const uncordon = (name = 'node-a'): Promise<void> => setNode(name, { unschedulable: null });
const taint = (name = 'node-a'): Promise<void> => setNode(name, { taints: [DRAIN_TAINT] });

async function configure(configuration: JsonObject): Promise<void> {
  const [kubeVirt] = (await scene.client.list(kubeVirts, {}, scene.signal)).items;
  const { namespace = '', name = '' } = kubeVirt?.metadata ?? {};
  const patch = { type: 'merge', body: { spec: { configuration } } } as const;
  await scene.client.patch(kubeVirts, namespace, name, patch, scene.signal);
  await scene.settle();
}

const movesOf = async (guest: string): Promise<readonly VirtualMachineInstanceMigration[]> =>
  (await scene.list(migrations)).filter(({ spec }) => spec.vmName === guest);

/** The one migration of a guest, once there is one. */
const moveOf = (guest: string): Promise<VirtualMachineInstanceMigration> =>
  scene.until(async () => {
    const [move, ...others] = await movesOf(guest);
    expect(others).toEqual([]);
    if (!move) throw new Error(`${guest} has no migration`);
    return move;
  });

const nameOf = ({ metadata }: VirtualMachineInstanceMigration): string => metadata.name ?? '';

/** The mark of a guest: its node and the names of its causes. */
async function markOf(guest: string): Promise<readonly (string | undefined)[]> {
  const { evacuationNodeName, evacuationCauses = [] } = (await scene.get(guests, guest)).status ?? {};
  return [evacuationNodeName, ...evacuationCauses.map(({ cause }) => cause)];
}

const staysUnmoved = async (...names: readonly string[]): Promise<void> => {
  await scene.pass(3000);
  for (const name of names) expect(await movesOf(name)).toEqual([]);
};

const toldOf = async (name: string): Promise<readonly string[]> =>
  (await scene.events()).filter((event) => event.startsWith(`${name} `)).map((event) => event.slice(name.length + 1));

const blockOf = async (name = 'node-a') =>
  (await scene.get(nodes, name)).status?.conditions?.find(({ type }) => type === 'DrainBlocked');

const isBlocked = (message: RegExp, name = 'node-a'): Promise<void> =>
  scene.until(async () => {
    const { status, message: said } = (await blockOf(name)) ?? {};
    expect(status).toBe('True');
    expect(said).toMatch(message);
  });

describe('a marked guest', () => {
  it('should evict the VMI: it gets one migration, and is not marked any more where it arrives', async () => {
    await addGuest('web');
    await mark('web', { cause: 'APIEviction', since: '2026-01-01T00:00:00Z' });
    const move = await moveOf('web');
    expect(move.metadata.annotations).toEqual({ 'kubevirt.io/evacuationMigration': 'node-a' });
    expect(move.spec).toMatchObject({ vmiName: 'web', priority: 'system-critical', cause: 'APIEviction' });
    await scene.until(async () =>
      expect(await toldOf('web')).toContain(`Normal SuccessfulCreate: Created Migration ${nameOf(move)}`),
    );
    await agents.carryOut(nameOf(move), 'web');
    await scene.until(async () => expect(await markOf('web')).toEqual([undefined]));
    expect((await moveOf('web')).status).toMatchObject({ phase: 'Succeeded', causes: [{ cause: 'APIEviction' }] });
    await scene.pass(5000);
    await moveOf('web');
  });

  it('should get system-maintenance from the descheduler', async () => {
    await addGuest('web');
    await mark('web', { cause: 'Descheduler' });
    expect((await moveOf('web')).spec).toMatchObject({ priority: 'system-maintenance', cause: 'Descheduler' });
    const source = async () => (await scene.get(guests, 'web')).metadata.annotations?.['kubevirt.io/eviction-source'];
    await scene.until(async () => expect(await source()).toBe('descheduler'));
    await agents.carryOut(nameOf(await moveOf('web')), 'web');
    await scene.until(async () => expect(await source()).toBeUndefined());
  });

  it('should do nothing when it is on another node than the one that it is marked for', async () => {
    await addGuest('web', 'LiveMigrate', { node: 'node-b' });
    await mark('web', { cause: 'APIEviction' });
    await staysUnmoved('web');
    expect(await markOf('web')).toEqual([undefined]);
  });

  it('should not create a duplicate: a migration of a user serves as well', async () => {
    await addGuest('web');
    await agents.move('by-hand', 'web');
    await mark('web', { cause: 'APIEviction' });
    await scene.until(async () =>
      expect((await scene.get(migrations, 'by-hand')).status).toMatchObject({
        causes: [{ cause: 'User' }, { cause: 'APIEviction', priority: 100 }],
        effectivePriority: 100,
      }),
    );
    await agents.carryOut('by-hand', 'web');
    await scene.until(async () => expect(await markOf('web')).toEqual([undefined]));
    expect((await moveOf('web')).metadata.name).toBe('by-hand');
  });

  it('should evict with a single pod, and not with multiple pods', async () => {
    await addGuest('web');
    const { uid = '' } = (await scene.get(guests, 'web')).metadata;
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'web', uid, controller: true };
    const spec = { containers: [{ name: 'compute', image: 'launcher:1' }] };
    await scene.create(pods, { metadata: { name: 'second', ownerReferences: [owner] }, spec });
    await mark('web', { cause: 'APIEviction' });
    await staysUnmoved('web');
    await scene.delete(pods, 'second', 0);
    await moveOf('web');
  });

  it('should honour the cluster-wide strategy, and who opted out of it', async () => {
    await configure({ evictionStrategy: 'LiveMigrate' });
    for (const [name, strategy] of [
      ['follows', undefined],
      ['opted-out', 'None'],
    ] as const) {
      const domain = { devices: {}, memory: { guest: '64Mi' } };
      await agents.addGuest(name, 'node-a', { spec: { domain, ...(strategy ? { evictionStrategy: strategy } : {}) } });
      await agents.says(name, { conditions: [MIGRATABLE] });
      await mark(name, { cause: 'APIEviction' });
    }
    await moveOf('follows');
    await staysUnmoved('opted-out');
    expect(await markOf('opted-out')).toEqual([undefined]);
  });

  it('should create migrations for all of them, of which no more run than may', async () => {
    const names = Array.from({ length: 7 }, (_, index) => `web-${index}`);
    for (const name of names) await addGuest(name);
    for (const name of names) await mark(name, { cause: 'APIEviction' });
    for (const name of names) await moveOf(name);
    const inPhase = async (phase: string) =>
      (await scene.list(migrations)).filter(({ status }) => status?.phase === phase).length;
    // KubeVirt's limit per node; those that wait do not count as running.
    await scene.until(async () => expect([await inPhase('Scheduling'), await inPhase('Pending')]).toEqual([2, 5]));
    const [first] = (await scene.list(migrations)).filter(({ status }) => status?.phase === 'Scheduling');
    await agents.carryOut(nameOf(first!), first!.spec.vmName ?? '');
    await scene.until(async () => expect([await inPhase('Scheduling'), await inPhase('Pending')]).toEqual([2, 4]));
  });

  it('is External, and left alone for whoever manages it', async () => {
    await addGuest('web', 'External');
    await mark('web', { cause: 'APIEviction' });
    await staysUnmoved('web');
    expect(await markOf('web')).toEqual(['node-a', 'APIEviction']);
  });

  it('should record a warning on a not migratable VMI', async () => {
    await addGuest('web', 'LiveMigrate', { condition: STUCK });
    await mark('web', { cause: 'APIEviction' });
    await scene.until(async () =>
      expect(await toldOf('web')).toEqual([
        'Warning FailedCreate: VirtualMachineInstance is not migrateable: DisksNotLiveMigratable: disk-a is local',
      ]),
    );
    await staysUnmoved('web');
    await agents.says('web', { conditions: [MIGRATABLE] });
    await moveOf('web');
  });

  it('that must move only if it can loses its mark when it cannot any more', async () => {
    await addGuest('web', 'LiveMigrateIfPossible', { condition: STUCK });
    await mark('web', { cause: 'APIEviction' });
    await scene.until(async () => expect(await markOf('web')).toEqual([undefined]));
    await staysUnmoved('web');
  });

  it('whose migration failed is tried again, later', async () => {
    await addGuest('web');
    await mark('web', { cause: 'APIEviction' });
    const first = await moveOf('web');
    await agents.runTarget(nameOf(first));
    await agents.reaches(nameOf(first), 'PreparingTarget');
    await agents.prepare('web');
    await agents.begin('web');
    await agents.reaches(nameOf(first), 'Running');
    await agents.giveUp('web', 'the link broke');
    await agents.reaches(nameOf(first), 'Failed');
    const stale = (await agents.findTargetPod(nameOf(first)))?.metadata.name;
    if (stale !== undefined) await scene.delete(pods, stale, 0);
    const second = await scene.until(async () => {
      const found = (await movesOf('web')).find((each) => nameOf(each) !== nameOf(first));
      if (!found) throw new Error('there is no second try');
      return found;
    });
    await scene.until(async () =>
      expect(await toldOf('web')).toContain(`Warning MigrationBackoff: backoff migrating vmi ${NAMESPACE}/web`),
    );
    expect((await scene.get(migrations, nameOf(second))).status?.phase).toBe('Pending');
    await scene.pass(25_000);
    await agents.reaches(nameOf(second), 'Scheduling');
  });

  it('is moved once by whoever takes over in the middle', async () => {
    for (let writes = 0; writes < 4; writes++) {
      const name = `web-${writes}`;
      await addGuest(name);
      scene.writesLeft = writes;
      await mark(name, { cause: 'Descheduler' });
      await scene.pass(2000);
      await scene.stopControllers();
      scene.writesLeft = Number.POSITIVE_INFINITY;
      await scene.startControllers();
      await moveOf(name);
      await scene.pass(2000);
      await moveOf(name);
    }
  });
});

describe('a node with the drain taint', () => {
  it('should evacuate the guests that are on it, and no others', async () => {
    await addGuest('web');
    await addGuest('external', 'External');
    await addGuest('plain', 'None');
    await addGuest('elsewhere', 'LiveMigrate', { node: 'node-b' });
    await taint();
    expect((await moveOf('web')).spec).toMatchObject({ cause: 'DrainTaint', priority: 'system-critical' });
    expect(await markOf('web')).toEqual(['node-a', 'DrainTaint']);
    await staysUnmoved('plain', 'elsewhere', 'external');
    expect(await markOf('external')).toEqual(['node-a', 'DrainTaint']);
    expect(await markOf('plain')).toEqual([undefined]);
    await setNode('node-a', { taints: null });
    await scene.until(async () => {
      expect(await markOf('web')).toEqual([undefined]);
      expect(await markOf('external')).toEqual([undefined]);
      expect(await movesOf('web')).toEqual([]);
    });
  });

  it('should ignore VMIs which are not migratable, and say so', async () => {
    await addGuest('web', 'LiveMigrate', { condition: STUCK });
    await taint();
    await scene.until(async () => expect((await toldOf('web')).join()).toMatch('is not migrateable: DisksNotLive'));
    await isBlocked(/^1 virtual machine cannot leave: shop\/web: cannot be live-migrated: DisksNotLiveMigratable/);
    await staysUnmoved('web');
    expect(await markOf('web')).toEqual([undefined]);
  });

  it('is the node that the configuration says', async () => {
    await configure({ migrations: { nodeDrainTaintKey: 'node.kubernetes.io/unschedulable' } });
    await addGuest('web');
    await taint();
    await staysUnmoved('web');
    await setNode('node-a', { taints: [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] });
    await moveOf('web');
  });
});

describe('a drain that is called off', () => {
  it('withdraws its marks and what has not begun, and nothing else', async () => {
    await configure({ migrations: { parallelOutboundMigrationsPerNode: 9, parallelMigrationsPerCluster: 9 } });
    for (const name of ['drained', 'evicted', 'both', 'begun']) await addGuest(name);
    await cordon();
    await mark('drained', BY_DRAIN);
    await mark('evicted', { cause: 'APIEviction' });
    await mark('both', BY_DRAIN, { cause: 'Descheduler' });
    for (const name of ['drained', 'evicted', 'both']) await moveOf(name);
    await mark('begun', BY_DRAIN);
    const begun = nameOf(await moveOf('begun'));
    await agents.runTarget(begun, 'node-c');
    await agents.reaches(begun, 'PreparingTarget');
    await uncordon();
    await scene.until(async () => {
      expect(await markOf('drained')).toEqual([undefined]);
      expect(await movesOf('drained')).toEqual([]);
      expect(await markOf('begun')).toEqual([undefined]);
    });
    expect(await markOf('evicted')).toEqual(['node-a', 'APIEviction']);
    expect(await markOf('both')).toEqual(['node-a', 'Descheduler']);
    await moveOf('both');
    await agents.finish(begun, 'begun');
    await agents.carryOut(nameOf(await moveOf('evicted')), 'evicted');
    expect(await toldOf('drained')).toContainEqual(expect.stringMatching(/SuccessfulDelete: Deleted Migration/));
  });

  it('is not called off by a node of which we have not heard yet that it is cordoned', async () => {
    await addGuest('web');
    scene.hold('nodes');
    await cordon();
    await mark('web', BY_DRAIN);
    await moveOf('web');
    expect(await markOf('web')).toEqual(['node-a', 'APIEviction']);
    scene.release('nodes');
    await scene.pass(2000);
    expect(await markOf('web')).toEqual(['node-a', 'APIEviction']);
  });

  it('is not called off any more for a guest whose pod is being deleted', async () => {
    await addGuest('web');
    await cordon();
    await mark('web', BY_DRAIN);
    const move = await moveOf('web');
    await scene.delete(pods, 'virt-launcher-web-first', 300);
    await uncordon();
    await scene.pass(3000);
    expect(await markOf('web')).toEqual(['node-a', 'APIEviction']);
    expect((await moveOf('web')).metadata.uid).toBe(move.metadata.uid);
  });

  it('was called off while nobody was there to see it', async () => {
    await addGuest('web');
    await cordon();
    await mark('web', BY_DRAIN);
    await moveOf('web');
    await scene.stopControllers();
    await uncordon();
    await scene.startControllers();
    await scene.until(async () => {
      expect(await markOf('web')).toEqual([undefined]);
      expect(await movesOf('web')).toEqual([]);
    });
  });
});

describe('a node that is being emptied says who stays, and why', () => {
  it('at once, and until it is not so any more', async () => {
    await addGuest('stuck', 'LiveMigrate', { condition: STUCK });
    await addGuest('external', 'External');
    await addGuest('plain', 'None');
    await scene.pass(2000);
    expect(await blockOf()).toBeUndefined();
    await cordon();
    await isBlocked(/^2 virtual machines cannot leave: shop\/external: .*External.*; shop\/stuck: .*disk-a is local$/);
    await agents.says('stuck', { conditions: [MIGRATABLE] });
    await isBlocked(/^1 virtual machine cannot leave: shop\/external: /);
    await agents.says('external', { phase: 'Succeeded' });
    await scene.until(async () =>
      expect(await blockOf()).toMatchObject({ status: 'False', reason: 'NothingInTheWay' }),
    );
    expect(await blockOf('node-b')).toBeUndefined();
  });

  it('and nothing any more when it takes pods again', async () => {
    await addGuest('external', 'External');
    await cordon();
    await isBlocked(/external/);
    await uncordon();
    await scene.until(async () => expect((await blockOf())?.status).toBe('False'));
  });

  it('where no other node takes a guest: it goes on when there is room', async () => {
    for (const name of ['node-b', 'node-c']) await cordon(name);
    await addGuest('web');
    await cordon();
    await mark('web', BY_DRAIN);
    await isBlocked(/^1 virtual machine cannot leave: shop\/web: no node takes it: .*node-b: .*unschedulable/);
    const move = nameOf(await moveOf('web'));
    await uncordon('node-b');
    await agents.carryOut(move, 'web');
    await scene.until(async () => expect((await blockOf())?.status).toBe('False'));
  });

  it('where nobody can make a migration', async () => {
    await addGuest('web');
    const { uid = '' } = (await scene.get(guests, 'web')).metadata;
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'web', uid, controller: true };
    const spec = { containers: [{ name: 'compute', image: 'launcher:1' }] };
    await scene.create(pods, { metadata: { name: 'second', ownerReferences: [owner] }, spec });
    await cordon();
    await mark('web', { ...BY_DRAIN, since: formatTime(scene.clock.now()) });
    await scene.pass(8000);
    expect(await blockOf()).toBeUndefined();
    await scene.pass(3000);
    await isBlocked(/shop\/web: it has to leave, and no migration could be made for it/);
    await scene.delete(pods, 'second', 0);
    await moveOf('web');
    await scene.until(async () => expect((await blockOf())?.status).toBe('False'));
  });

  it('beside what its agent says of it', async () => {
    const ready = { type: 'Ready', status: 'True', reason: 'AgentReady', lastTransitionTime: '2026-01-01T00:00:00Z' };
    const status: JsonObject = { conditions: [ready] };
    await scene.client.patch(nodes, '', 'node-a', { type: 'strategic', body: { status } }, scene.signal, {
      subresource: 'status',
    });
    await addGuest('external', 'External');
    await cordon();
    await isBlocked(/external/);
    const { conditions } = ((await scene.get(nodes, 'node-a')) as Node).status ?? {};
    expect(conditions).toContainEqual(expect.objectContaining(ready));
  });
});
