import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { formatTime, type JsonObject } from '../../api/meta.ts';
import { kubeVirts, virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { ControlScene } from '../control.fixture.ts';
import { type LauncherPod, nodes, pods } from '../resources.ts';
import { Disruptions } from './disruptions.ts';

const PREEMPTED = { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler' };
const TAINTED = { ...PREEMPTED, reason: 'DeletionByTaintManager' };

let scene: ControlScene;

beforeEach(async () => {
  scene = new ControlScene((context) => new Disruptions(context));
  await scene.start();
  await scene.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'node-a' } });
  await node({ status: { conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: at(-100) }] } }, 'status');
});
afterEach(() => scene.stop());

const at = (seconds: number): string => formatTime(scene.clock.now() + seconds * 1000);

async function node(body: JsonObject, subresource?: string): Promise<void> {
  const options = subresource === undefined ? {} : { subresource };
  await scene.client.patch(nodes, '', 'node-a', { type: 'merge', body }, scene.signal, options);
}

/** A guest on node-a, with its launcher pod. */
async function runs(name: string, strategy?: string, isLiveMigratable = true): Promise<LauncherPod> {
  const spec = { domain: { devices: {}, memory: { guest: '64Mi' } } };
  const { metadata } = await scene.create(virtualMachineInstances, {
    metadata: { name },
    spec: { ...spec, ...(strategy ? { evictionStrategy: strategy } : {}) } as VirtualMachineInstance['spec'],
  });
  const pod = await launcher(`virt-launcher-${name}`, name, metadata.uid ?? '');
  const { uid: podUID = '' } = pod.metadata;
  const status = {
    phase: 'Running',
    nodeName: 'node-a',
    conditions: [{ type: 'LiveMigratable', status: isLiveMigratable ? 'True' : 'False' }],
    rightToRun: { epoch: 1, holder: { node: 'node-a', nodeUID: 'node-1', podUID } },
  };
  await scene.patch(virtualMachineInstances, name, { status }, 'status');
  return pod;
}

function launcher(name: string, guest: string, uid: string): Promise<LauncherPod> {
  const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: guest, uid, controller: true };
  return scene.create(pods, {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, ownerReferences: [owner] },
    spec: { nodeName: 'node-a', containers: [{ name: 'compute', image: 'i' }], terminationGracePeriodSeconds: 345 },
  });
}

async function disrupt(pod: LauncherPod, condition: JsonObject = PREEMPTED): Promise<void> {
  const { name = '' } = pod.metadata;
  await scene.patch(pods, name, { status: { conditions: [{ ...condition, lastTransitionTime: at(0) }] } }, 'status');
  await scene.delete(pods, name);
}

const mark = async (name: string) => {
  const { evacuationNodeName, evacuationCauses } = (await scene.get(virtualMachineInstances, name)).status ?? {};
  return evacuationNodeName === undefined ? undefined : { node: evacuationNodeName, causes: evacuationCauses };
};

