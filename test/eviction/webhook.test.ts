import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import type { Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { EvictionWebhooks } from '../support/eviction-webhooks.ts';
import { claim, probe, virtualMachineInstance } from '../support/guest-manifests.ts';
import type { Result } from '../support/kubectl.ts';
import { MovingGuests } from '../support/moving-guests.ts';
import { conditionOf } from '../support/virtual-machines.ts';

/** Every row of what is said of evictions, asked for with kubectl, of guests that run. */

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 });

const PODS = '/api/v1/namespaces/default/pods';
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const PATIENCE_MS = 90_000;
const INTERCEPTOR = 'admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: ';
const BLOCKED_BY_BUDGET = "Cannot evict pod as it would violate the pod's disruption budget.";

interface Row {
  readonly strategy: string;
  readonly isMigratable: boolean;
}

const ROWS: readonly Row[] = ['None', 'LiveMigrate', 'LiveMigrateIfPossible', 'External'].flatMap((strategy) => [
  { strategy, isMigratable: true },
  { strategy, isMigratable: false },
]);

const nameOf = ({ strategy, isMigratable }: Row): string =>
  `${strategy.toLowerCase()}-${isMigratable ? 'movable' : 'stuck'}`;
const triggered = (name: string): string => `${INTERCEPTOR}Eviction triggered evacuation of VMI "default/${name}"`;
const refused = (name: string): string =>
  `${INTERCEPTOR}VMI ${name} is configured with an eviction strategy but is not live-migratable`;

let guests: MovingGuests;
let webhooks: EvictionWebhooks;

/** A guest that says something now and then, of which nothing but a local volume keeps it where it is. */
function guestSpec(strategy: string | undefined, local?: string): object {
  return probe({
    tickMs: 100,
    graceSeconds: 3,
    ...(strategy === undefined ? {} : { evictionStrategy: strategy }),
    ...(local === undefined
      ? {}
      : { volumes: [{ name: 'disk', source: { persistentVolumeClaim: { claimName: local } } }] }),
  });
}

async function createGuest(name: string, strategy: string | undefined, isMigratable = true): Promise<void> {
  if (!isMigratable) await guests.host.create(claim(name, 'local'));
  await guests.host.create(virtualMachineInstance(name, guestSpec(strategy, isMigratable ? undefined : name)));
}

/** Waits until the guest runs, and whether it can move is known. */
async function isUp(name: string, isMigratable = true): Promise<void> {
  await guests.knows(name);
  await eventually(async () => {
    const condition = conditionOf(await guests.host.guest(name), 'LiveMigratable');
    expect(condition?.status, JSON.stringify(condition)).toBe(isMigratable ? 'True' : 'False');
  }, PATIENCE_MS);
}

/** The pod that executes the guest. */
async function podOf(name: string): Promise<string> {
  const { podUID } = await guests.holder(name);
  const { items } = (await guests.host.api.request('GET', PODS)).expect(200).json;
  return items.find(({ metadata }: Anything) => metadata.uid === podUID).metadata.name;
}

interface Wish {
  readonly query?: string;
  readonly deleteOptions?: object;
  readonly annotations?: object;
}

/** Asks for an eviction, as kubectl does. */
function evict(pod: string, { query = '', deleteOptions, annotations = {} }: Wish = {}): Promise<Result> {
  const metadata = { name: pod, namespace: 'default', annotations };
  const body = { apiVersion: 'policy/v1', kind: 'Eviction', metadata, ...(deleteOptions ? { deleteOptions } : {}) };
  const path = `${PODS}/${pod}/eviction${query}`;
  return guests.host.kubectl.run(['create', '--raw', path, '-f', '-'], { stdin: JSON.stringify(body) });
}

/** The answer in one line: 201, or 429 with what is said. */
async function answered(asked: Promise<Result>): Promise<string> {
  const { code, stdout, stderr } = await asked;
  if (code === 0) return `${(JSON.parse(stdout) as Anything).code}`;
  return stderr.trim().replace(/^Error from server \(TooManyRequests\): /, '429 ');
}

const markOf = async (name: string): Promise<string | undefined> =>
  (await guests.host.guest(name)).status.evacuationNodeName;

async function budgetsOf(name: string): Promise<Anything[]> {
  const { items } = (await guests.host.api.request('GET', BUDGETS)).expect(200).json;
  return items.filter(({ metadata }: Anything) => metadata.ownerReferences[0].name === name);
}

