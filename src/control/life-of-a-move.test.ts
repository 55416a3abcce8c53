import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { JsonObject } from '../api/meta.ts';
import { virtualMachineInstances as guests, virtualMachines } from '../kube/kubevirt-resources.ts';
import { ControlScene } from './control.fixture.ts';
import { makeMigrations, PlayedAgents } from './migration/played-agents.fixture.ts';
import { type LauncherPod, pods } from './resources.ts';
import { VirtualMachines } from './vm/virtual-machines.ts';
import { VirtualMachineInstances } from './vmi/virtual-machine-instances.ts';

/** A machine whose guest moves and moves back, by all controllers that have a part in it; scheduler and agents are played. */

let scene: ControlScene;
let agents: PlayedAgents;
beforeEach(async () => {
  scene = new ControlScene(
    (context) => new VirtualMachines(context),
    (context) => new VirtualMachineInstances({ ...context, launcherImage: 'launcher:1' }),
    makeMigrations,
  );
  agents = new PlayedAgents(scene);
  await scene.start();
  await agents.addNodes('node-a', 'node-b');
});
afterEach(() => scene.stop());

function shows(word: string): Promise<void> {
  return scene.until(async () => expect((await scene.get(virtualMachines, 'web')).status?.printableStatus).toBe(word));
}

async function onlyPod(): Promise<LauncherPod> {
  return scene.until(async () => {
    const [pod] = await scene.list(pods);
    if (!pod) throw new Error('there is no pod');
    return pod;
  });
}

/** Runs the guest in its first pod. */
async function boot(): Promise<LauncherPod> {
  const pod = await onlyPod();
  const { name = '', uid = '' } = pod.metadata;
  await agents.bind(name, 'node-a');
  await agents.start(name);
  await scene.until(async () => expect((await scene.get(guests, 'web')).status?.phase).toBe('Scheduled'));
  const holder = { node: 'node-a', nodeUID: 'uid-of-node-a', podUID: uid };
  const transitions = (await scene.get(guests, 'web')).status?.phaseTransitionTimestamps ?? [];
  await agents.says('web', {
    phase: 'Running',
    phaseTransitionTimestamps: [...transitions, { phase: 'Running' }] as JsonObject[],
    rightToRun: { epoch: 1, holder },
  });
  return pod;
}

/** Where everybody believes that the guest is, once it is there. */
function isAt(node: string): Promise<void> {
  return scene.until(async () => {
    const { status, metadata } = await scene.get(guests, 'web');
    expect(status?.nodeName).toBe(node);
    expect(metadata.labels).toMatchObject({ 'kubevirt.io/nodeName': node });
    expect(metadata.labels).not.toHaveProperty('kubevirt.io/migrationTargetNodeName');
  });
}

/** The agent of a node that a guest has left ends its pod. */
async function leave(pod: string): Promise<void> {
  await scene.patch(pods, pod, { status: { phase: 'Succeeded' } }, 'status');
}

describe('a machine', () => {
  it('moves with its guest, there and back', async () => {
    const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
    await scene.create(virtualMachines, { metadata: { name: 'web' }, spec: { runStrategy: 'Always', template } });
    const first = await boot();
    await isAt('node-a');
    await shows('Running');

    await agents.run('there', 'web');
    await shows('Migrating');
    const { sourcePod, targetPod = '' } = await agents.state('web');
    expect(sourcePod).toBe(first.metadata.name);
    await scene.until(async () => {
      const { activePods = {} } = (await scene.get(guests, 'web')).status ?? {};
      expect(Object.values(activePods).toSorted()).toEqual(['node-a', 'node-b']);
    });
    await agents.take('web');
    await agents.reaches('there', 'Succeeded');
    await leave(sourcePod ?? '');
    await isAt('node-b');
    await shows('Running');
    await scene.until(async () => {
      const { activePods = {} } = (await scene.get(guests, 'web')).status ?? {};
      expect(Object.values(activePods)).toEqual(['node-b']);
    });

    await agents.move('back', 'web');
    await agents.carryOut('back', 'web', 'node-a');
    await leave(targetPod);
    await isAt('node-a');
    await shows('Running');
    expect((await scene.get(guests, 'web')).status?.rightToRun?.epoch).toBe(3);
  });

  it('stays where it is when its guest does not get away', async () => {
    const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
    await scene.create(virtualMachines, { metadata: { name: 'web' }, spec: { runStrategy: 'Always', template } });
    await boot();
    await agents.run('there', 'web');
    await shows('Migrating');
    await agents.giveUp('web', 'in vain');
    await agents.reaches('there', 'Failed');
    await isAt('node-a');
    await shows('Running');
  });
});
