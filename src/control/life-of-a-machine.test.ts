import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../api/meta.ts';
import type { VirtualMachine } from '../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstancePhase } from '../api/kubevirt/virtual-machine-instance.ts';
import { ControlScene, NAMESPACE } from './control.fixture.ts';
import { virtualMachineInstances, virtualMachines } from '../kube/kubevirt-resources.ts';
import { type LauncherPod, persistentVolumeClaims, pods } from './resources.ts';
import { VirtualMachines } from './vm/virtual-machines.ts';
import { VirtualMachineInstances } from './vmi/virtual-machine-instances.ts';

/** Both controllers, with the test in the place of scheduler and agent. */

let scene: ControlScene;
beforeEach(async () => {
  scene = new ControlScene(
    (context) => new VirtualMachines(context),
    (context) => new VirtualMachineInstances({ ...context, launcherImage: 'launcher:1' }),
  );
  await scene.start();
});
afterEach(() => scene.stop());

function make(spec: Partial<VirtualMachine['spec']> = {}): Promise<VirtualMachine> {
  const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
  return scene.create(virtualMachines, {
    metadata: { name: 'web' },
    spec: { runStrategy: 'Always', template, ...spec },
  });
}

function shows(word: string): Promise<void> {
  return scene.until(async () => expect((await scene.get(virtualMachines, 'web')).status?.printableStatus).toBe(word));
}

/** Whoever writes a phase notes when it began. */
async function guestSays(status: { phase: VirtualMachineInstancePhase; rightToRun: JsonObject }): Promise<void> {
  const { phaseTransitionTimestamps: before = [] } = (await scene.get(virtualMachineInstances, 'web')).status ?? {};
  const phaseTransitionTimestamps = [...before, { phase: status.phase }];
  await scene.patch(virtualMachineInstances, 'web', { status: { ...status, phaseTransitionTimestamps } }, 'status');
}

/** A pod that nobody has bound. */
function freshPod(): Promise<LauncherPod> {
  return scene.until(async () => {
    const pod = (await scene.list(pods)).find(({ spec }) => !spec?.nodeName);
    if (!pod) throw new Error('there is no fresh pod');
    return pod;
  });
}

/** Schedules the pod, runs it, and runs the guest in it, in a later epoch than all before. */
async function run(): Promise<LauncherPod> {
  const { metadata } = await freshPod();
  const { name = '', uid = '' } = metadata;
  const target = { apiVersion: 'v1', kind: 'Node', name: 'node-a' };
  const binding = { apiVersion: 'v1', kind: 'Binding', metadata: { name }, target };
  await scene.client.post(pods, NAMESPACE, name, 'binding', binding, scene.signal);
  const compute = { name: 'compute', ready: true, restartCount: 0, image: 'launcher:1', imageID: '' };
  const conditions = [{ type: 'Ready', status: 'True' }];
  await scene.patch(pods, name, { status: { phase: 'Running', conditions, containerStatuses: [compute] } }, 'status');
  await scene.until(async () =>
    expect((await scene.get(virtualMachineInstances, 'web')).status?.phase).toBe('Scheduled'),
  );
  const epoch = ((await scene.get(virtualMachines, 'web')).status?.rightToRun?.epoch ?? 0) + 1;
  await guestSays({ phase: 'Running', rightToRun: { epoch, holder: { node: 'node-a', nodeUID: 'n', podUID: uid } } });
  return scene.get(pods, name);
}

/** The guest ended: the agent says so, gives the right back, and its pod is gone. */
async function end({ metadata }: LauncherPod, phase: 'Succeeded' | 'Failed'): Promise<void> {
  const { rightToRun } = (await scene.get(virtualMachineInstances, 'web')).status ?? {};
  await guestSays({ phase, rightToRun: { epoch: (rightToRun?.epoch ?? 0) + 1, holder: null } });
  await scene.until(async () =>
    expect((await scene.get(pods, metadata.name ?? '')).metadata.deletionTimestamp).toBeDefined(),
  );
  await scene.delete(pods, metadata.name ?? '', 0);
}

describe('the life of a machine', () => {
  it('from its making to its end, over a restart', async () => {
    await make();
    await shows('Starting');
    const first = await run();
    await shows('Running');
    await end(first, 'Succeeded');
    const second = await run();
    await shows('Running');
    expect(second.metadata.name).not.toBe(first.metadata.name);
    expect((await scene.get(virtualMachineInstances, 'web')).status?.rightToRun?.epoch).toBe(3);
    await scene.delete(virtualMachines, 'web');
    await shows('Terminating');
    await end(second, 'Succeeded');
    await scene.until(async () => expect(await scene.list(virtualMachines)).toEqual([]));
    expect(await scene.list(virtualMachineInstances)).toEqual([]);
  });
  it('costs few writes, and none while nothing happens', async () => {
    await make();
    await run();
    await shows('Running');
    await scene.until(async () =>
      expect((await scene.get(virtualMachines, 'web')).status).toMatchObject({ ready: true, created: true }),
    );
    expect(scene.writes.length).toBeLessThanOrEqual(WRITES_MAX);
    const before = scene.writes.length;
    await scene.pass(600_000, 60_000);
    expect(scene.writes.slice(before)).toEqual([]);
  });
  it('tells of a claim that is missing, and runs once it is there', async () => {
    const volumes = [{ name: 'root', persistentVolumeClaim: { claimName: 'disk' } }];
    await make({ template: { spec: { domain: { devices: {}, memory: { guest: '64Mi' } }, volumes } } });
    await shows('ErrorPvcNotFound');
    const { conditions } = (await scene.get(virtualMachines, 'web')).status ?? {};
    expect(conditions).toContainEqual(
      expect.objectContaining({
        type: 'Synchronized',
        message: expect.stringContaining('PVC shop/disk does not exist'),
      }),
    );
    const spec = { accessModes: ['ReadWriteMany'], resources: { requests: { storage: '1Gi' } } } as object;
    await scene.create(persistentVolumeClaims, { metadata: { name: 'disk' }, spec });
    await shows('WaitingForVolumeBinding');
    await run();
    await shows('Running');
  });
  it.each([1, 2, 3, 4, 5, 6, 7])('goes on when the controllers die after their write number %d', async (count) => {
    scene.writesLeft = count;
    await make();
    await scene.until(() => expect(scene.writesLeft).toBe(0));
    await scene.stopControllers();
    scene.writesLeft = Number.POSITIVE_INFINITY;
    await scene.startControllers();
    await run();
    await shows('Running');
    expect(await scene.list(pods)).toHaveLength(1);
    expect(await scene.list(virtualMachineInstances)).toHaveLength(1);
  });
});

/** From the manifest to the running guest: 14, and some more where two write at once and one has to begin anew. */
const WRITES_MAX = 19;
