import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { NAMESPACE } from '../../src/control/control.fixture.ts';
import { type LauncherPod, pods } from '../../src/control/resources.ts';
import { MachineSpecError } from '../../src/hypervisor/machine.ts';
import { virtualMachineInstances, virtualMachines } from '../../src/kube/kubevirt-resources.ts';
import type { SeenStamp } from '../../src/migration/right-to-run/image-stamps.ts';
import { VolumeError } from '../../src/node/volumes/guest-volumes.ts';
import { AgentScene, NODE, nodes } from './agent-scene.ts';
import { Life } from './life.ts';

/** The agent with the real controllers around it, on a host that only says that it runs machines. */

let scene: AgentScene;
beforeEach(async () => {
  scene = new AgentScene();
  await scene.start();
});
afterEach(async () => {
  expect(scene.host.violations).toEqual([]);
  await scene.stop();
});

async function run(): Promise<LauncherPod> {
  await scene.makeGuest();
  const pod = await scene.bind();
  await scene.phaseBecomes('Running');
  return pod;
}

const podOf = async (pod: LauncherPod): Promise<LauncherPod> => scene.get(pods, pod.metadata.name ?? '');
const isGone = (pod: LauncherPod): Promise<void> =>
  scene.until(async () => expect(await scene.find(pods, pod.metadata.name ?? '')).toBeUndefined());

