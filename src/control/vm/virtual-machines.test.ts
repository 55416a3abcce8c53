import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { VirtualMachine } from '../../api/kubevirt/virtual-machine.ts';
import type {
  VirtualMachineInstance,
  VirtualMachineInstancePhase,
} from '../../api/kubevirt/virtual-machine-instance.ts';
import type { JsonObject } from '../../api/meta.ts';
import { INSTANCETYPE_MACHINE, objectsOf } from '../../api/kubevirt/manifests.fixture.ts';
import { ControlScene } from '../control.fixture.ts';
import { virtualMachineInstances, virtualMachines } from '../../kube/kubevirt-resources.ts';
import { INSTANCETYPES, PREFERENCES } from '../resources.ts';
import { MACHINE_FINALIZER } from '../../api/kubevirt/well-known.ts';
import { VirtualMachines } from './virtual-machines.ts';

let scene: ControlScene;
beforeEach(async () => {
  scene = new ControlScene((context) => new VirtualMachines(context));
  await scene.start();
});
afterEach(() => scene.stop());

const TEMPLATE = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };

function make(spec: Partial<VirtualMachine['spec']>): Promise<VirtualMachine> {
  return scene.create(virtualMachines, { metadata: { name: 'web' }, spec: { template: TEMPLATE, ...spec } });
}

const machine = (): Promise<VirtualMachine> => scene.get(virtualMachines, 'web');
const guest = (): Promise<VirtualMachineInstance> => scene.get(virtualMachineInstances, 'web');

/** Plays those who run guests. One that ended is not held by them. */
async function play(phase: VirtualMachineInstancePhase, more: JsonObject = {}): Promise<void> {
  const phases = (await guest()).status?.phaseTransitionTimestamps ?? [];
  const phaseTransitionTimestamps = [...phases, { phase }];
  if (phase === 'Succeeded' || phase === 'Failed')
    await scene.patch(virtualMachineInstances, 'web', { metadata: { finalizers: [MACHINE_FINALIZER] } });
  await scene.patch(
    virtualMachineInstances,
    'web',
    { status: { phase, phaseTransitionTimestamps, ...more } },
    'status',
  );
}

/** Waits for a guest that is not this one. */
function another(uid: string | undefined): Promise<VirtualMachineInstance> {
  return scene.until(async () => {
    const found = await guest();
    expect(found.metadata.uid).not.toBe(uid);
    return found;
  });
}

async function isGone(): Promise<void> {
  await scene.until(async () => expect(await scene.find(virtualMachineInstances, 'web')).toBeUndefined());
}

function shows(word: string): Promise<void> {
  return scene.until(async () => expect((await machine()).status?.printableStatus).toBe(word));
}

async function ask(...stateChangeRequests: JsonObject[]): Promise<void> {
  await scene.patch(virtualMachines, 'web', { status: { stateChangeRequests } }, 'status');
}

