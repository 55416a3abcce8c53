import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { EvictionWebhooks } from '../support/eviction-webhooks.ts';
import { claim, type GuestOptions, probe } from '../support/guest-manifests.ts';
import type { Kubectl } from '../support/kubectl.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { allOnKubernetes, sample, someOf } from '../support/sample.ts';
import { conditionOf } from '../support/virtual-machines.ts';

/** Nodes that are emptied by real kubectl, with real guests on them: who moves, who stays, and what is said of it. */

vi.setConfig({ testTimeout: 300_000, hookTimeout: 240_000 });

const NODES = ['node-1', 'node-2', 'node-3'];
/** How long anything may take that is under way, on a machine under load. */
const PATIENCE_MS = 90_000;
const MERGE = { 'content-type': 'application/merge-patch+json' };
const DRAIN = ['--ignore-daemonsets', '--delete-emptydir-data'];
/** Nobody moves until somebody says so. */
const HELD = { parallelMigrationsPerCluster: 0 };
const FREE = { parallelMigrationsPerCluster: 5, parallelOutboundMigrationsPerNode: 2 };
/** Slow enough for somebody to change their mind while the copy is under way. */
const SLOW = { pace: 'slow' };

let guests: MovingGuests;
let kubectl: Kubectl;
const made = new Set<string>();

beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: NODES.length });
  ({ kubectl } = guests.host);
  await guests.policy('slow', SLOW, { bandwidthPerMigration: '4Mi' });
  await guests.policy('hopeless', { pace: 'hopeless' }, { bandwidthPerMigration: '1Mi', completionTimeoutPerGiB: 1 });
});
afterAll(() => guests.stop());

afterEach(async () => {
  for (const { metadata, spec } of await nodes())
    if (spec.taints?.some(({ key }: Anything) => key === 'kubevirt.io/drain'))
      await kubectl.ok(['taint', 'node', metadata.name, 'kubevirt.io/drain-']);
  await setCordoned(NODES, false);
  await guests.configure(FREE);
  await together([...made], (name) => guests.remove(name));
  made.clear();
});

const together = <T>(names: readonly T[], act: (name: T) => Promise<unknown>): Promise<unknown> =>
  Promise.all(names.map(act));

const nodes = async (): Promise<Anything[]> =>
  (await guests.host.api.request('GET', '/api/v1/nodes')).expect(200).json.items;

/** What kubectl does where that is not what is looked at. */
const setCordoned = (names: readonly string[], isCordoned: boolean): Promise<unknown> =>
  together(names, async (name) => {
    const body = { spec: { unschedulable: isCordoned || null } };
    (await guests.host.api.request('PATCH', `/api/v1/nodes/${name}`, { body, headers: MERGE })).expect(200);
  });

/** Makes guests on a node, all at once; they can go to any other afterwards. */
async function createOn(
  node: string,
  wanted: Readonly<Record<string, GuestOptions>>,
  labels: Readonly<Record<string, string>> = {},
): Promise<void> {
  const others = NODES.filter((other) => other !== node);
  await setCordoned(others, true);
  await together(Object.entries(wanted), async ([name, options]) => {
    made.add(name);
    await guests.create(name, probe({ tickMs: 100, evictionStrategy: 'LiveMigrate', ...options }), labels);
    expect((await guests.holder(name)).node).toBe(node);
    await eventually(async () => expect(conditionOf(await guests.host.guest(name), 'LiveMigratable')).toBeDefined());
  });
  await setCordoned(others, false);
}

/** The mark of a guest: its node and its causes. */
async function markOf(name: string): Promise<readonly string[]> {
  const { evacuationNodeName, evacuationCauses = [] } = (await guests.host.guest(name)).status;
  const causes = evacuationCauses.map(({ cause, untilUncordon }: Anything) =>
    untilUncordon === true ? `${cause} until uncordoned` : cause,
  );
  return evacuationNodeName === undefined ? [] : [evacuationNodeName, ...causes];
}