describe('a guest', () => {
  it('is started once it was handed over, and holds the right to run', async () => {
    const pod = await run();
    const { status, metadata } = await scene.guest();
    const { uid: nodeUID } = (await scene.get(nodes, NODE)).metadata;
    expect(status?.rightToRun).toEqual({ epoch: 1, holder: { node: NODE, nodeUID, podUID: pod.metadata.uid } });
    expect(status?.phaseTransitionTimestamps?.map(({ phase }) => phase)).toEqual([
      'Pending',
      'Scheduling',
      'Scheduled',
      'Running',
    ]);
    expect(status?.machine?.type).toBe('microvm');
    expect(metadata.labels?.['kubevirt.io/nodeName']).toBe(NODE);
    expect(scene.host.executing()).toHaveLength(1);
    expect(scene.host.machines[0]?.run).toEqual({
      directory: `/data/runs/${pod.metadata.uid ?? ''}`,
      instance: pod.metadata.uid,
    });
    expect((await podOf(pod)).status).toMatchObject({
      phase: 'Running',
      containerStatuses: [{ name: 'compute', ready: true }],
    });
    expect(await scene.events()).toContain('web Normal Started: VirtualMachineInstance started.');
    await scene.until(async () =>
      expect((await scene.guest()).status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'Ready', status: 'True' }),
      ),
    );
  });
  it('costs three writes to start, and none while it runs', async () => {
    await run();
    expect(scene.agentWrites.map((write) => write.replace(/launcher-.*\//, 'launcher/'))).toEqual([
      `PATCH /api/v1/namespaces/${NAMESPACE}/pods/virt-launcher/status`,
      `PATCH /apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances/web/status`,
      `PATCH /apis/kubevirt.io/v1/namespaces/${NAMESPACE}/virtualmachineinstances/web/status`,
    ]);
    await scene.pass(600_000, 60_000);
    expect(scene.agentWrites).toHaveLength(3);
  });
  it('is ready again when its node was taken for lost, and is not', async () => {
    const pod = await run();
    const { name = '' } = pod.metadata;
    const isReady = async (status: string): Promise<void> => {
      const ready = expect.objectContaining({ type: 'Ready', status });
      expect((await podOf(pod)).status?.conditions).toContainEqual(ready);
      expect((await scene.guest()).status?.conditions).toContainEqual(ready);
    };
    await scene.until(() => isReady('True'));
    await scene.stopAgent();
    const body = { status: { conditions: [{ type: 'Ready', status: 'False' }] } };
    const options = { subresource: 'status' };
    await scene.client.patch(pods, NAMESPACE, name, { type: 'strategic', body }, scene.signal, options);
    await scene.until(() => isReady('False'));
    await scene.startAgent();
    await scene.until(() => isReady('True'));
    expect(scene.host.executing()).toHaveLength(1);
  });
  it('that turns itself off has succeeded', async () => {
    const pod = await run();
    scene.host.machines[0]?.shutsDown();
    const { status } = await scene.phaseBecomes('Succeeded');
    expect(status?.rightToRun).toEqual({ epoch: 2 });
    await scene.until(async () =>
      expect((await podOf(pod)).status).toMatchObject({
        phase: 'Succeeded',
        containerStatuses: [{ state: { terminated: { exitCode: 0, reason: 'GuestShutDown' } } }],
      }),
    );
    await scene.delete(virtualMachineInstances, 'web');
    await isGone(pod);
    await scene.until(async () => expect(await scene.list(virtualMachineInstances)).toEqual([]));
    expect(scene.files.directories).not.toContain(`/data/pods/${pod.metadata.uid ?? ''}`);
  });
  it('whose machine is killed has failed, with the last that it said', async () => {
    const pod = await run();
    scene.host.machines[0]?.ends({ reason: 'Killed', message: 'killed by SIGKILL', log: ['oh', 'no'] });
    expect((await scene.phaseBecomes('Failed')).status?.rightToRun).toEqual({ epoch: 2 });
    await scene.until(async () =>
      expect((await podOf(pod)).status).toMatchObject({
        phase: 'Failed',
        containerStatuses: [{ state: { terminated: { exitCode: 1, message: 'killed by SIGKILL\noh\nno' } } }],
      }),
    );
    expect(await scene.events()).toContain(
      'web Warning Stopped: The VirtualMachineInstance ended: killed by SIGKILL\noh\nno',
    );
  });
  it('that panicked is ended', async () => {
    await run();
    scene.host.machines[0]?.becomes('failed', 'guest-panicked');
    await scene.phaseBecomes('Failed');
    expect(scene.host.alive()).toEqual([]);
  });
  it('whose machine does not start has failed without ever having run', async () => {
    scene.host.startFailure = 'no such kernel';
    await scene.makeGuest();
    await scene.bind();
    const { status } = await scene.phaseBecomes('Failed');
    expect(status?.phaseTransitionTimestamps?.map(({ phase }) => phase)).not.toContain('Running');
    expect(status?.rightToRun).toEqual({ epoch: 2 });
    expect(await scene.events()).toContainEqual(expect.stringContaining('no such kernel'));
  });
  it('begins in a later epoch than the guest before it', async () => {
    const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
    await scene.create(virtualMachines, { metadata: { name: 'web' }, spec: { runStrategy: 'Always', template } });
    await scene.bind();
    await scene.phaseBecomes('Running');
    scene.host.machines[0]?.shutsDown();
    await scene.bind();
    expect((await scene.phaseBecomes('Running')).status?.rightToRun?.epoch).toBe(3);
    expect(scene.host.machines).toHaveLength(2);
  });
});