/** Waits until a budget keeps the guest, as far as whoever counts has said. */
async function isKept(name: string): Promise<Anything> {
  return eventually(async () => {
    const [budget, ...others] = await budgetsOf(name);
    expect(others).toEqual([]);
    expect(budget?.status, JSON.stringify(budget)).toMatchObject({
      observedGeneration: budget.metadata.generation,
      disruptionsAllowed: 0,
    });
    return budget;
  }, PATIENCE_MS);
}

async function hasMoved(name: string, from: string): Promise<void> {
  await eventually(async () => expect((await guests.holder(name)).node).not.toBe(from), PATIENCE_MS);
  await guests.isWhole(name);
  await eventually(async () => expect(await markOf(name)).toBeUndefined(), PATIENCE_MS);
}

async function hasEnded(name: string): Promise<void> {
  await eventually(async () => {
    expect(['Succeeded', 'Failed']).toContain((await guests.host.guest(name)).status.phase);
  }, PATIENCE_MS);
}

const evacuationsOf = async (name: string): Promise<Anything[]> =>
  (await guests.migrations()).filter(({ spec }) => spec.vmiName === name);

/** Creates a pod that no node takes. */
async function createPod(name: string, metadata: object = {}): Promise<void> {
  const spec = { nodeSelector: { nowhere: 'x' }, containers: [{ name: 'c', image: 'i' }] };
  const body = { apiVersion: 'v1', kind: 'Pod', metadata: { name, ...metadata }, spec };
  (await guests.host.api.request('POST', PODS, { body })).expect(201);
}

beforeAll(async () => {
  guests = await MovingGuests.start({ nodes: 2 });
  webhooks = new EvictionWebhooks(guests.host.api);
  // Whoever has to move waits, so that it can be looked at.
  await guests.configure({ parallelMigrationsPerCluster: 0 });
  for (const row of ROWS) await createGuest(nameOf(row), row.strategy, row.isMigratable);
  for (const row of ROWS) await isUp(nameOf(row), row.isMigratable);
});
afterAll(() => guests.stop());

describe('the budget of a guest', () => {
  it.each([
    ['None', true, 0],
    ['None', false, 0],
    ['LiveMigrate', true, 1],
    ['LiveMigrate', false, 1],
    ['LiveMigrateIfPossible', true, 1],
    ['LiveMigrateIfPossible', false, 0],
    ['External', true, 1],
    ['External', false, 1],
  ])('%s, migratable %s: there are %i', async (strategy, isMigratable, count) => {
    const name = nameOf({ strategy, isMigratable });
    if (count > 0) await isKept(name);
    expect(await budgetsOf(name)).toHaveLength(count);
  });
});

describe('a dry run', () => {
  it.each([
    ['of the request', { query: '?dryRun=All' }],
    ['of the deletion', { deleteOptions: { dryRun: ['All'] } }],
  ])('%s is answered as any other, and changes nothing', async (_, wish) => {
    const name = 'livemigrate-movable';
    expect(await answered(evict(await podOf(name), wish))).toBe(`429 ${triggered(name)}`);
    expect(await markOf(name)).toBeUndefined();
    expect(await answered(evict(await podOf('none-movable'), wish))).toBe('201');
    expect((await guests.host.guest('none-movable')).status.phase).toBe('Running');
  });
});

describe('while nobody listens where the webhooks are', () => {
  it('budgets say no, nobody is marked, and whoever may go goes', async () => {
    await createGuest('gone', 'None');
    await isUp('gone');
    await webhooks.whileDown(async () => {
      for (const name of [
        'livemigrate-movable',
        'livemigrate-stuck',
        'livemigrateifpossible-movable',
        'external-movable',
      ]) {
        expect(await answered(evict(await podOf(name)))).toBe(`429 ${BLOCKED_BY_BUDGET}`);
        expect(await markOf(name)).toBeUndefined();
      }
      expect(await answered(evict(await podOf('gone')))).toBe('201');
    });
    expect(await evacuationsOf('livemigrate-movable')).toEqual([]);
  });
});