describe('a machine that always runs', () => {
  it('gets a guest, and tells of its life', async () => {
    await make({ runStrategy: 'Always' });
    const first = await scene.until(guest);
    expect(first.metadata.ownerReferences).toMatchObject([{ kind: 'VirtualMachine', name: 'web', controller: true }]);
    await shows('Starting');
    expect((await machine()).metadata.finalizers).toEqual([MACHINE_FINALIZER]);
    await play('Running', {
      conditions: [
        { type: 'Ready', status: 'True' },
        { type: 'LiveMigratable', status: 'True' },
      ],
    });
    await shows('Running');
    const { status } = await machine();
    expect(status).toMatchObject({ created: true, ready: true, runStrategy: 'Always', observedGeneration: 1 });
    expect(status?.conditions).toMatchObject([
      { type: 'LiveMigratable', status: 'True' },
      { type: 'Ready', status: 'True' },
    ]);
    expect(await scene.events()).toContain(
      'web Normal SuccessfulCreate: Started the virtual machine by creating the new virtual machine instance web',
    );
  });
  it('passes on to its guest what its owner tells the descheduler, also while it runs', async () => {
    await make({ runStrategy: 'Always' });
    await scene.until(guest);
    await play('Running');
    const key = 'descheduler.alpha.kubernetes.io/prefer-no-eviction';
    for (const value of ['true', null]) {
      const template = { metadata: { annotations: { [key]: value } } };
      await scene.patch(virtualMachines, 'web', { spec: { template } });
      await scene.until(async () => expect((await guest()).metadata.annotations?.[key]).toBe(value ?? undefined));
    }
    expect((await guest()).metadata.annotations?.['kubevirt.io/vm-generation']).toBe('1');
  });
  it('gets another one when it ends, with the same identity and a later epoch to begin in', async () => {
    await make({ runStrategy: 'Always' });
    const first = await scene.until(guest);
    const holder = { node: 'a', nodeUID: 'b', podUID: 'c' };
    const volumes = [{ name: 'root', claimUID: 'd', imageEpoch: 3 }];
    await play('Running', { rightToRun: { epoch: 4, holder, volumes } });
    await play('Succeeded');
    const second = await another(first.metadata.uid);
    expect(second.spec.domain.firmware).toEqual(first.spec.domain.firmware);
    expect(second.spec.domain.devices.interfaces).toEqual(first.spec.domain.devices.interfaces);
    expect((await machine()).status?.rightToRun).toEqual({ epoch: 4, volumes });
    expect((await machine()).status?.startFailure).toBeUndefined();
  });
  it('waits longer and longer for one that cannot start', async () => {
    await make({ runStrategy: 'Always' });
    for (let failures = 1; failures <= 3; failures++) {
      const { metadata } = await scene.until(guest);
      const message = `failure ${failures}`;
      await play('Failed', { conditions: [{ type: 'Synchronized', status: 'False', reason: 'Killed', message }] });
      await isGone();
      await shows('CrashLoopBackOff');
      expect((await machine()).status?.conditions).toContainEqual(
        expect.objectContaining({
          type: 'Failure',
          status: 'True',
          reason: 'CrashLoopBackOff',
          message: `the guest ended before it ran: Killed: ${message}`,
        }),
      );
      const { startFailure } = (await machine()).status ?? {};
      expect(startFailure).toMatchObject({ consecutiveFailCount: failures, lastFailedVMIUID: metadata.uid });
      await scene.pass(10_000 * failures ** 2 - 1000, 5000);
      expect(await scene.find(virtualMachineInstances, 'web')).toBeUndefined();
      await scene.pass(5000 * failures ** 2 + 2000, 5000);
    }
    await scene.until(guest);
    expect((await machine()).status?.conditions?.some(({ type }) => type === 'Failure')).toBe(true);
    await play('Running');
    await scene.until(async () => expect((await machine()).status?.startFailure).toBeUndefined());
    expect((await machine()).status?.conditions?.some(({ type }) => type === 'Failure')).toBe(false);
  });
  it('is restarted on request', async () => {
    await make({ runStrategy: 'Always' });
    const { metadata } = await scene.until(guest);
    await play('Running');
    await ask({ action: 'Stop', uid: metadata.uid ?? '' }, { action: 'Start' });
    await shows('Stopping');
    await play('Succeeded');
    await another(metadata.uid);
    await scene.until(async () => expect((await machine()).status?.stateChangeRequests).toBeUndefined());
  });
  it('loses its guest when it is halted', async () => {
    await make({ runStrategy: 'Always' });
    await scene.until(guest);
    await play('Running');
    await scene.patch(virtualMachines, 'web', { spec: { runStrategy: 'Halted' } });
    await shows('Stopping');
    await play('Succeeded');
    await isGone();
    await shows('Stopped');
    const { status } = await machine();
    expect(status).not.toHaveProperty('created');
    expect(status?.conditions).toMatchObject([{ type: 'Ready', status: 'False', reason: 'VMINotExists' }]);
  });
  it('goes only after its guest', async () => {
    await make({ runStrategy: 'Always' });
    await scene.until(guest);
    await play('Running');
    await scene.delete(virtualMachines, 'web');
    await shows('Terminating');
    await scene.until(async () => expect((await guest()).metadata.deletionTimestamp).toBeDefined());
    await play('Succeeded');
    await scene.until(async () => expect(await scene.find(virtualMachines, 'web')).toBeUndefined());
    expect(await scene.find(virtualMachineInstances, 'web')).toBeUndefined();
  });
  it('has one guest though the answer to its creation was lost and the controller starts anew', async () => {
    scene.loseAnswerOf = /POST .*virtualmachineinstances/;
    await make({ runStrategy: 'Always' });
    const { metadata } = await scene.until(guest);
    await scene.stopControllers();
    await scene.startControllers();
    await shows('Starting');
    expect((await guest()).metadata.uid).toBe(metadata.uid);
  });
  it('takes no guest that is not its own', async () => {
    await scene.create(virtualMachineInstances, { metadata: { name: 'web' }, spec: TEMPLATE.spec });
    await make({ runStrategy: 'Always' });
    await scene.until(async () =>
      expect((await machine()).status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'Failure', status: 'True', reason: 'AlreadyExists' }),
      ),
    );
    expect((await machine()).status?.created).toBeUndefined();
  });
});

