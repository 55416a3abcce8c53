import { beforeEach, describe, expect, it } from 'vitest';
import type { EvictionStrategy } from '../../api/kubevirt/eviction-strategy.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import type { JsonObject, KubeObject } from '../../api/meta.ts';
import { ApiError, conflict } from '../../api/status.ts';
import { ManualClock } from '../../env/test.ts';
import type { Client, Patch, WriteOptions } from '../../kube/client.ts';
import type { Resource } from '../../kube/resource.ts';
import { applyMergePatch } from '../../machinery/patch/merge-patch.ts';
import { budgetFor, type DisruptionBudget } from '../../migration/eviction/disruption-budget.ts';
import { interceptEviction, keepHotplugPod } from './evictions.ts';
import type { Verdict, Webhook } from './review.ts';
import type { Rivals } from './rivals.ts';

const { signal } = new AbortController();
const POD = 'virt-launcher-vm-cirros-wn5v4';
const TRIGGERED = '429 Eviction triggered evacuation of VMI "default/vm-cirros"';

/** Objects as a server has them, by plural and name. */
const objects = new Map<string, KubeObject>();
const failures = new Map<string, unknown>();
let reads: string[] = [];
let writes: string[] = [];
let told: string[] = [];
let hasForeignBudget = false;

const client = {
  get: async (resource: Resource, _namespace: string, name: string) => {
    const object = await client.find(resource, _namespace, name);
    if (!object) throw new ApiError(404, 'NotFound', `${name} not found`);
    return object;
  },
  find: async ({ plural }: Resource, _namespace: string, name: string) => {
    reads.push(plural);
    if (failures.has(plural)) throw failures.get(plural);
    return objects.get(`${plural}/${name}`);
  },
  patch: async (
    { plural }: Resource,
    _: string,
    name: string,
    patch: Patch,
    _signal: unknown,
    options: WriteOptions = {},
  ) => {
    const isStatus = options.subresource === 'status';
    writes.push(`${isStatus ? 'status' : 'object'}${options.dryRun ? ' dry' : ''}`);
    const failure = failures.get('patch');
    if (failure !== undefined) {
      // Others wrote once.
      failures.delete('patch');
      throw failure;
    }
    const patched = applyMergePatch(
      objects.get(`${plural}/${name}`) as JsonObject,
      patch.body as JsonObject,
    ) as KubeObject;
    if (!options.dryRun) objects.set(`${plural}/${name}`, patched);
    return patched;
  },
};

function guestOf(
  evictionStrategy: EvictionStrategy,
  status: VirtualMachineInstance['status'] = {},
): VirtualMachineInstance {
  return {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name: 'vm-cirros', namespace: 'default', uid: 'guest', resourceVersion: '1' },
    spec: { domain: { devices: {} }, evictionStrategy },
    status: {
      phase: 'Running',
      nodeName: 'node01',
      conditions: [{ type: 'LiveMigratable', status: 'True' }],
      ...status,
    },
  };
}

const guest = (): VirtualMachineInstance => objects.get('virtualmachineinstances/vm-cirros') as VirtualMachineInstance;

function put(plural: string, object: Partial<KubeObject> & Pick<KubeObject, 'metadata'>): void {
  objects.set(`${plural}/${object.metadata.name}`, { apiVersion: 'v1', kind: 'x', ...object });
}

function putPod(metadata: KubeObject['metadata'] = {}, ready = 'True'): void {
  const owner = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    name: 'vm-cirros',
    uid: 'guest',
    controller: true,
  };
  put('pods', {
    metadata: {
      name: POD,
      namespace: 'default',
      uid: 'pod',
      labels: { 'kubevirt.io/created-by': 'guest' },
      ownerReferences: [owner],
      ...metadata,
    },
    spec: { nodeName: 'node01' },
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: ready }] },
  });
}