const isMarked = (name: string, ...mark: readonly string[]): Promise<void> =>
  eventually(async () => expect(await markOf(name)).toEqual(mark), PATIENCE_MS);

const migrationsOf = async (name: string): Promise<Anything[]> =>
  (await guests.migrations()).filter(({ spec }) => spec.vmiName === name);

/** Names follow from tries: two that were made in the same second have an order all the same, by what became of them. */
const byAge = (one: Anything, other: Anything): number =>
  one.metadata.creationTimestamp.localeCompare(other.metadata.creationTimestamp) ||
  Number(one.status?.phase !== 'Failed') - Number(other.status?.phase !== 'Failed');

/** The one migration of a guest. */
const migrationOf = (name: string): Promise<Anything> =>
  eventually(async () => {
    const [migration, ...others] = await migrationsOf(name);
    expect(others).toEqual([]);
    expect(migration).toBeDefined();
    return migration;
  }, PATIENCE_MS);

/** Waits until a guest has gone from a node by one migration, whole, and answers that. */
async function hasLeft(name: string, node: string): Promise<Anything> {
  const { metadata } = await migrationOf(name);
  const migration = await guests.succeeds(metadata.name);
  await isMarked(name);
  expect((await guests.isWhole(name)).length).toBe(2);
  expect((await guests.holder(name)).node).not.toBe(node);
  return migration;
}

/** The guest is where it was, and was never started anew. */
async function hasStayed(name: string, node: string): Promise<void> {
  expect((await guests.holder(name)).node).toBe(node);
  expect((await guests.isWhole(name)).length).toBe(1);
}

const launcherOf = async (name: string): Promise<string> => {
  const { podUID } = await guests.holder(name);
  const { items } = (await guests.host.api.request('GET', '/api/v1/namespaces/default/pods')).expect(200).json;
  return items.find(({ metadata }: Anything) => metadata.uid === podUID).metadata.name;
};

const drainBlocked = async (node: string): Promise<Anything> =>
  conditionOf((await guests.host.api.request('GET', `/api/v1/nodes/${node}`)).expect(200).json, 'DrainBlocked');

const isBlocked = (node: string, message: RegExp): Promise<void> =>
  eventually(async () => {
    const { status, message: said } = (await drainBlocked(node)) ?? {};
    expect(status).toBe('True');
    expect(said).toMatch(message);
  }, PATIENCE_MS);

const isFree = (node: string): Promise<void> =>
  eventually(async () => expect((await drainBlocked(node))?.status).toBe('False'), PATIENCE_MS);

/** Evicts the pod of a guest, and answers the refusal. */
async function evict(name: string, annotations: Readonly<Record<string, string>> = {}): Promise<string> {
  const pod = await launcherOf(name);
  const metadata = { name: pod, namespace: 'default', annotations };
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata };
  const path = `/api/v1/namespaces/default/pods/${pod}/eviction`;
  return (await guests.host.api.request('POST', path, { body: eviction })).expect(429).json.message;
}