describe('a guest that is to go', () => {
  it('is asked to, and gone when it obeys', async () => {
    const pod = await run();
    await scene.delete(virtualMachineInstances, 'web');
    await isGone(pod);
    await scene.until(async () => expect(await scene.list(virtualMachineInstances)).toEqual([]));
    expect(scene.host.machines[0]?.end?.reason).toBe('GuestShutDown');
    // Five, and one that meets a write of the controller, which hears of the deletion at the same time.
    expect(scene.agentWrites.length).toBeLessThanOrEqual(6);
  });
  it('is ended when its time is over', async () => {
    scene.host.obeysPowerButton = false;
    await run();
    await scene.delete(virtualMachineInstances, 'web');
    await scene.pass(25_000);
    expect(scene.host.executing()).toHaveLength(1);
    const presses = scene.host.machines[0]?.commands.filter((each) => each === 'powerDown');
    expect(presses?.length).toBeGreaterThan(2);
    await scene.pass(10_000);
    await scene.until(async () => expect(await scene.list(virtualMachineInstances)).toEqual([]));
    expect(scene.host.machines[0]?.end?.reason).toBe('Quit');
  });
  it('is ended by force when its machine does not answer any more', async () => {
    await run();
    scene.host.isSilent = true;
    await scene.delete(virtualMachineInstances, 'web');
    await scene.pass(20_000);
    expect(scene.host.alive()).toHaveLength(1);
    await scene.pass(15_000);
    await scene.until(async () => expect(await scene.list(virtualMachineInstances)).toEqual([]));
    expect(scene.host.machines[0]?.end?.reason).toBe('Killed');
  });
  it('gets no more time from an agent that was killed meanwhile', async () => {
    scene.host.obeysPowerButton = false;
    await run();
    await scene.delete(virtualMachineInstances, 'web');
    await scene.pass(20_000);
    scene.killAgent();
    await scene.pass(20_000);
    await scene.startAgent();
    await scene.until(async () => expect(await scene.list(virtualMachineInstances)).toEqual([]));
    expect(scene.host.machines[0]?.end?.reason).toBe('Quit');
  });
  it('goes with its pod', async () => {
    const pod = await run();
    await scene.delete(pods, pod.metadata.name ?? '');
    await scene.phaseBecomes('Succeeded');
    await isGone(pod);
  });
  it('is ended at once when its pod is taken away by force', async () => {
    const pod = await run();
    await scene.delete(pods, pod.metadata.name ?? '', 0);
    await scene.phaseBecomes('Failed');
    expect(scene.host.machines[0]?.end?.reason).toBe('Quit');
  });
  it('is ended at once when it was forgotten by force, or its right was seized', async () => {
    const pod = await run();
    await scene.stopControllers();
    await scene.patch(virtualMachineInstances, 'web', { metadata: { finalizers: null } });
    await scene.delete(virtualMachineInstances, 'web');
    await scene.until(() => expect(scene.host.alive()).toEqual([]));
    await scene.until(async () => expect((await podOf(pod)).status?.phase).toBe('Failed'));
    await scene.delete(pods, pod.metadata.name ?? '');
    await isGone(pod);
  });
  it('goes on while the API does not know its kind', async () => {
    await run();
    scene.killAgent();
    const life = new Life();
    await scene.startAgent(life);
    life.unknownPaths = /virtualmachineinstances\/web$/;
    // It is no longer among those that the agent hears of, and cannot be asked for.
    await scene.patch(virtualMachineInstances, 'web', { metadata: { labels: null } });
    await scene.pass(60_000, 10_000);
    expect(scene.host.executing()).toHaveLength(1);
  });
  it('is ended when its right was seized while its agent was away', async () => {
    await run();
    scene.killAgent();
    await scene.patch(virtualMachineInstances, 'web', { status: { rightToRun: { epoch: 2, holder: null } } }, 'status');
    await scene.startAgent();
    await scene.until(() => expect(scene.host.alive()).toEqual([]));
    expect(scene.host.machines[0]?.end?.reason).toBe('Killed');
  });
  it('never starts when it is deleted before', async () => {
    scene.volumeErrors.set('root', new VolumeError('root', 'ErrImagePull', 'there is no image "x"'));
    await scene.makeGuest({ volumes: [{ name: 'root', emptyDisk: { capacity: '1Gi' } }] });
    const pod = await scene.bind();
    await scene.settle();
    await scene.delete(virtualMachineInstances, 'web');
    await isGone(pod);
    await scene.until(async () => expect(await scene.list(virtualMachineInstances)).toEqual([]));
    expect(scene.host.machines).toEqual([]);
  });
});