function putBudget(
  status: DisruptionBudget['status'],
  metadata: KubeObject['metadata'] = {},
  spec: DisruptionBudget['spec'] = {},
): void {
  const budget = budgetFor(guest(), 1);
  put('poddisruptionbudgets', {
    ...budget,
    metadata: { ...budget.metadata, generation: 1, ...metadata },
    spec: { ...budget.spec, ...spec },
    status,
  } as KubeObject);
}

beforeEach(() => {
  objects.clear();
  failures.clear();
  reads = [];
  writes = [];
  told = [];
  hasForeignBudget = false;
  put('virtualmachineinstances', guestOf('LiveMigrate'));
  putPod();
  put('nodes', { metadata: { name: 'node01' }, spec: {} });
});

function isCordoned(node: string): boolean {
  const { spec } = objects.get(`nodes/${node}`) as { spec?: { unschedulable?: boolean } };
  return spec?.unschedulable === true;
}

interface Wish {
  readonly dryRun?: boolean;
  readonly body?: JsonObject;
  readonly annotations?: Record<string, string>;
  readonly name?: string;
}

async function asked(
  make: typeof interceptEviction,
  { dryRun = false, body = {}, annotations = {}, name = POD }: Wish = {},
) {
  const webhook: Webhook = make({
    client: client as unknown as Client,
    clock: new ManualClock(),
    configuration: () => ({}),
    unheard: () => [],
    random: undefined as never,
    cordons: { isCordoned: async (name) => isCordoned(name) },
    rivals: { hasForeignBudget: () => hasForeignBudget } as unknown as Rivals,
    recorder: { event: (_, type, reason, message) => void told.push(`${type} ${reason}: ${message}`) },
  });
  const verdict: Verdict = await webhook(
    {
      uid: 'u',
      resource: { group: '', version: 'v1', resource: 'pods' },
      subResource: 'eviction',
      operation: 'CREATE',
      namespace: 'default',
      name,
      userInfo: { username: 'jane' },
      dryRun,
      object: {
        apiVersion: 'policy/v1',
        kind: 'Eviction',
        metadata: { name, namespace: 'default', annotations },
        ...body,
      },
    },
    signal,
  );
  return verdict.allowed ? '200' : `${verdict.status.code} ${verdict.status.message}`;
}

const evicted = (wish?: Wish): Promise<string> => asked(interceptEviction, wish);