describe('kubectl drain', () => {
  it('moves the guests of a node, and says what the proposal shows', async () => {
    // Nobody leaves before kubectl has asked a second time.
    await guests.configure(HELD);
    await createOn('node-1', { 'vm-one': {}, 'vm-two': {} });
    await createOn('node-2', { 'vm-far': {} });
    const pods = { 'vm-one': await launcherOf('vm-one'), 'vm-two': await launcherOf('vm-two') };
    const drain = kubectl.start(['drain', 'node-1', ...DRAIN]);
    const refusal = (pod: string, message: string): string =>
      `error when evicting pods/"${pod}" -n "default" (will retry after 5s): ${message}`;
    const webhook = 'virt-launcher-eviction-interceptor.kubevirt.io';
    await eventually(() => {
      const said = drain.output().split('\n');
      for (const [name, pod] of Object.entries(pods)) {
        const evacuation = `Eviction triggered evacuation of VMI "default/${name}"`;
        expect(said).toContain(refusal(pod, `admission webhook "${webhook}" denied the request: ${evacuation}`));
        expect(said).toContain(refusal(pod, `Cannot evict pod as it would violate the pod's disruption budget.`));
      }
    }, PATIENCE_MS);
    await guests.configure(FREE);
    const migrations = [await hasLeft('vm-one', 'node-1'), await hasLeft('vm-two', 'node-1')];
    expect(await drain.ended, drain.output()).toBe(0);
    const lines = drain.output().split('\n');
    for (const pod of Object.values(pods)) {
      expect(lines).toContain(`evicting pod default/${pod}`);
      expect(lines).toContain(`pod/${pod} evicted`);
    }
    expect(lines).toContain('node/node-1 drained');
    for (const { spec, status, metadata } of migrations) {
      expect(metadata.name).toMatch(/^kubevirt-evacuation-/);
      expect(metadata.annotations).toMatchObject({ 'kubevirt.io/evacuationMigration': 'node-1' });
      expect(spec).toMatchObject({ cause: 'APIEviction', priority: 'system-critical' });
      expect(status).toMatchObject({ causes: [{ cause: 'APIEviction', priority: 100 }], effectivePriority: 100 });
    }
    expect(await migrationsOf('vm-far')).toEqual([]);
    await hasStayed('vm-far', 'node-2');
    expect((await drainBlocked('node-1'))?.status).not.toBe('True');
  });

  const some = someOf(...allOnKubernetes(7, 2));
  some('that is called off half way withdraws its marks, and what has not begun', async () => {
    await guests.configure({ ...FREE, parallelOutboundMigrationsPerNode: 1 });
    const names = ['vm-a', 'vm-b', 'vm-c'];
    const options = { memory: '48Mi', arguments: 'mib=24' };
    await createOn('node-1', Object.fromEntries(names.map((name) => [name, options])), SLOW);
    const drain = kubectl.start(['drain', 'node-1', ...DRAIN]);
    const begun = await eventually(async () => {
      const all = await guests.migrations();
      expect(all).toHaveLength(names.length);
      const [running] = all.filter(({ status }) => status?.phase === 'Running');
      expect(running).toBeDefined();
      return running;
    }, PATIENCE_MS);
    // However long the rest takes here: no other begins meanwhile.
    await guests.configure(HELD);
    drain.stop();
    await drain.ended;
    await kubectl.ok('uncordon node-1');
    for (const name of names) await isMarked(name);
    const [first, ...others] = [begun.spec.vmiName, ...names.filter((name) => name !== begun.spec.vmiName)];
    await hasLeft(first, 'node-1');
    for (const name of others) {
      await eventually(async () => expect(await migrationsOf(name)).toEqual([]), PATIENCE_MS);
      await hasStayed(name, 'node-1');
    }
  });

  some(
    'is refused by budgets while nobody listens where the webhooks are, and moves all once somebody does',
    async () => {
      await createOn('node-1', { 'vm-kept': {} });
      const pod = await launcherOf('vm-kept');
      let drain: ReturnType<Kubectl['start']> | undefined;
      await new EvictionWebhooks(guests.host.api).whileDown(async () => {
        drain = kubectl.start(['drain', 'node-1', ...DRAIN]);
        const refusal = `error when evicting pods/"${pod}" -n "default" (will retry after 5s): Cannot evict pod`;
        await eventually(() => expect(drain?.output()).toContain(refusal), PATIENCE_MS);
        expect(drain?.output()).not.toContain('evicted');
        expect(await markOf('vm-kept')).toEqual([]);
        await hasStayed('vm-kept', 'node-1');
      });
      await hasLeft('vm-kept', 'node-1');
      expect(await drain?.ended, drain?.output()).toBe(0);
    },
  );

  some('names a guest that cannot move at once, in an event and in the condition of the node', async () => {
    made.add('vm-stuck');
    await guests.host.create(claim('disk-of-vm-stuck', 'local'));
    const source = { persistentVolumeClaim: { claimName: 'disk-of-vm-stuck' } };
    await createOn('node-1', { 'vm-stuck': { volumes: [{ name: 'disk', source }] } });
    const pod = await launcherOf('vm-stuck');
    const drain = kubectl.start(['drain', 'node-1', ...DRAIN]);
    await isBlocked('node-1', /^1 virtual machine cannot leave: default\/vm-stuck: .*DisksNotLiveMigratable/);
    await guests.host.told('vm-stuck', /^\w+: .*DisksNotLiveMigratable/m);
    await eventually(() => expect(drain.output()).toContain(`error when evicting pods/"${pod}"`), PATIENCE_MS);
    expect(drain.output()).toContain('VMI vm-stuck is configured with an eviction strategy but is not live-migratable');
    drain.stop();
    expect(await markOf('vm-stuck')).toEqual([]);
    await hasStayed('vm-stuck', 'node-1');
    await kubectl.ok('uncordon node-1');
    await isFree('node-1');
    await guests.remove('vm-stuck');
    made.delete('vm-stuck');
    await guests.host.delete('PersistentVolumeClaim', 'disk-of-vm-stuck');
  });

  some('with no room anywhere says so, and goes on by itself when there is room', async () => {
    await createOn('node-1', { 'vm-wide': {} });
    await setCordoned(['node-2', 'node-3'], true);
    const drain = kubectl.start(['drain', 'node-1', ...DRAIN]);
    await isBlocked('node-1', /^1 virtual machine cannot leave: default\/vm-wide: no node takes it: .*node-2: /);
    expect((await migrationOf('vm-wide')).status.phase).not.toBe('Failed');
    await hasStayed('vm-wide', 'node-1');
    await kubectl.ok('uncordon node-3');
    await hasLeft('vm-wide', 'node-1');
    expect((await guests.holder('vm-wide')).node).toBe('node-3');
    expect(await drain.ended, drain.output()).toBe(0);
    await isFree('node-1');
  });

  // Agents are started anew with it: a copy that this breaks off is tried again, after a while.
  it.each(sample(['Pending', 'Running'], 1))(
    'goes on after the control plane was killed while a migration was %s, without anybody asking again',
    async (wanted) => {
      const names = ['vm-a', 'vm-b'];
      if (wanted === 'Pending') await guests.configure(HELD);
      await createOn('node-1', { 'vm-a': { arguments: 'mib=16' }, 'vm-b': { arguments: 'mib=16' } }, SLOW);
      const drain = kubectl.start(['drain', 'node-1', ...DRAIN]);
      await eventually(async () => {
        const phases = (await guests.migrations()).map(({ status }) => status?.phase);
        expect(phases).toHaveLength(names.length);
        expect(phases).toContain(wanted);
      }, PATIENCE_MS);
      drain.stop();
      await drain.ended;
      await guests.host.godwit.kill();
      await guests.host.godwit.start();
      await guests.configure(FREE);
      for (const name of names) {
        await eventually(async () => expect((await guests.holder(name)).node).not.toBe('node-1'), 2 * PATIENCE_MS);
        await isMarked(name);
        expect((await guests.isWhole(name)).length).toBe(2);
      }
      expect((await drainBlocked('node-1'))?.status).not.toBe('True');
    },
  );

  some('waits after a migration that failed before it tries again, and says so', async () => {
    await createOn('node-1', { 'vm-late': { arguments: 'mib=16' } }, { pace: 'hopeless' });
    await setCordoned(['node-1'], true);
    await evict('vm-late');
    const [failed, next] = await eventually(async () => {
      const found = (await migrationsOf('vm-late')).toSorted(byAge);
      expect(found.map(({ status }) => status?.phase)).toEqual(['Failed', 'Pending']);
      return found;
    }, PATIENCE_MS);
    expect(failed.status.migrationState.failureReason).not.toBe('');
    expect(next.spec).toMatchObject({ cause: 'APIEviction', priority: 'system-critical' });
    await isBlocked(
      'node-1',
      /^1 virtual machine cannot leave: default\/vm-late: its last migration failed, and is tried/,
    );
    await guests.host.told('vm-late', /^MigrationBackoff: backoff migrating vmi default\/vm-late/m);
    await hasStayed('vm-late', 'node-1');
    // Nothing is left of it when the node is not to be empty any more.
    await kubectl.ok('uncordon node-1');
    await isMarked('vm-late');
    await guests.isGone(next.metadata.name);
    await isFree('node-1');
  });

  some('is not held up by what a user asks for, where no node has that', async () => {
    await createOn('node-1', { 'vm-choosy': {} });
    const asked = await guests.ask('vm-choosy', { addedNodeSelector: { zone: 'nowhere' } });
    await guests.reaches(asked, 'Scheduling');
    await setCordoned(['node-1'], true);
    await evict('vm-choosy');
    const { status } = await guests.fails(asked);
    expect(conditionOf({ status }, 'migrationFailed')).toMatchObject({ reason: 'Superseded' });
    expect(status.causes.map(({ cause }: Anything) => cause)).toEqual(['User', 'APIEviction']);
    await eventually(async () => expect((await guests.holder('vm-choosy')).node).not.toBe('node-1'), PATIENCE_MS);
    expect((await guests.isWhole('vm-choosy')).length).toBe(2);
  });

  some('of two nodes at once leaves all guests on the third', async () => {
    const places = [
      ['vm-a', 'node-1'],
      ['vm-b', 'node-2'],
      ['vm-c', 'node-1'],
      ['vm-d', 'node-2'],
    ] as const;
    await createOn('node-1', { 'vm-a': {}, 'vm-c': {} });
    await createOn('node-2', { 'vm-b': {}, 'vm-d': {} });
    await setCordoned(['node-1', 'node-2'], true);
    const drains = ['node-1', 'node-2'].map((node) => kubectl.start(['drain', node, ...DRAIN]));
    for (const [name, node] of places) await hasLeft(name, node);
    for (const { ended, output } of drains) expect(await ended, output()).toBe(0);
    for (const [name] of places) expect((await guests.holder(name)).node).toBe('node-3');
  });
});