describe('an agent with the name of another', () => {
  it('starts nothing until the node is its own', async () => {
    await scene.stopAgent();
    const ofAgent = (id: string) =>
      scene.client.patch(
        nodes,
        '',
        NODE,
        { type: 'merge', body: { metadata: { annotations: { 'godwit.dev/agent': id } } } },
        scene.signal,
      );
    await ofAgent('first');
    scene.agentId = 'second';
    await scene.startAgent();
    await scene.makeGuest();
    await scene.bind();
    await scene.phaseBecomes('Scheduled');
    await scene.pass(60_000, 10_000);
    expect(scene.host.machines).toEqual([]);
    expect((await scene.guest()).status?.rightToRun).toBeUndefined();
    await ofAgent('second');
    await scene.phaseBecomes('Running');
  });
});

describe('a node that is left', () => {
  it('has ended its guests within their time, and starts no other', async () => {
    await run();
    let hasLeft = false;
    void scene.agent?.leave().then(() => (hasLeft = true));
    await scene.until(() => expect(hasLeft).toBe(true));
    expect(scene.host.machines[0]?.end?.reason).toBe('GuestShutDown');
    await scene.phaseBecomes('Succeeded');
    expect((await scene.guest()).status?.rightToRun?.holder).toBeUndefined();
    await scene.delete(virtualMachineInstances, 'web');
    await scene.until(async () => expect(await scene.list(virtualMachineInstances)).toEqual([]));
    await scene.makeGuest();
    await scene.bind();
    await scene.pass(60_000);
    expect(scene.host.machines).toHaveLength(1);
  });
  it('ends a guest that does not go by itself', async () => {
    scene.host.obeysPowerButton = false;
    await run();
    let hasLeft = false;
    void scene.agent?.leave().then(() => (hasLeft = true));
    await scene.pass(25_000);
    expect([hasLeft, scene.host.executing().length]).toEqual([false, 1]);
    await scene.pass(10_000);
    expect([hasLeft, scene.host.machines[0]?.end?.reason]).toEqual([true, 'Quit']);
  });
  it('does not wait for a guest that was only about to start', async () => {
    const life = new Life();
    // It gets as far as its journal, and no further.
    life.unknownPaths = /virtualmachineinstances\/web\/status/;
    await scene.stopAgent();
    await scene.startAgent(life);
    await scene.makeGuest();
    await scene.bind();
    await scene.phaseBecomes('Scheduled');
    await scene.pass(5000);
    expect(Buffer.from(scene.journal.contents ?? []).toString()).toContain('"kind":"starting"');
    let hasLeft = false;
    void scene.agent?.leave().then(() => (hasLeft = true));
    await scene.pass(5000);
    expect([hasLeft, scene.host.machines]).toEqual([true, []]);
  });
  it('has nothing to wait for without guests', async () => {
    let hasLeft = false;
    void scene.agent?.leave().then(() => (hasLeft = true));
    await scene.until(() => expect(hasLeft).toBe(true));
  });
});

describe('what a machine needs', () => {
  it('is waited for, by name, until it is there', async () => {
    scene.volumeErrors.set('root', new VolumeError('root', 'ErrImagePull', 'there is no image "x"'));
    await scene.makeGuest({ volumes: [{ name: 'root', emptyDisk: { capacity: '1Gi' } }] });
    const pod = await scene.bind();
    const message = 'volume root: there is no image "x"';
    await scene.until(async () =>
      expect((await podOf(pod)).status).toMatchObject({
        phase: 'Pending',
        containerStatuses: [{ state: { waiting: { reason: 'ErrImagePull', message } } }],
      }),
    );
    await scene.until(async () =>
      expect((await scene.guest()).status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'Synchronized', status: 'False', reason: 'ErrImagePull', message }),
      ),
    );
    expect(await scene.events()).toContain(`web Warning ErrImagePull: ${message}`);
    await scene.pass(60_000, 5000);
    expect(scene.agentWrites).toHaveLength(1);
    scene.volumeErrors.clear();
    await scene.pass(20_000, 5000);
    const { status } = await scene.phaseBecomes('Running');
    expect(status?.conditions).not.toContainEqual(expect.objectContaining({ type: 'Synchronized' }));
  });
  it('and cannot be had ends the pod, and the guest with it', async () => {
    scene.specError = new MachineSpecError('spec.domain.firmware: not here');
    await scene.makeGuest();
    const pod = await scene.bind();
    await scene.phaseBecomes('Failed');
    expect((await podOf(pod)).status).toMatchObject({ phase: 'Failed', reason: 'InvalidMachine' });
    expect(await scene.events()).toContain('web Warning InvalidMachine: spec.domain.firmware: not here');
  });
});