describe('other strategies', () => {
  it('RerunOnFailure: runs again what failed, and lets rest what ended well', async () => {
    await make({ runStrategy: 'RerunOnFailure' });
    const { metadata } = await scene.until(guest);
    await play('Running');
    await play('Failed');
    const second = await another(metadata.uid);
    await play('Running');
    await play('Succeeded');
    await isGone();
    await shows('Stopped');
    expect(second.metadata.uid).not.toBe(metadata.uid);
  });
  it('Manual: starts and stops as it is told', async () => {
    await make({ runStrategy: 'Manual' });
    await shows('Stopped');
    await ask({ action: 'Start' });
    const { metadata } = await scene.until(guest);
    await play('Running');
    await shows('Running');
    await ask({ action: 'Stop', uid: metadata.uid ?? '' });
    await shows('Stopping');
    await play('Succeeded');
    await isGone();
    await shows('Stopped');
  });
  it('Once: runs once', async () => {
    await make({ runStrategy: 'Once' });
    await scene.until(guest);
    await play('Running');
    await play('Succeeded');
    await shows('Stopped');
    await scene.delete(virtualMachineInstances, 'web');
    await isGone();
    await scene.pass(10_000);
    expect(await scene.find(virtualMachineInstances, 'web')).toBeUndefined();
  });
  it('Halted: a start makes it one that always runs', async () => {
    await make({ running: false });
    await shows('Stopped');
    await ask({ action: 'Start' });
    await scene.until(guest);
    expect((await machine()).spec).toMatchObject({ running: true });
  });
  it('Halted: a paused start makes a guest that starts paused, and only that one', async () => {
    await make({ runStrategy: 'Halted' });
    await shows('Stopped');
    await ask({ action: 'Start', data: { paused: 'true' } });
    const first = await scene.until(guest);
    expect(first.spec.startStrategy).toBe('Paused');
    expect((await machine()).spec.runStrategy).toBe('Always');
    await scene.until(async () => expect((await machine()).status?.stateChangeRequests).toBeUndefined());
    await play('Running');
    await play('Succeeded');
    expect((await another(first.metadata.uid)).spec.startStrategy).toBeUndefined();
  });
  it('WaitAsReceiver: makes a guest that waits', async () => {
    await make({ runStrategy: 'WaitAsReceiver' });
    const { metadata } = await scene.until(guest);
    expect(metadata.annotations).toMatchObject({ 'kubevirt.io/create-migration-target': 'true' });
    await shows('WaitingForReceiver');
  });
  it('WaitAsReceiver: is given the identity of the guest that came, and keeps what is said of it later', async () => {
    await make({ runStrategy: 'WaitAsReceiver' });
    await scene.until(guest);
    const uuid = 'aaaaaaaa-0000-4000-8000-000000000000';
    await scene.patch(virtualMachineInstances, 'web', { spec: { domain: { firmware: { uuid } } } });
    const holder = { node: 'node-a', nodeUID: 'node-uid', podUID: 'pod-uid' };
    await play('Running', { rightToRun: { epoch: 5, holder } });
    const uuidNow = async (): Promise<unknown> => (await machine()).spec.template.spec?.domain.firmware?.uuid;
    await scene.until(async () => expect(await uuidNow()).toBe(uuid));
    const other = 'bbbbbbbb-0000-4000-8000-000000000000';
    await scene.patch(virtualMachines, 'web', {
      spec: { template: { spec: { domain: { firmware: { uuid: other } } } } },
    });
    await scene.until(async () =>
      expect((await machine()).status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'RestartRequired', status: 'True' }),
      ),
    );
    expect(await uuidNow()).toBe(other);
  });
});

