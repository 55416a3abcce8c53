import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type {
  VirtualMachineInstance,
  VirtualMachineInstancePhase,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { VirtualMachineInstanceSpec } from '../../api/kubevirt/virtual-machine-instance-spec.ts';
import type { JsonObject } from '../../api/meta.ts';
import { ControlScene, NAMESPACE } from '../control.fixture.ts';
import { virtualMachineInstances } from '../../kube/kubevirt-resources.ts';
import { type LauncherPod, persistentVolumeClaims, pods } from '../resources.ts';
import { GUEST_FINALIZER, MACHINE_FINALIZER } from '../../api/kubevirt/well-known.ts';
import { VirtualMachineInstances } from './virtual-machine-instances.ts';

let scene: ControlScene;
beforeEach(async () => {
  scene = new ControlScene((context) => new VirtualMachineInstances({ ...context, launcherImage: 'launcher:1' }));
  await scene.start();
});
afterEach(() => scene.stop());

function make(spec: Partial<VirtualMachineInstanceSpec> = {}): Promise<VirtualMachineInstance> {
  const domain = { devices: {}, memory: { guest: '64Mi' } };
  return scene.create(virtualMachineInstances, { metadata: { name: 'web' }, spec: { domain, ...spec } });
}

const guest = (): Promise<VirtualMachineInstance> => scene.get(virtualMachineInstances, 'web');

function pod(): Promise<LauncherPod> {
  return scene.until(async () => {
    const [first] = await scene.list(pods);
    if (!first) throw new Error('there is no pod');
    return first;
  });
}

function isIn(phase: VirtualMachineInstancePhase): Promise<void> {
  return scene.until(async () => expect((await guest()).status?.phase).toBe(phase));
}

function hasCondition(condition: object): Promise<void> {
  return scene.until(async () =>
    expect((await guest()).status?.conditions).toContainEqual(expect.objectContaining(condition)),
  );
}

const isGone = (): Promise<void> =>
  scene.until(async () => expect(await scene.find(virtualMachineInstances, 'web')).toBeUndefined());

/** Plays the scheduler, then the agent that has the pod running. */
async function bind(): Promise<LauncherPod> {
  const { metadata } = await pod();
  const { name = '' } = metadata;
  const target = { apiVersion: 'v1', kind: 'Node', name: 'node-a' };
  const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target };
  await scene.client.post(pods, NAMESPACE, name, 'binding', binding, scene.signal);
  return scene.get(pods, name);
}

const runPod = async (): Promise<LauncherPod> => runBound(await bind());

async function runBound({ metadata }: LauncherPod): Promise<LauncherPod> {
  const status = {
    phase: 'Running',
    conditions: [{ type: 'Ready', status: 'True' }],
    containerStatuses: [
      { name: 'compute', ready: true, restartCount: 0, image: 'launcher:1', imageID: '', state: { running: {} } },
    ],
  };
  await scene.patch(pods, metadata.name ?? '', { status }, 'status');
  return scene.get(pods, metadata.name ?? '');
}

/** Plays the agent: takes the right to run the guest, and runs it. */
async function runGuest({ metadata }: LauncherPod): Promise<void> {
  await isIn('Scheduled');
  const holder = { node: 'node-a', nodeUID: 'node-1', podUID: metadata.uid ?? '' };
  await agentSays({ phase: 'Running', rightToRun: { epoch: 1, holder } });
}

async function agentSays(status: JsonObject): Promise<void> {
  await scene.patch(virtualMachineInstances, 'web', { status }, 'status');
}