describe('the mark of a guest', () => {
  const some = someOf(3, 1);
  some('that was evicted for itself stays when the node is cordoned and uncordoned', async () => {
    await guests.configure(HELD);
    await createOn('node-1', { 'vm-plain': {}, 'vm-drained': {} });
    expect(await evict('vm-plain')).toContain('Eviction triggered evacuation of VMI "default/vm-plain"');
    await kubectl.ok('cordon node-1');
    await evict('vm-drained');
    await isMarked('vm-plain', 'node-1', 'APIEviction');
    await isMarked('vm-drained', 'node-1', 'APIEviction until uncordoned');
    await kubectl.ok('uncordon node-1');
    await isMarked('vm-drained');
    await isMarked('vm-plain', 'node-1', 'APIEviction');
    await guests.configure(FREE);
    await hasLeft('vm-plain', 'node-1');
    await hasStayed('vm-drained', 'node-1');
    expect(await migrationsOf('vm-drained')).toEqual([]);
  });

  some('is there while the node has the drain taint; one that is for others to move is left alone', async () => {
    await createOn('node-1', {
      'vm-movable': {},
      'vm-external': { evictionStrategy: 'External' },
      'vm-unprotected': { evictionStrategy: 'None' },
    });
    await kubectl.ok('taint node node-1 kubevirt.io/drain=:NoSchedule');
    const { spec } = await hasLeft('vm-movable', 'node-1');
    expect(spec.cause).toBe('DrainTaint');
    await isMarked('vm-external', 'node-1', 'DrainTaint');
    await isBlocked('node-1', /^1 virtual machine cannot leave: default\/vm-external: .*External/);
    expect(await migrationsOf('vm-external')).toEqual([]);
    expect(await markOf('vm-unprotected')).toEqual([]);
    await kubectl.ok('taint node node-1 kubevirt.io/drain-');
    await isMarked('vm-external');
    await isFree('node-1');
    for (const name of ['vm-external', 'vm-unprotected']) await hasStayed(name, 'node-1');
  });

  some('of an External guest is left alone when it is evicted', async () => {
    await createOn('node-1', { 'vm-external': { evictionStrategy: 'External' } });
    expect(await evict('vm-external')).toContain('Eviction triggered evacuation of VMI "default/vm-external"');
    await isMarked('vm-external', 'node-1', 'APIEviction');
    // Whoever asks again is told by the budget.
    expect(await evict('vm-external')).toContain('disruption budget');
    expect(await migrationsOf('vm-external')).toEqual([]);
    await hasStayed('vm-external', 'node-1');
  });
});