describe('the image of a claim', () => {
  const claim = { name: 'data', uid: 'uid-of-data' };
  const stamped = (state: 'current' | 'stale'): SeenStamp => ({ state, epoch: 7, vm: 'another', guest: 'default/old' });

  it.each<[string, SeenStamp]>([
    ['that nobody has used', 'blank'],
    ['of another machine', stamped('current')],
  ])('%s is the own of whoever starts on it, on record and beside it', async (_, stamp) => {
    scene.claim = claim;
    scene.stamps.set(claim.uid, stamp);
    await run();
    const { metadata, status } = await scene.guest();
    expect(status?.rightToRun?.volumes).toEqual([{ name: 'data', claimUID: claim.uid, imageEpoch: 1 }]);
    const guest = `${NAMESPACE}/web`;
    expect(scene.stamps.get(claim.uid)).toEqual({ state: 'current', epoch: 1, vm: metadata.uid, guest });
  });
  it('that is left behind when all is prepared ends the pod, and the guest with it', async () => {
    scene.claim = claim;
    scene.stamps.set(claim.uid, stamped('stale'));
    await scene.makeGuest();
    const pod = await scene.bind();
    await scene.phaseBecomes('Failed');
    expect((await podOf(pod)).status).toMatchObject({ phase: 'Failed', reason: 'StaleImage' });
    const told =
      /^web Warning StaleImage: volume data: no guest is started on the image of claim data: it is an old copy/;
    expect(await scene.events()).toContainEqual(expect.stringMatching(told));
    expect(scene.host.machines).toEqual([]);
    expect(scene.stamps.get(claim.uid)).toEqual(stamped('stale'));
  });
});

describe('a pod that is no launcher', () => {
  it('stays pending, with a reason, and goes when it is deleted', async () => {
    const spec = { nodeName: NODE, containers: [{ name: 'app', image: 'app:1' }] };
    const pod = await scene.create(pods, { metadata: { name: 'stranger' }, spec });
    await scene.until(async () =>
      expect((await podOf(pod)).status).toMatchObject({ phase: 'Pending', reason: 'NotALauncher' }),
    );
    expect(await scene.events()).toContainEqual(
      expect.stringMatching(/^stranger Warning NotALauncher: this node runs/),
    );
    await scene.pass(60_000, 10_000);
    expect(scene.agentWrites).toHaveLength(1);
    await scene.delete(pods, 'stranger');
    await isGone(pod);
  });
  it('is not taken for one because it names a guest that there is not', async () => {
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'web', uid: 'x' };
    const metadata = { name: 'liar', ownerReferences: [{ ...owner, controller: true }] };
    await scene.create(pods, { metadata, spec: { nodeName: NODE, containers: [{ name: 'app', image: 'app:1' }] } });
    await scene.settle();
    expect(scene.agentWrites).toEqual([]);
    expect(scene.host.machines).toEqual([]);
  });
});