describe('instance types and preferences', () => {
  const [, small, , linux] = objectsOf(INSTANCETYPE_MACHINE);
  const spec: Partial<VirtualMachine['spec']> = {
    runStrategy: 'Always',
    instancetype: { kind: 'virtualmachineinstancetype', name: 'small' },
    preference: { kind: 'VirtualMachinePreference', name: 'linux' },
    template: { spec: { domain: { devices: {} } } },
  };
  const instancetypes = INSTANCETYPES.get('virtualmachineinstancetype');
  const preferences = PREFERENCES.get('virtualmachinepreference');
  if (!small || !linux || !instancetypes || !preferences) throw new Error('nothing to try');

  it('are kept as they were, whatever becomes of them', async () => {
    await scene.create(instancetypes, small);
    await scene.create(preferences, linux);
    await make(spec);
    const first = await scene.until(guest);
    expect(first.spec.domain).toMatchObject({ cpu: { cores: 2 }, memory: { guest: '2Gi' } });
    await shows('Starting');
    const { instancetypeRef, preferenceRef } = (await machine()).status ?? {};
    expect(instancetypeRef).toMatchObject({
      name: 'small',
      controllerRevisionRef: { name: expect.stringMatching(/^web-small-/) },
    });
    expect(preferenceRef).toMatchObject({
      name: 'linux',
      controllerRevisionRef: { name: expect.stringMatching(/^web-linux-/) },
    });
    await scene.delete(instancetypes, 'small');
    await play('Running');
    await play('Succeeded');
    expect((await another(first.metadata.uid)).spec.domain.memory).toEqual(first.spec.domain.memory);
  });
  it('that are missing are named in a condition, and had once they are there', async () => {
    await make(spec);
    await scene.until(async () =>
      expect((await machine()).status?.conditions).toContainEqual(
        expect.objectContaining({
          type: 'Failure',
          reason: 'FailedFindInstancetype',
          message: 'VirtualMachineInstancetype small does not exist',
        }),
      ),
    );
    await scene.create(instancetypes, small);
    await scene.create(preferences, linux);
    await scene.pass(20_000, 5000);
    await scene.until(guest);
    await shows('Starting');
    expect((await machine()).status?.conditions?.some(({ type }) => type === 'Failure')).toBe(false);
  });
});

describe('a template that changes', () => {
  const restart = async () => (await machine()).status?.conditions?.find(({ type }) => type === 'RestartRequired');
  const changed = (memory: string): JsonObject => ({
    spec: { template: { spec: { domain: { memory: { guest: memory } } } } },
  });

  it('is told to the guest where it can follow, and taken back where it has not', async () => {
    const sized = (sockets: number): JsonObject => ({ spec: { template: { spec: { domain: { cpu: { sockets } } } } } });
    const sockets = async () => (await guest()).spec.domain.cpu?.sockets;
    await make({ runStrategy: 'Always' });
    await scene.until(async () => expect((await guest()).spec.domain.cpu).toMatchObject({ sockets: 1, maxSockets: 4 }));
    await play('Running', { currentCPUTopology: { sockets: 1, cores: 1, threads: 1 } });
    await scene.patch(virtualMachines, 'web', sized(4));
    await scene.until(async () => expect(await sockets()).toBe(4));
    const { metadata } = await machine();
    await scene.until(async () => expect((await machine()).status?.observedGeneration).toBe(metadata.generation));
    await scene.patch(virtualMachines, 'web', sized(1));
    await scene.until(async () => expect(await sockets()).toBe(1));
    expect(await restart()).toBeUndefined();
    await scene.patch(virtualMachines, 'web', sized(5));
    await scene.until(async () => expect((await restart())?.message).toMatch(/higher than what's available/));
    expect(await sockets()).toBe(1);
    await scene.patch(virtualMachines, 'web', sized(2));
    await scene.until(async () => expect(await sockets()).toBe(2));
    await scene.until(async () => expect(await restart()).toBeUndefined());
  });

  it('asks for a restart, until there is one or it changes back', async () => {
    await make({ runStrategy: 'Always' });
    await scene.until(async () => expect((await guest()).metadata.uid).toBeDefined());
    await play('Running');
    await scene.settle();
    expect(await restart()).toBeUndefined();
    await scene.patch(virtualMachines, 'web', { spec: { template: { metadata: { labels: { a: 'b' } } } } });
    await scene.settle();
    expect(await restart()).toBeUndefined();
    await scene.patch(virtualMachines, 'web', changed('128Mi'));
    await scene.until(async () =>
      expect(await restart()).toMatchObject({
        status: 'True',
        message: 'a non-live-updatable field was changed in the template spec',
      }),
    );
    await scene.patch(virtualMachines, 'web', changed('64Mi'));
    await scene.until(async () => expect(await restart()).toBeUndefined());
    await scene.patch(virtualMachines, 'web', changed('256Mi'));
    await scene.until(async () => expect(await restart()).toBeDefined());
    const { uid } = (await guest()).metadata;
    await play('Succeeded');
    await scene.until(async () => expect((await guest()).metadata.uid).not.toBe(uid));
    await scene.until(async () => expect(await restart()).toBeUndefined());
    expect((await guest()).spec.domain.memory?.guest).toBe('256Mi');
  });
});