describe('one move', () => {
  const some = someOf(2, 1);
  some('serves several causes: of the user who asked for it, the drain, and the taint', async () => {
    await guests.configure(HELD);
    await createOn('node-1', { 'vm-one': {} });
    const asked = await guests.ask('vm-one');
    await guests.reaches(asked, 'Pending');
    await kubectl.ok('cordon node-1');
    await evict('vm-one');
    await kubectl.ok('taint node node-1 kubevirt.io/drain=:NoSchedule');
    await eventually(async () => {
      const { status } = await guests.migration(asked);
      expect(status.causes.map(({ cause }: Anything) => cause)).toEqual(['User', 'APIEviction', 'DrainTaint']);
      expect(status.effectivePriority).toBe(100);
    }, PATIENCE_MS);
    await guests.configure(FREE);
    const { metadata, status } = await hasLeft('vm-one', 'node-1');
    expect(metadata.name).toBe(asked);
    expect(status.causes.map(({ cause }: Anything) => cause)).toEqual(['User', 'APIEviction', 'DrainTaint']);
  });

  some(
    'of a guest that the descheduler wants elsewhere is as urgent as a drain, for as long as there is one',
    async () => {
      await guests.configure(HELD);
      await createOn('node-1', { 'vm-one': {} });
      await evict('vm-one', { 'requested-by': 'sigs.k8s.io/descheduler' });
      const source = async (): Promise<unknown> =>
        (await guests.host.guest('vm-one')).metadata.annotations?.['kubevirt.io/eviction-source'];
      await eventually(async () => expect(await source()).toBe('descheduler'));
      const { metadata, spec } = await migrationOf('vm-one');
      expect(spec).toMatchObject({ cause: 'Descheduler', priority: 'system-maintenance' });
      const isWorth = (priority: number, ...causes: readonly string[]): Promise<void> =>
        eventually(async () => {
          const { status } = await guests.migration(metadata.name);
          expect(status.effectivePriority).toBe(priority);
          expect(status.causes.map(({ cause }: Anything) => cause)).toEqual(causes);
        }, PATIENCE_MS);
      await isWorth(20, 'Descheduler');
      const pod = await launcherOf('vm-one');
      await eventually(async () => {
        const { json } = await guests.host.api.request('GET', `/api/v1/namespaces/default/pods/${pod}`);
        expect(json.metadata.annotations['descheduler.alpha.kubernetes.io/eviction-in-progress']).toBe('true');
      });
      await kubectl.ok('cordon node-1');
      await evict('vm-one');
      await isMarked('vm-one', 'node-1', 'Descheduler', 'APIEviction until uncordoned');
      await isWorth(100, 'Descheduler', 'APIEviction');
      await kubectl.ok('uncordon node-1');
      await isMarked('vm-one', 'node-1', 'Descheduler');
      await isWorth(20, 'Descheduler');
      await guests.configure(FREE);
      expect((await hasLeft('vm-one', 'node-1')).metadata.uid).toBe(metadata.uid);
      await eventually(async () => expect(await source()).toBeUndefined());
    },
  );
});
