import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { Answer, Anything } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { ExtensionScene } from '../support/extension-scene.ts';

/** Evictions on their way through a server, with no more rights than the extension has. */

const PODS = '/api/v1/namespaces/default/pods';
const GUESTS = '/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const BUDGETS = '/apis/policy/v1/namespaces/default/poddisruptionbudgets';
const SUBRESOURCES = '/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances';
const TRIGGERED = (name: string): string =>
  `admission webhook "virt-launcher-eviction-interceptor.kubevirt.io" denied the request: Eviction triggered evacuation of VMI "default/${name}"`;

let scene: ExtensionScene;
let name = '';
let count = 0;

beforeAll(async () => {
  scene = await ExtensionScene.start();
  const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } };
  await scene.request('POST', '/api/v1/namespaces/default/serviceaccounts', account);
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node01' } };
  (await scene.request('POST', '/api/v1/nodes', node)).expect(201);
});
afterAll(() => scene.stop());
beforeEach(() => void (name = `vm-${++count}`));

const guest = async (): Promise<Anything> => (await scene.request('GET', `${GUESTS}/${name}`)).expect(200).json;

/** A guest that runs in a pod on node01, as far as anybody has written down. */
async function running(evictionStrategy: string, liveMigratable = 'True'): Promise<void> {
  const domain = { devices: {}, memory: { guest: '64Mi' } };
  const body = {
    apiVersion: 'kubevirt.io/v1',
    kind: 'VirtualMachineInstance',
    metadata: { name },
    spec: { domain, evictionStrategy },
  };
  const { uid } = (await scene.request('POST', GUESTS, body)).expect(201).json.metadata;
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name, uid, controller: true };
  const metadata = {
    name: `virt-launcher-${name}`,
    labels: { 'kubevirt.io/created-by': uid },
    ownerReferences: [owner],
  };
  const spec = { nodeName: 'node01', containers: [{ name: 'compute', image: 'i' }] };
  const pod = (await scene.request('POST', PODS, { apiVersion: 'v1', kind: 'Pod', metadata, spec })).expect(201).json;
  await scene.request('PATCH', `${PODS}/${pod.metadata.name}/status`, {
    status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
  });
  const holder = { node: 'node01', nodeUID: 'n', podUID: pod.metadata.uid };
  const conditions = [{ type: 'LiveMigratable', status: liveMigratable, reason: 'DisksNotLiveMigratable' }];
  const status = { phase: 'Running', nodeName: 'node01', rightToRun: { epoch: 1, holder }, conditions };
  (await scene.request('PATCH', `${GUESTS}/${name}/status`, { status })).expect(200);
}

function evict(more: object = {}, query = '', pod = `virt-launcher-${name}`): Promise<Answer> {
  const eviction = { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: pod }, ...more };
  return scene.request('POST', `${PODS}/${pod}/eviction${query}`, eviction);
}

/** Code and message. */
async function answered(answer: Promise<Answer>): Promise<string> {
  const { status, text } = await answer;
  return text === '' ? `${status}` : `${status} ${(JSON.parse(text) as Anything).message ?? ''}`.trim();
}