describe('an agent that comes back', () => {
  it('does nothing at all with a journal that was damaged', async () => {
    await run();
    await scene.stopAgent();
    const bytes = Uint8Array.from(scene.journal.contents ?? []);
    bytes[40] = (bytes[40] ?? 0) ^ 1;
    scene.journal.contents = Buffer.concat([bytes, bytes]);
    await expect(scene.runAgent()).rejects.toThrow('the journal of node node-a cannot be trusted');
    expect(scene.host.executing()).toHaveLength(1);
  });
  it.each(['stopped', 'killed'])('finds the machines that it started, having been %s', async (how) => {
    await run();
    if (how === 'killed') scene.killAgent();
    else await scene.stopAgent();
    const writes = scene.agentWrites.length;
    await scene.startAgent();
    expect(scene.agentWrites).toHaveLength(writes);
    expect(scene.host.machines).toHaveLength(1);
    scene.host.machines[0]?.shutsDown();
    await scene.phaseBecomes('Succeeded');
  });
  it('tells of the end of a machine that nobody saw', async () => {
    await run();
    scene.killAgent();
    scene.host.machines[0]?.ends({ reason: 'Killed', message: 'killed by SIGKILL', log: [] });
    await scene.startAgent();
    expect((await scene.phaseBecomes('Failed')).status?.rightToRun).toEqual({ epoch: 2 });
  });
  it('concludes nothing from a machine that does not answer', async () => {
    await run();
    scene.killAgent();
    scene.host.isSilent = true;
    await scene.startAgent();
    await scene.pass(60_000, 1000);
    expect((await scene.guest()).status?.phase).toBe('Running');
    scene.host.isSilent = false;
    await scene.pass(10_000, 1000);
    scene.host.machines[0]?.shutsDown();
    await scene.phaseBecomes('Succeeded');
  });
  it('leaves a guest paused that was', async () => {
    await run();
    await scene.agent?.access.pause(NAMESPACE, 'web');
    scene.killAgent();
    await scene.startAgent();
    await scene.pass(10_000, 1000);
    expect(scene.host.machines[0]?.status).toBe('paused');
    expect((await scene.guest()).status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Paused', status: 'True', reason: 'PausedByUser' }),
    );
  });
  it('lets a guest stand that is to start paused, until its owner lets it run', async () => {
    await scene.makeGuest({ startStrategy: 'Paused' });
    await scene.bind();
    await scene.phaseBecomes('Running');
    const isPaused = expect.objectContaining({ type: 'Paused', status: 'True', reason: 'PausedByUser' }) as unknown;
    expect((await scene.guest()).status?.conditions).toContainEqual(isPaused);
    scene.killAgent();
    await scene.startAgent();
    await scene.pass(10_000, 1000);
    expect([scene.host.machines.length, scene.host.executing().length]).toEqual([1, 0]);
    await scene.agent?.access.unpause(NAMESPACE, 'web');
    await scene.until(async () => expect((await scene.guest()).status?.conditions).not.toContainEqual(isPaused));
    expect(scene.host.executing()).toHaveLength(1);
  });
  it('without its journal touches nothing', async () => {
    await run();
    scene.killAgent();
    scene.journal.contents = undefined;
    await scene.startAgent();
    await scene.pass(60_000, 10_000);
    expect(scene.host.executing()).toHaveLength(1);
    expect((await scene.guest()).status?.rightToRun?.epoch).toBe(1);
    expect(await scene.events()).toContainEqual(expect.stringMatching(/^web Warning JournalMissing/));
  });
  it('goes on under the UID of a node that registered anew', async () => {
    await run();
    scene.killAgent();
    await scene.client.delete(nodes, '', NODE, scene.signal);
    await scene.client.create(nodes, { apiVersion: 'v1', kind: 'Node', metadata: { name: NODE } }, scene.signal);
    await scene.startAgent();
    scene.host.machines[0]?.shutsDown();
    expect((await scene.phaseBecomes('Succeeded')).status?.rightToRun).toEqual({ epoch: 2 });
  });
});