describe('a guest', () => {
  it('gets a pod, is handed over to the agent of its node, and is ready when it runs', async () => {
    await make();
    const launcher = await pod();
    expect(launcher.metadata.name).toMatch(/^virt-launcher-web-[a-z0-9]{5}$/);
    await isIn('Scheduling');
    expect((await guest()).metadata.finalizers).toContain(GUEST_FINALIZER);
    await hasCondition({ type: 'Ready', status: 'False', reason: 'GuestNotRunning' });
    const running = await runPod();
    await isIn('Scheduled');
    await scene.until(async () =>
      expect((await guest()).metadata.labels).toMatchObject({ 'kubevirt.io/nodeName': 'node-a' }),
    );
    expect((await guest()).status).toMatchObject({
      nodeName: 'node-a',
      activePods: { [running.metadata.uid ?? '']: 'node-a' },
      launcherContainerImageVersion: 'launcher:1',
      migrationMethod: 'LiveMigration',
      qosClass: 'Burstable',
      memory: { guestAtBoot: '64Mi', memoryOverhead: '113Mi' },
      phaseTransitionTimestamps: [{ phase: 'Pending' }, { phase: 'Scheduling' }, { phase: 'Scheduled' }],
    });
    await runGuest(running);
    await hasCondition({ type: 'Ready', status: 'True' });
    await hasCondition({ type: 'LiveMigratable', status: 'True' });
    expect(await scene.events()).toContain(
      `web Normal SuccessfulCreate: Created virtual machine pod ${launcher.metadata.name}`,
    );
  });
  it('has one pod though the answer to its creation was lost and the controller starts anew', async () => {
    scene.loseAnswerOf = /POST .*\/pods$/;
    await make();
    const { metadata } = await pod();
    await scene.stopControllers();
    await scene.startControllers();
    await isIn('Scheduling');
    expect((await scene.list(pods)).map((each) => each.metadata.uid)).toEqual([metadata.uid]);
  });
  it('says when no node fits, and no longer once one does', async () => {
    await make();
    const { metadata } = await pod();
    const message = '0/3 nodes are available: 3 Insufficient memory.';
    const conditions = [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message }];
    await scene.patch(pods, metadata.name ?? '', { status: { conditions } }, 'status');
    await hasCondition({ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message });
    await runPod();
    await isIn('Scheduled');
    expect((await guest()).status?.conditions?.map(({ type }) => type)).not.toContain('PodScheduled');
  });
  it('tells the descheduler by its pod what its owner says, and that it is on its way out', async () => {
    await make();
    const launcher = await runPod();
    await isIn('Scheduled');
    await runGuest(launcher);
    const prefix = 'descheduler.alpha.kubernetes.io/';
    const isTold = (annotations: object): Promise<void> =>
      scene.until(async () => {
        const told = Object.entries((await pod()).metadata.annotations ?? {});
        expect(Object.fromEntries(told.filter(([key]) => key.startsWith(prefix)))).toEqual({
          [`${prefix}request-evict-only`]: '',
          ...annotations,
        });
      });
    await isTold({});
    await scene.patch(virtualMachineInstances, 'web', { metadata: { annotations: { [`${prefix}evict`]: 'true' } } });
    await isTold({ [`${prefix}evict`]: 'true' });
    await scene.patch(virtualMachineInstances, 'web', { status: { evacuationNodeName: 'node-a' } }, 'status');
    await isTold({ [`${prefix}evict`]: 'true', [`${prefix}eviction-in-progress`]: 'true' });
    await scene.patch(virtualMachineInstances, 'web', { status: { evacuationNodeName: null } }, 'status');
    await scene.patch(virtualMachineInstances, 'web', { metadata: { annotations: { [`${prefix}evict`]: null } } });
    await isTold({});
  });
  it('says which claim it waits for', async () => {
    await make({ volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'disk' } }] });
    const message = 'PVC shop/disk does not exist, waiting for it to appear';
    await hasCondition({ type: 'Synchronized', status: 'False', reason: 'FailedPvcNotFound', message });
    await isIn('Pending');
    expect(await scene.list(pods)).toEqual([]);
    await scene.create(persistentVolumeClaims, {
      metadata: { name: 'disk' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } as object,
    });
    await pod();
    await isIn('Scheduling');
    await hasCondition({ type: 'LiveMigratable', status: 'False', reason: 'DisksNotLiveMigratable' });
    expect((await guest()).status?.conditions?.map(({ type }) => type)).not.toContain('Synchronized');
    expect(await scene.events()).toContain(`web Warning FailedPvcNotFound: ${message}`);
  });
  it('says which image is missing', async () => {
    await make();
    const { metadata } = await bind();
    const waiting = { reason: 'ErrImagePull', message: 'no such image: linux' };
    const compute = {
      name: 'compute',
      ready: false,
      restartCount: 0,
      image: 'launcher:1',
      imageID: '',
      state: { waiting },
    };
    await scene.patch(pods, metadata.name ?? '', { status: { containerStatuses: [compute] } }, 'status');
    await hasCondition({ type: 'Synchronized', status: 'False', ...waiting });
  });
  it('says why its pod is refused, and gets it when that is over', async () => {
    await make({ priorityClassName: 'missing' });
    await hasCondition({ type: 'Synchronized', status: 'False', reason: 'FailedCreate' });
    expect(await scene.events()).toContainEqual(
      expect.stringMatching(/^web Warning FailedCreate: Error creating pod: /),
    );
    const classes = {
      group: 'scheduling.k8s.io',
      version: 'v1',
      plural: 'priorityclasses',
      kind: 'PriorityClass',
      namespaced: false,
    };
    await scene.create(classes, { metadata: { name: 'missing' }, value: 5 });
    await scene.pass(15_000, 5000);
    await pod();
  });
  it('fails when its pod is deleted before it ran, and gets no other', async () => {
    await make();
    const { metadata } = await pod();
    await isIn('Scheduling');
    await scene.delete(pods, metadata.name ?? '');
    await isIn('Failed');
    await scene.pass(5000);
    expect(await scene.list(pods)).toEqual([]);
  });
  it('does not fail when its pod is gone while somebody may execute it', async () => {
    await make();
    const launcher = await runPod();
    await runGuest(launcher);
    await scene.delete(pods, launcher.metadata.name ?? '', 0);
    await hasCondition({ type: 'Ready', status: 'False', reason: 'PodNotExists' });
    await isIn('Running');
  });
  it('that comes from elsewhere waits without a pod', async () => {
    const metadata = { name: 'web', annotations: { 'kubevirt.io/create-migration-target': 'true' } };
    await scene.create(virtualMachineInstances, { metadata, spec: { domain: { devices: {} } } });
    await isIn('WaitingForSync');
    expect(await scene.list(pods)).toEqual([]);
  });
});