describe('a guest whose pod is being deleted', () => {
  it('is marked when the pod was preempted, with the time by which it must be gone', async () => {
    const pod = await runs('web', 'LiveMigrate');
    await disrupt(pod);
    const { metadata } = await scene.get(pods, 'virt-launcher-web');
    const cause = {
      cause: 'Preemption',
      since: at(0),
      deadline: metadata.deletionTimestamp,
      podUID: pod.metadata.uid,
      message: 'pod virt-launcher-web was preempted to accommodate a pod of higher priority',
    };
    await scene.until(async () => expect(await mark('web')).toEqual({ node: 'node-a', causes: [cause] }));
    await scene.until(async () => expect((await scene.events()).join()).toContain('web Warning Disrupted: pod'));
    await scene.pass(5000);
    expect(scene.writes).toEqual(['PATCH /apis/kubevirt.io/v1/namespaces/shop/virtualmachineinstances/web/status']);
  });

  it('is marked when a taint drove the pod away, beside what it was marked for before', async () => {
    const pod = await runs('web', 'LiveMigrateIfPossible');
    const before = { cause: 'APIEviction', untilUncordon: true };
    const status = { evacuationNodeName: 'node-a', evacuationCauses: [before] };
    await scene.patch(virtualMachineInstances, 'web', { status }, 'status');
    await node({ spec: { taints: [{ key: 'maintenance', effect: 'NoExecute' }] } });
    await disrupt(pod, TAINTED);
    const causes = [before, expect.objectContaining({ cause: 'NoExecuteTaint', podUID: pod.metadata.uid })];
    await scene.until(async () => expect(await mark('web')).toEqual({ node: 'node-a', causes }));
  });

  it('is marked where somebody else moves it', async () => {
    await disrupt(await runs('web', 'External'));
    await scene.until(async () => expect(await mark('web')).toMatchObject({ causes: [{ cause: 'Preemption' }] }));
    await scene.until(async () => expect((await scene.events()).join()).toContain('somebody else is to move it'));
  });

  it('is left alone where it is to stop', async () => {
    const unreachable = { key: 'node.kubernetes.io/unreachable', effect: 'NoExecute' };
    await node({ spec: { taints: [unreachable] } });
    const all = ['stuck', 'unprotected', 'deleted', 'unreachable', 'receiver'];
    await disrupt(await runs('stuck', 'LiveMigrate', false));
    await disrupt(await runs('unprotected'));
    await disrupt(await runs('unreachable', 'LiveMigrate'), TAINTED);
    await runs('deleted', 'LiveMigrate');
    await scene.delete(pods, 'virt-launcher-deleted');
    await runs('receiver', 'LiveMigrate');
    const { uid = '' } = (await scene.get(virtualMachineInstances, 'receiver')).metadata;
    await disrupt(await launcher('virt-launcher-target', 'receiver', uid));
    await scene.pass(5000);
    for (const name of all) expect(await mark(name), name).toBeUndefined();
    expect(scene.writes).toEqual([]);
  });

  it('is left alone while the feature is off, and marked when it is switched on', async () => {
    const gates = async (featureGates: string[]): Promise<void> => {
      const body = { spec: { configuration: { developerConfiguration: { featureGates } } } };
      await scene.client.patch(kubeVirts, 'kubevirt', 'kubevirt', { type: 'merge', body }, scene.signal);
    };
    await gates([]);
    await disrupt(await runs('web', 'LiveMigrate'));
    await scene.pass(5000);
    expect(await mark('web')).toBeUndefined();
    await gates(['PreemptionEvictionLiveMigration']);
    await scene.until(async () => expect(await mark('web')).toMatchObject({ causes: [{ cause: 'Preemption' }] }));
  });

  it('is marked once it can be moved, and by whoever comes after a controller that died', async () => {
    await disrupt(await runs('web', 'LiveMigrate', false));
    await scene.pass(5000);
    await scene.stopControllers();
    const conditions = [{ type: 'LiveMigratable', status: 'True' }];
    await scene.patch(virtualMachineInstances, 'web', { status: { conditions } }, 'status');
    await scene.startControllers();
    await scene.until(async () => expect(await mark('web')).toMatchObject({ causes: [{ cause: 'Preemption' }] }));
  });

  it('must be gone sooner while a critical pod waits for its room', async () => {
    await disrupt(await runs('web', 'LiveMigrate'));
    const deletedMs = Date.parse(at(0));
    const deadline = async () => Date.parse((await mark('web'))?.causes?.[0]?.deadline ?? '') - deletedMs;
    await scene.until(async () => expect(await deadline()).toBe(345_000));
    const spec = { containers: [{ name: 'c', image: 'i' }], priorityClassName: 'system-node-critical' };
    await scene.create(pods, { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'critical' }, spec });
    await scene.patch(pods, 'critical', { status: { nominatedNodeName: 'node-a' } }, 'status');
    await scene.until(async () => expect(await deadline()).toBe(105_000));
    await scene.patch(pods, 'critical', { status: { nominatedNodeName: null } }, 'status');
    await scene.until(async () => expect(await deadline()).toBe(345_000));
  });
});