describe('the interceptor of evictions', () => {
  it('marks the guest, says why, and denies', async () => {
    expect(await evicted()).toBe(TRIGGERED);
    expect(guest().status).toMatchObject({
      evacuationNodeName: 'node01',
      evacuationCauses: [{ cause: 'APIEviction', message: 'requested by jane' }],
    });
    expect(guest().status?.evacuationCauses?.[0]?.untilUncordon).toBeUndefined();
    expect(writes).toEqual(['status']);
  });

  it('notes that a drain ends with it where the node takes no pods', async () => {
    put('nodes', { metadata: { name: 'node01' }, spec: { unschedulable: true } });
    await evicted();
    expect(guest().status?.evacuationCauses).toMatchObject([{ cause: 'APIEviction', untilUncordon: true }]);
  });

  it('notes that it was the descheduler', async () => {
    expect(await evicted({ annotations: { 'requested-by': 'sigs.k8s.io/descheduler' } })).toBe(TRIGGERED);
    expect(guest().status?.evacuationCauses).toMatchObject([{ cause: 'Descheduler' }]);
    expect(guest().metadata.annotations).toEqual({ 'kubevirt.io/eviction-source': 'descheduler' });
  });

  it.each<[string, Wish]>([
    ['of the request', { dryRun: true }],
    ['of the deletion', { body: { deleteOptions: { dryRun: ['All'] } } }],
  ])('changes nothing in a dry run %s', async (_, wish) => {
    expect(await evicted(wish)).toBe(TRIGGERED);
    expect(writes).toEqual([]);
    expect(guest().status?.evacuationNodeName).toBeUndefined();
  });

  it('lets later requests pass where a budget keeps the pod', async () => {
    await evicted();
    putBudget({ observedGeneration: 1, disruptionsAllowed: 0 });
    writes = [];
    expect(await evicted()).toBe('200');
    expect(writes).toEqual([]);
  });

  it('asks the server for no more than it takes', async () => {
    const costs = async (wish?: Wish): Promise<readonly string[]> => {
      [reads, writes] = [[], []];
      await evicted(wish);
      return [...reads, ...writes];
    };
    expect(await costs({ dryRun: true })).toEqual(['pods', 'virtualmachineinstances']);
    expect(await costs()).toEqual(['pods', 'virtualmachineinstances', 'status']);
    putBudget({ observedGeneration: 1, disruptionsAllowed: 0 });
    expect(await costs()).toEqual(['pods', 'virtualmachineinstances', 'poddisruptionbudgets']);
  });

  it('lets them pass for a pod that is not ready, too, where it keeps that', async () => {
    await evicted();
    putPod({}, 'False');
    putBudget({ observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 1 });
    expect(await evicted()).toBe('200');
  });

  it.each<[string, () => void]>([
    ['none is there', () => undefined],
    ['it allows one', () => putBudget({ observedGeneration: 1, disruptionsAllowed: 1 })],
    ['it was not counted', () => putBudget({ observedGeneration: 0, disruptionsAllowed: 0 })],
    ['it says nothing', () => putBudget(undefined)],
    [
      'it is of somebody else',
      () => putBudget({ observedGeneration: 1, disruptionsAllowed: 0 }, { ownerReferences: [] }),
    ],
    [
      'somebody has it cover other pods',
      () =>
        putBudget(
          { observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 1 },
          {},
          { selector: { matchLabels: { app: 'other' } } },
        ),
    ],
    [
      'somebody has it let all pods go that are not ready',
      () => {
        putPod({}, 'False');
        putBudget(
          { observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 0, desiredHealthy: 1 },
          {},
          { unhealthyPodEvictionPolicy: 'AlwaysAllow' },
        );
      },
    ],
    [
      'it does not cover the pod',
      () => {
        putBudget({ observedGeneration: 1, disruptionsAllowed: 0 });
        putPod({ labels: {} });
      },
    ],
    [
      'it lets pods go that are not ready',
      () => {
        putBudget({ observedGeneration: 1, disruptionsAllowed: 0, currentHealthy: 1, desiredHealthy: 1 });
        putPod({}, 'False');
      },
    ],
    [
      'another one covers the pod, too, so that none of them would be asked',
      () => {
        putBudget({ observedGeneration: 1, disruptionsAllowed: 0 });
        hasForeignBudget = true;
      },
    ],
    ['it cannot be asked', () => failures.set('poddisruptionbudgets', new Error('gone'))],
  ])('says no itself where no budget does: %s', async (_, prepare) => {
    await evicted();
    prepare();
    expect(await evicted()).toBe(`429 Evacuation in progress: ${TRIGGERED.slice(4)}`);
  });

  it('notes a plain eviction of what is being drained, and nothing more', async () => {
    put('nodes', { metadata: { name: 'node01' }, spec: { unschedulable: true } });
    await evicted();
    put('nodes', { metadata: { name: 'node01' }, spec: {} });
    writes = [];
    await evicted();
    expect(guest().status?.evacuationCauses?.[0]?.untilUncordon).toBeUndefined();
    put('nodes', { metadata: { name: 'node01' }, spec: { unschedulable: true } });
    await evicted();
    expect(guest().status?.evacuationCauses?.[0]?.untilUncordon).toBeUndefined();
    expect(writes).toEqual(['status']);
  });

  it('tells people of a guest that cannot move, and why', async () => {
    const conditions = [
      { type: 'LiveMigratable', status: 'False', reason: 'DisksNotLiveMigratable', message: 'no' } as const,
    ];
    put('virtualmachineinstances', guestOf('LiveMigrate', { conditions }));
    const answer = '429 VMI vm-cirros is configured with an eviction strategy but is not live-migratable';
    expect(await evicted({ dryRun: true })).toBe(answer);
    expect(told).toEqual([]);
    expect(await evicted()).toBe(answer);
    expect(told).toEqual([
      'Warning EvictionBlocked: the eviction of the VMI was refused, since it cannot be migrated: DisksNotLiveMigratable: no',
    ]);
    expect(writes).toEqual([]);
  });

  it.each<[string, () => void]>([
    ['that nobody knows', () => objects.delete(`pods/${POD}`)],
    ['that nobody can look at', () => failures.set('pods', new Error('down'))],
    ['that belongs to no guest', () => putPod({ ownerReferences: [] })],
    [
      'that belongs to something else',
      () =>
        putPod({
          ownerReferences: [
            { apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'vm-cirros', uid: 'guest', controller: true },
          ],
        }),
    ],
    ['of a guest that is gone', () => objects.delete('virtualmachineinstances/vm-cirros')],
    [
      'of an older guest of the name',
      () =>
        put('virtualmachineinstances', { ...guestOf('LiveMigrate'), metadata: { name: 'vm-cirros', uid: 'younger' } }),
    ],
    [
      'that has ended',
      () => put('pods', { ...(objects.get(`pods/${POD}`) as KubeObject), status: { phase: 'Succeeded' } }),
    ],
  ])('stands aside for a pod %s', async (_, prepare) => {
    prepare();
    expect(await evicted()).toBe('200');
    expect(writes).toEqual([]);
  });

  it('denies where the guest cannot be looked at', async () => {
    failures.set('virtualmachineinstances', new Error('down'));
    expect(await evicted()).toBe('429 kubevirt failed getting the vmi: down');
  });

  it('denies where the guest cannot be marked', async () => {
    failures.set('patch', new Error('no room'));
    expect(await evicted()).toBe('429 kubevirt failed marking the vmi for eviction: no room');
  });

  it('looks again when somebody else writes at the same time', async () => {
    failures.set(
      'patch',
      conflict({ group: 'kubevirt.io', plural: 'virtualmachineinstances' }, 'vm-cirros', 'changed'),
    );
    expect(await evicted()).toBe(TRIGGERED);
    expect(guest().status?.evacuationNodeName).toBe('node01');
  });
});