describe('an eviction', () => {
  it('of a guest that is to be moved marks it, and is denied', async () => {
    await running('LiveMigrate');
    expect(await answered(evict())).toBe(`429 ${TRIGGERED(name)}`);
    expect((await evict()).json).toMatchObject({ reason: 'TooManyRequests', code: 429 });
    expect((await guest()).status).toMatchObject({
      evacuationNodeName: 'node01',
      evacuationCauses: [{ cause: 'APIEviction', message: expect.stringMatching(/^requested by /) as unknown }],
    });
    expect(await answered(evict())).toContain('denied the request: Evacuation in progress: Eviction triggered');
  });

  it('is left to a budget that refuses', async () => {
    await running('External');
    await evict();
    const { uid } = (await guest()).metadata;
    const [pod] = (await scene.request('GET', PODS)).json.items.filter(
      ({ metadata }: Anything) => metadata.name === `virt-launcher-${name}`,
    );
    const { budgetFor } = await import('../../src/migration/eviction/disruption-budget.ts');
    const budget = budgetFor(await guest(), 1);
    (await scene.request('POST', BUDGETS, budget)).expect(201);
    const status = {
      observedGeneration: 1,
      disruptionsAllowed: 0,
      currentHealthy: 1,
      desiredHealthy: 1,
      expectedPods: 1,
    };
    (await scene.request('PATCH', `${BUDGETS}/${budget.metadata.name}/status`, { status })).expect(200);
    expect(pod.metadata.labels['kubevirt.io/created-by']).toBe(uid);
    expect(await answered(evict())).toBe("429 Cannot evict pod as it would violate the pod's disruption budget.");
  });

  it('is refused by us where two budgets cover the pod, for which the server would fail', async () => {
    await running('LiveMigrate');
    const kind = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget' };
    const { budgetFor } = await import('../../src/migration/eviction/disruption-budget.ts');
    const own = budgetFor(await guest(), 1);
    const selector = { matchLabels: { 'kubevirt.io/created-by': (await guest()).metadata.uid } };
    const foreign = { ...kind, metadata: { name: `of-${name}` }, spec: { maxUnavailable: 0, selector } };
    for (const body of [own, foreign]) (await scene.request('POST', BUDGETS, body)).expect(201);
    const status = {
      observedGeneration: 1,
      disruptionsAllowed: 0,
      currentHealthy: 1,
      desiredHealthy: 1,
      expectedPods: 1,
    };
    (await scene.request('PATCH', `${BUDGETS}/${own.metadata.name}/status`, { status })).expect(200);
    expect(await answered(evict())).toBe(`429 ${TRIGGERED(name)}`);
    await eventually(async () => expect(await answered(evict())).toContain('429 admission webhook'));
  });

  it.each([
    ['of the request', {}, '?dryRun=All'],
    ['of the deletion', { deleteOptions: { dryRun: ['All'] } }, ''],
  ])('that is a dry run %s marks nobody', async (_, more, query) => {
    await running('LiveMigrate');
    expect(await answered(evict(more, query))).toBe(`429 ${TRIGGERED(name)}`);
    expect((await guest()).status.evacuationNodeName).toBeUndefined();
  });

  it('of a guest that cannot move is told of', async () => {
    await running('LiveMigrate', 'False');
    expect(await answered(evict())).toContain(
      `VMI ${name} is configured with an eviction strategy but is not live-migratable`,
    );
    await eventually(async () => {
      const { items } = (await scene.request('GET', '/api/v1/namespaces/default/events')).json;
      expect(items.map(({ reason, message }: Anything) => `${reason}: ${message}`)).toContain(
        'EvictionBlocked: the eviction of the VMI was refused, since it cannot be migrated: DisksNotLiveMigratable',
      );
    });
  });

  it('of the descheduler is noted as such', async () => {
    await running('LiveMigrate');
    const pod = `virt-launcher-${name}`;
    await evict({ metadata: { name: pod, annotations: { 'requested-by': 'sigs.k8s.io/descheduler' } } });
    const { metadata, status } = await guest();
    expect(metadata.annotations).toMatchObject({ 'kubevirt.io/eviction-source': 'descheduler' });
    expect(status.evacuationCauses).toMatchObject([{ cause: 'Descheduler' }]);
  });

  it('of a pod on a node that takes no pods is a drain', async () => {
    await running('LiveMigrate');
    (await scene.request('PATCH', '/api/v1/nodes/node01', { spec: { unschedulable: true } })).expect(200);
    await evict();
    expect((await guest()).status.evacuationCauses).toMatchObject([{ untilUncordon: true }]);
    (await scene.request('PATCH', '/api/v1/nodes/node01', { spec: { unschedulable: null } })).expect(200);
  });

  it('of whoever may go is granted', async () => {
    await running('None');
    expect(await answered(evict())).toBe('201');
  });

  it('passes while the extension is down, where no budget is there to refuse it', async () => {
    await running('LiveMigrate');
    await scene.stopExtension();
    expect(await answered(evict())).toBe('201');
    await scene.startExtension();
  });
});

describe('evacuate/cancel', () => {
  const cancel = (body: object = {}, user?: string, what = name): Promise<Answer> =>
    scene.request('PUT', `${SUBRESOURCES}/${what}/evacuate/cancel`, body, user);

  it('lets a guest stay', async () => {
    await running('LiveMigrate');
    await evict();
    expect(await answered(cancel({ dryRun: ['All'] }))).toBe('200');
    expect((await guest()).status.evacuationNodeName).toBe('node01');
    expect(await answered(cancel())).toBe('200');
    const { status } = await guest();
    expect(status.evacuationNodeName).toBeUndefined();
    expect(status.evacuationCauses).toBeUndefined();
    expect(await answered(cancel())).toBe('200');
  });

  it('is refused while the drain taint would mark the guest again', async () => {
    await running('LiveMigrate');
    await evict();
    const taints = [{ key: 'kubevirt.io/drain', effect: 'NoSchedule' }];
    (await scene.request('PATCH', '/api/v1/nodes/node01', { spec: { taints } })).expect(200);
    expect(await answered(cancel())).toBe('400 Node "node01" has NodeDrainTaintKey "kubevirt.io/drain"');
    (await scene.request('PATCH', '/api/v1/nodes/node01', { spec: { taints: null } })).expect(200);
  });

  it('is refused once the pod is terminating', async () => {
    await running('LiveMigrate');
    await evict();
    await scene.request('DELETE', `${PODS}/virt-launcher-${name}`, {});
    expect(await answered(cancel())).toContain(`its pod virt-launcher-${name} is terminating`);
    expect(await answered(evict())).toContain('Eviction request for terminating Pod');
  });

  it('is for those who may move guests', async () => {
    await running('LiveMigrate');
    await scene.bind('default', 'editor', 'kubevirt.io:edit');
    await scene.bind('default', 'mover', 'kubevirt.io:migrate');
    expect((await cancel({}, 'editor')).status).toBe(403);
    expect((await cancel({}, 'mover')).status).toBe(200);
  });
});