describe('late news', () => {
  const touch = (): Promise<void> =>
    scene.patch(virtualMachineInstances, 'web', { metadata: { annotations: { touched: 'true' } } });

  it('of its pod make no second one, and no failure', async () => {
    scene.hold('pods');
    await make();
    const { metadata } = await pod();
    await touch();
    await scene.pass(3000);
    expect((await guest()).status?.phase).toBe('Scheduling');
    expect((await guest()).status?.conditions?.map(({ type }) => type)).not.toContain('Synchronized');
    scene.release('pods');
    await scene.settle();
    expect((await guest()).status?.phase).toBe('Scheduling');
    expect((await scene.list(pods)).map((each) => each.metadata.uid)).toEqual([metadata.uid]);
  });
  it('of what was written here keep nobody waiting', async () => {
    await make();
    await isIn('Scheduling');
    await scene.settle();
    scene.hold('virtualmachineinstances');
    const bound = await bind();
    await scene.until(async () => expect((await guest()).status?.activePods).toBeDefined());
    await runBound(bound);
    await isIn('Scheduled');
    scene.release('virtualmachineinstances');
  });
  it('of the guest make no pod for one that is over', async () => {
    await make({ volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'disk' } }] });
    await isIn('Pending');
    await scene.settle();
    scene.hold('virtualmachineinstances');
    await agentSays({ phase: 'Failed' });
    await scene.create(persistentVolumeClaims, {
      metadata: { name: 'disk' },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Gi' } } } as object,
    });
    await scene.pass(3000);
    expect(await scene.list(pods)).toEqual([]);
    scene.release('virtualmachineinstances');
    await scene.pass(3000);
    expect(await scene.list(pods)).toEqual([]);
  });
});

describe('a guest that is deleted', () => {
  it('takes its pod with it before it runs', async () => {
    await make();
    const { metadata } = await pod();
    await isIn('Scheduling');
    await scene.delete(virtualMachineInstances, 'web');
    await isGone();
    expect(await scene.list(pods)).toEqual([]);
    expect(await scene.events()).toContain(`web Normal SuccessfulDelete: Deleted virtual machine pod ${metadata.name}`);
  });
  it('without a pod is gone at once', async () => {
    await make({ volumes: [{ name: 'root', persistentVolumeClaim: { claimName: 'disk' } }] });
    await isIn('Pending');
    await scene.delete(virtualMachineInstances, 'web');
    await isGone();
  });
  it('stays until its agent says that nobody executes it', async () => {
    await make();
    const launcher = await runPod();
    await runGuest(launcher);
    await scene.delete(virtualMachineInstances, 'web');
    const name = launcher.metadata.name ?? '';
    await scene.until(async () => expect((await scene.get(pods, name)).metadata.deletionTimestamp).toBeDefined());
    await scene.delete(pods, name, 0);
    await agentSays({ phase: 'Succeeded' });
    await scene.pass(5000);
    expect((await guest()).metadata.finalizers).toEqual([GUEST_FINALIZER]);
    await agentSays({ rightToRun: { epoch: 2, holder: null } });
    await isGone();
  });
  it('is let go of in the name of its machine, too, where it has none any more', async () => {
    const metadata = { name: 'web', finalizers: [MACHINE_FINALIZER] };
    const domain = { devices: {}, memory: { guest: '64Mi' } };
    await scene.create(virtualMachineInstances, { metadata, spec: { domain } });
    await isIn('Scheduling');
    await scene.delete(virtualMachineInstances, 'web');
    await isGone();
  });
});