describe('the first request', () => {
  it.each<[strategy: string, isMigratable: boolean, answer: (name: string) => string, isMarked: boolean]>([
    ['None', true, () => '201', false],
    ['None', false, () => '201', false],
    ['LiveMigrate', true, (name) => `429 ${triggered(name)}`, true],
    ['LiveMigrate', false, (name) => `429 ${refused(name)}`, false],
    ['LiveMigrateIfPossible', true, (name) => `429 ${triggered(name)}`, true],
    ['LiveMigrateIfPossible', false, () => '201', false],
    ['External', true, (name) => `429 ${triggered(name)}`, true],
    ['External', false, (name) => `429 ${triggered(name)}`, true],
  ])('%s, migratable %s', async (strategy, isMigratable, answer, isMarked) => {
    const name = nameOf({ strategy, isMigratable });
    const { node } = await guests.holder(name);
    const pod = await podOf(name);
    expect(await answered(evict(pod))).toBe(answer(name));
    if (answer(name) === '201') return hasEnded(name);
    expect(await markOf(name)).toBe(isMarked ? node : undefined);
    if (!isMarked) return guests.host.told(name, /cannot be migrated: DisksNotLiveMigratable/);
    const { evacuationCauses } = (await guests.host.guest(name)).status;
    expect(evacuationCauses).toMatchObject([{ cause: 'APIEviction' }]);
    expect(evacuationCauses[0].untilUncordon).toBeUndefined();
  });

  it('by the strategy of the cluster', async () => {
    await createGuest('quiet', undefined);
    await isUp('quiet');
    const KUBEVIRT = ['-n', 'kubevirt', 'patch', 'kubevirt', 'kubevirt', '--type=merge', '-p'];
    await guests.host.kubectl.ok([...KUBEVIRT, '{"spec":{"configuration":{"evictionStrategy":"LiveMigrate"}}}']);
    await isKept('quiet');
    expect(await answered(evict(await podOf('quiet')))).toBe(`429 ${triggered('quiet')}`);
    await guests.host.kubectl.ok([...KUBEVIRT, '{"spec":{"configuration":{"evictionStrategy":null}}}']);
    await eventually(async () => expect(await markOf('quiet')).toBeUndefined(), PATIENCE_MS);
    await eventually(async () => expect(await budgetsOf('quiet')).toEqual([]), PATIENCE_MS);
  });

  it('of the descheduler', async () => {
    const annotations = { 'requested-by': 'sigs.k8s.io/descheduler' };
    await createGuest('scattered', 'LiveMigrate');
    await isUp('scattered');
    expect(await answered(evict(await podOf('scattered'), { annotations }))).toBe(`429 ${triggered('scattered')}`);
    const { metadata, status } = await guests.host.guest('scattered');
    expect(metadata.annotations).toMatchObject({ 'kubevirt.io/eviction-source': 'descheduler' });
    expect(status.evacuationCauses).toMatchObject([{ cause: 'Descheduler' }]);
    const [migration] = await eventually(async () => {
      const found = await evacuationsOf('scattered');
      expect(found).toHaveLength(1);
      return found;
    }, PATIENCE_MS);
    expect(migration.spec).toMatchObject({ priority: 'system-maintenance', cause: 'Descheduler' });
  });
});

describe('later requests', () => {
  it.each([
    ['LiveMigrate', true],
    ['LiveMigrateIfPossible', true],
    ['External', true],
    ['External', false],
  ])('%s, migratable %s, are blocked by the budget', async (strategy, isMigratable) => {
    const name = nameOf({ strategy, isMigratable });
    const pod = await podOf(name);
    for (let again = 0; again < 2; again++) expect(await answered(evict(pod))).toBe(`429 ${BLOCKED_BY_BUDGET}`);
    expect(await evacuationsOf(name)).toHaveLength(strategy === 'External' ? 0 : 1);
  });

  it('LiveMigrate, migratable false, are refused as the first', async () => {
    const name = 'livemigrate-stuck';
    expect(await answered(evict(await podOf(name)))).toBe(`429 ${refused(name)}`);
  });
});

describe('a guest that has to leave', () => {
  it('may stay when somebody says so', async () => {
    const name = 'livemigrateifpossible-movable';
    expect(await guests.host.cli('evacuate-cancel', 'vmi', name)).toContain(
      `VMI default/${name} was canceled evacuation`,
    );
    expect(await markOf(name)).toBeUndefined();
    await eventually(async () => expect(await evacuationsOf(name)).toEqual([]), PATIENCE_MS);
  });

  it('may stay with all others of its node', async () => {
    const { node } = await guests.holder('external-movable');
    const isThere = async (name: string): Promise<boolean> => (await markOf(name)) === node;
    expect(await isThere('external-movable')).toBe(true);
    await guests.host.cli('evacuate-cancel', 'node', node);
    for (const { metadata } of (await guests.host.kubectl.json('get vmi')).items)
      expect(await isThere(metadata.name)).toBe(false);
  });

  it('moves, and its old pod may go', async () => {
    const name = 'livemigrateifpossible-movable';
    const [{ node }, pod] = [await guests.holder(name), await podOf(name)];
    await evict(pod);
    await guests.configure({ parallelMigrationsPerCluster: 5 });
    await hasMoved(name, node);
    const [migration] = await evacuationsOf(name);
    expect(migration).toMatchObject({
      metadata: { annotations: { 'kubevirt.io/evacuationMigration': node } },
      spec: { priority: 'system-critical', cause: 'APIEviction' },
    });
    await eventually(async () => expect((await isKept(name)).spec.minAvailable).toBe(1), PATIENCE_MS);
    const found = await guests.host.api.request('GET', `${PODS}/${pod}`);
    if (found.status === 200) expect(await answered(evict(pod))).toBe('201');
  });
});