describe('pods that hold plugged-in volumes', () => {
  const HOTPLUG = 'hp-volume-x';
  const kept = (): Promise<string> => asked(keepHotplugPod, { name: HOTPLUG });
  const owned = (uid: string): void =>
    put('pods', {
      metadata: {
        name: HOTPLUG,
        namespace: 'default',
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: POD, uid, controller: true }],
      },
      status: { phase: 'Running' },
    });
  beforeEach(() => owned('pod'));

  it('are kept while their launcher has a guest', async () => {
    expect(await kept()).toBe(
      `429 cannot evict hotplug pod: ${HOTPLUG} associated with running vmi: vm-cirros in namespace default`,
    );
  });

  it.each<[string, () => void]>([
    ['whose launcher is gone', () => objects.delete(`pods/${POD}`)],
    ['whose launcher is another one', () => owned('older')],
    ['whose owner is no launcher', () => putPod({ ownerReferences: [] })],
    [
      'whose launcher has ended',
      () => put('pods', { ...(objects.get(`pods/${POD}`) as KubeObject), status: { phase: 'Failed' } }),
    ],
    ['whose guest is gone', () => objects.delete('virtualmachineinstances/vm-cirros')],
    ['that are nobody’s', () => put('pods', { metadata: { name: HOTPLUG, namespace: 'default' } })],
  ])('are let go %s', async (_, prepare) => {
    prepare();
    expect(await kept()).toBe('200');
  });

  it('are kept where nobody can say whose they are', async () => {
    failures.set('virtualmachineinstances', new Error('down'));
    expect(await kept()).toBe('429 kubevirt failed getting the vmi: down');
  });
});