describe('a launcher that is preempted and holds its guest', () => {
  it('cannot be evicted, which would cut its time short, and may still not stay', async () => {
    await guests.configure({ parallelMigrationsPerCluster: 0 });
    await createGuest('held', 'LiveMigrate');
    await isUp('held');
    const [{ node }, pod] = [await guests.holder('held'), await podOf('held')];
    const lastTransitionTime = new Date().toISOString().replace(/\.\d+/, '');
    const reason = { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler', lastTransitionTime };
    const strategic = { 'content-type': 'application/strategic-merge-patch+json' };
    const body = { status: { conditions: [reason] } };
    (await guests.host.api.request('PATCH', `${PODS}/${pod}/status`, { body, headers: strategic })).expect(200);
    const { deletionTimestamp } = (await guests.host.api.request('DELETE', `${PODS}/${pod}`)).expect(200).json.metadata;
    await eventually(async () => expect(await markOf('held')).toBe(node), PATIENCE_MS);
    for (const deleteOptions of [{}, { gracePeriodSeconds: 1 }])
      expect(await answered(evict(pod, { deleteOptions }))).toContain(
        `${INTERCEPTOR}Eviction request for terminating Pod`,
      );
    const { metadata } = (await guests.host.api.request('GET', `${PODS}/${pod}`)).expect(200).json;
    expect(metadata.deletionTimestamp).toBe(deletionTimestamp);
    const { code, stderr } = await guests.host.runCli('evacuate-cancel', 'vmi', 'held');
    expect(code).not.toBe(0);
    expect(stderr).toContain(`its pod ${pod} is terminating`);
    await guests.configure({ parallelMigrationsPerCluster: 5 });
    await hasMoved('held', node);
  });
});

describe('pods that are not what is asked for', () => {
  it('that a guest is to move to stay', async () => {
    await createGuest('choosy', 'None');
    await isUp('choosy');
    const migration = await guests.ask('choosy', { addedNodeSelector: { zone: 'moon' } });
    await guests.reaches(migration, 'Scheduling');
    const { items } = await guests.host.kubectl.json(
      'get pods -l kubevirt.io/migrationJobUID,vm.kubevirt.io/name=choosy',
    );
    expect(await answered(evict(items[0].metadata.name))).toBe(`429 ${INTERCEPTOR}Eviction request for target Pod`);
    await guests.cancel(migration);
    await guests.isGone(migration);
  });

  it('that are no launchers, whatever their names and labels, go', async () => {
    const { uid } = (await guests.host.guest('external-movable')).metadata;
    await createPod('virt-launcher-nobody', { labels: { 'kubevirt.io': 'virt-launcher' } });
    expect(await answered(evict('virt-launcher-nobody'))).toBe('201');
    await createPod('virt-launcher-impostor', {
      labels: { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': uid },
    });
    expect(await answered(evict('virt-launcher-impostor'))).toBe('201');
    await createPod('web');
    expect(await answered(evict('web'))).toBe('201');
    expect(await answered(evict('virt-launcher-gone'))).toContain('not found');
  });

  it('that hold plugged-in volumes stay for as long as their launcher has a guest', async () => {
    const name = 'external-movable';
    const pod = await podOf(name);
    const { podUID: uid } = await guests.holder(name);
    const owner = { apiVersion: 'v1', kind: 'Pod', name: pod, controller: true };
    await createPod('hp-volume-kept', { ownerReferences: [{ ...owner, uid }] });
    expect(await answered(evict('hp-volume-kept'))).toBe(
      `429 admission webhook "hotplug-pod-eviction-interceptor.kubevirt.io" denied the request: cannot evict hotplug pod: hp-volume-kept associated with running vmi: ${name} in namespace default`,
    );
    await createPod('hp-volume-free');
    expect(await answered(evict('hp-volume-free'))).toBe('201');
  });
});

describe('a guest in the middle of its move', () => {
  it('is kept on both sides, also while nobody listens where the webhooks are', async () => {
    await guests.configure({}, ['MigrationDowntimeTuning']);
    await guests.policy('endless', { pace: 'endless' }, { bandwidthPerMigration: '1Mi', maxDowntimeMs: 1 });
    const spec = probe({ memory: '48Mi', arguments: 'mib=24 hz=200 rate=20', evictionStrategy: 'LiveMigrate' });
    await guests.create('busy', spec, { pace: 'endless' });
    const migration = await guests.ask('busy');
    await guests.reaches(migration, 'Running');
    expect((await isKept('busy')).spec.minAvailable).toBe(2);
    const { sourcePod, targetPod } = (await guests.host.guest('busy')).status.migrationState;
    expect(await answered(evict(targetPod))).toBe(`429 ${INTERCEPTOR}Eviction request for target Pod`);
    await webhooks.whileDown(async () => {
      for (const pod of [sourcePod, targetPod, sourcePod])
        expect(await answered(evict(pod))).toBe(`429 ${BLOCKED_BY_BUDGET}`);
    });
    expect(await markOf('busy')).toBeUndefined();
    // One move serves whoever asks for it meanwhile.
    expect(await answered(evict(sourcePod))).toBe(`429 ${triggered('busy')}`);
    await eventually(async () => {
      const { status } = await guests.migration(migration);
      expect(status.causes.map(({ cause }: Anything) => cause).toSorted()).toEqual(['APIEviction', 'User']);
    }, PATIENCE_MS);
    expect(await evacuationsOf('busy')).toHaveLength(1);
    await guests.isWhole('busy');
    await guests.remove('busy');
  });
});

describe('kubectl drain', () => {
  beforeAll(async () => {
    const others = (await guests.host.kubectl.json('get vmi')).items.map(({ metadata }: Anything) => metadata.name);
    for (const name of others) await guests.host.delete('VirtualMachineInstance', name);
    for (const name of others) await guests.host.isGone(name);
    await createGuest('vm-cirros', 'LiveMigrate');
    await isUp('vm-cirros');
    await isKept('vm-cirros');
  });

  /** Drains a node for as long as that takes, or until the time is over. */
  async function drain(node: string, seconds: number): Promise<{ code: number; printed: string }> {
    const { code, stdout, stderr } = await guests.host.kubectl.run(
      ['drain', node, '--ignore-daemonsets', '--delete-emptydir-data', `--timeout=${seconds}s`],
      { killAfterMs: (seconds + 30) * 1000 },
    );
    return { code, printed: stdout + stderr };
  }

  it('fails while nobody listens where the webhooks are: the budget keeps the guest, and nobody moves it', async () => {
    const [{ node }, pod] = [await guests.holder('vm-cirros'), await podOf('vm-cirros')];
    const { code, printed } = await webhooks.whileDown(() => drain(node, 15));
    await guests.host.kubectl.ok(['uncordon', node]);
    expect(code, printed).toBe(1);
    expect(printed).toContain(
      `error when evicting pods/"${pod}" -n "default" (will retry after 5s): ${BLOCKED_BY_BUDGET}`,
    );
    expect(printed).not.toContain(`node/${node} drained`);
    expect(await markOf('vm-cirros')).toBeUndefined();
    expect(await evacuationsOf('vm-cirros')).toEqual([]);
    expect((await guests.holder('vm-cirros')).node).toBe(node);
    const { metadata, spec } = (await guests.host.api.request('GET', `${PODS}/${pod}`)).expect(200).json;
    expect(metadata.deletionTimestamp).toBeUndefined();
    expect(spec.nodeName).toBe(node);
    expect(await guests.isWhole('vm-cirros')).toHaveLength(1);
  });

  it('prints what KubeVirt makes it print, and ends when the guest has gone', async () => {
    const [{ node }, pod] = [await guests.holder('vm-cirros'), await podOf('vm-cirros')];
    const { code, printed } = await drain(node, 120);
    expect(code, printed).toBe(0);
    expect(printed).toContain(`evicting pod default/${pod}`);
    expect(printed).toContain(
      `error when evicting pods/"${pod}" -n "default" (will retry after 5s): ${triggered('vm-cirros')}`,
    );
    expect(printed).toContain(`node/${node} drained`);
    await hasMoved('vm-cirros', node);
    await guests.host.kubectl.ok(['uncordon', node]);
    expect(guests.host.assertNeverDoubled()).toBeGreaterThan(50);
  });
});
