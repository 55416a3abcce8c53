import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { RightToRun } from '../api/kubevirt/right-to-run.ts';
import type { VirtualMachine } from '../api/kubevirt/virtual-machine.ts';
import type { VirtualMachineInstance } from '../api/kubevirt/virtual-machine-instance.ts';
import {
  RECEIVER_ANNOTATION,
  RESTORE_STRATEGY_ANNOTATION,
  SYNCHRONIZATION_FINALIZER,
} from '../api/kubevirt/well-known.ts';
import type { JsonObject } from '../api/meta.ts';
import {
  virtualMachineInstanceMigrations,
  virtualMachineInstances,
  virtualMachines,
} from '../kube/kubevirt-resources.ts';
import { ControlScene } from './control.fixture.ts';
import { type LauncherPod, pods } from './resources.ts';
import { makeGuest } from './vm/make-guest.ts';
import { VirtualMachines } from './vm/virtual-machines.ts';
import { VirtualMachineInstances } from './vmi/virtual-machine-instances.ts';

/** Machines whose guests go to other objects, and those whose guests come from there. The tests play the agents. */

let scene: ControlScene;
beforeEach(async () => {
  scene = new ControlScene(
    (context) => new VirtualMachines(context),
    (context) => new VirtualMachineInstances({ ...context, launcherImage: 'launcher:1' }),
  );
  await scene.start();
});
afterEach(() => scene.stop());

const HERE = { node: 'node-a', nodeUID: 'node-uid-a', podUID: 'pod-a' };
const THERE = { node: 'node-b', nodeUID: 'node-uid-far', podUID: 'pod-far' };
const AWAY: RightToRun = { epoch: 2, holder: THERE, across: true };

function make(
  spec: Partial<VirtualMachine['spec']>,
  annotations: Record<string, string> = {},
): Promise<VirtualMachine> {
  const template = { spec: { domain: { devices: {}, memory: { guest: '64Mi' } } } };
  return scene.create(virtualMachines, { metadata: { name: 'web', annotations }, spec: { template, ...spec } });
}

const machine = (): Promise<VirtualMachine> => scene.get(virtualMachines, 'web');
const guest = (): Promise<VirtualMachineInstance> => scene.get(virtualMachineInstances, 'web');
const told = (status: JsonObject): Promise<void> => scene.patch(virtualMachineInstances, 'web', { status }, 'status');
const record = (next: RightToRun): Promise<void> =>
  told({ rightToRun: { successor: null, across: null, ...(next as unknown as JsonObject) } });
const shows = (word: string): Promise<void> =>
  scene.until(async () => expect((await machine()).status?.printableStatus).toBe(word));
const isGone = (): Promise<void> =>
  scene.until(async () => expect(await scene.find(virtualMachineInstances, 'web')).toBeUndefined());

/** Plays the garbage collector and the kubelet for pods that are to go. */
async function endPods(): Promise<void> {
  for (const { metadata } of await scene.list(pods)) {
    const { name = '' } = metadata;
    await scene.delete(pods, name, 0);
    await scene.patch(pods, name, { metadata: { finalizers: null } }).catch(() => undefined);
  }
}

/** A guest runs here, and is about to go to `east/web`. */
async function running(): Promise<void> {
  await scene.until(guest);
  await record({ epoch: 1, holder: HERE });
  const targetState = { domainNamespace: 'east', domainName: 'web' };
  await told({ phase: 'Running', nodeName: 'node-a', migrationState: { targetState } });
  await record({ epoch: 1, holder: HERE, successor: THERE, across: true });
}

describe('a machine whose guest goes away', () => {
  it.each<[Partial<VirtualMachine['spec']>, Partial<VirtualMachine['spec']>]>([
    [{ runStrategy: 'Always' }, { runStrategy: 'Halted' }],
    [{ runStrategy: 'RerunOnFailure' }, { runStrategy: 'Halted' }],
    [{ runStrategy: 'Once' }, { runStrategy: 'Halted' }],
    [{ running: true }, { running: false }],
  ])('of %j is halted as %j, and kept', async (before, after) => {
    await make(before);
    await running();
    await record(AWAY);
    await endPods();
    await isGone();
    await shows('Stopped');
    const { spec, status } = await machine();
    expect(spec).toMatchObject(after);
    expect(status?.rightToRun).toEqual({ epoch: 2, grantedAway: true });
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({
        type: 'GuestMovedAway',
        status: 'True',
        message: expect.stringMatching(
          /^The guest went to east\/web on node node-b: .*godwit reclaim web -n shop/,
        ) as string,
      }),
    );
    expect(await scene.events()).toContain(
      'web Normal GuestMovedAway: The guest went to east/web on node node-b: the virtual machine is halted, and kept',
    );
  });

  it('says of its guest that it is over, and was on its own node', async () => {
    await make({ runStrategy: 'Always' });
    await running();
    scene.hold('virtualmachines');
    const labelled = async (): Promise<void> =>
      expect((await guest()).metadata.labels?.['kubevirt.io/nodeName']).toBe('node-a');
    await scene.until(labelled);
    const far = { ...THERE, node: 'node-z' };
    await record({ epoch: 1, holder: HERE });
    await record({ epoch: 1, holder: HERE, successor: far, across: true });
    await record({ ...AWAY, holder: far });
    await scene.until(async () => expect((await guest()).status?.phase).toBe('Succeeded'));
    const { status } = await guest();
    expect(status?.conditions).toContainEqual(
      expect.objectContaining({ type: 'Ready', status: 'False', reason: 'GuestMovedAway' }),
    );
    expect(status?.nodeName).toBe('node-a');
    await labelled();
  });

  it('remembers that before its guest may be forgotten, whoever deletes that', async () => {
    await make({ runStrategy: 'Always' });
    await running();
    await scene.delete(virtualMachineInstances, 'web');
    await endPods();
    // Granted, and not settled: it may yet run here again.
    await scene.pass(10_000);
    expect((await guest()).status?.phase).toBe('Running');
    await record(AWAY);
    await isGone();
    expect((await machine()).status?.rightToRun).toEqual({ epoch: 2, grantedAway: true });
    expect((await machine()).spec.runStrategy).toBe('Halted');
  });

  it('keeps its guest until the other side has heard how it ended', async () => {
    await make({ runStrategy: 'Always' });
    await running();
    const half = { metadata: { name: 'half', finalizers: [SYNCHRONIZATION_FINALIZER] }, spec: { vmName: 'web' } };
    await scene.create(virtualMachineInstanceMigrations, half);
    await record(AWAY);
    await endPods();
    await scene.pass(10_000);
    expect((await guest()).status?.phase).toBe('Succeeded');
    await scene.patch(virtualMachineInstanceMigrations, 'half', { metadata: { finalizers: null } });
    await isGone();
  });

  it.each([
    ['no agent had it, whatever the other side has heard', ['Synchronizing', 'Scheduling', 'Failed'], false],
    ['agents had it', ['PreparingTarget', 'Failed'], true],
    ['it is not over', ['Synchronizing'], true],
  ])(
    'lets a guest go that has ended, and keeps it for a half that agents had, or may yet have: %s',
    async (_, phases, isKept) => {
      await make({ runStrategy: 'Always' });
      await scene.until(guest);
      const half = { metadata: { name: 'half', finalizers: [SYNCHRONIZATION_FINALIZER] }, spec: { vmName: 'web' } };
      await scene.create(virtualMachineInstanceMigrations, half);
      const phaseTransitionTimestamps = phases.map((phase) => ({ phase }));
      const status = { phase: phases.at(-1), phaseTransitionTimestamps } as JsonObject;
      await scene.patch(virtualMachineInstanceMigrations, 'half', { status }, 'status');
      const { uid } = (await guest()).metadata;
      await told({ phase: 'Failed', rightToRun: { epoch: 1 } });
      await scene.delete(virtualMachineInstances, 'web');
      if (isKept) {
        await scene.pass(10_000);
        expect((await guest()).metadata.uid).toBe(uid);
        await scene.patch(virtualMachineInstanceMigrations, 'half', { metadata: { finalizers: null } });
      }
      // There may be another one already.
      await scene.until(async () =>
        expect((await scene.find(virtualMachineInstances, 'web'))?.metadata.uid).not.toBe(uid),
      );
    },
  );

  it('refuses to start it again, and says what can be done', async () => {
    await make({ runStrategy: 'Always' });
    await running();
    await record(AWAY);
    await endPods();
    await isGone();
    await scene.patch(virtualMachines, 'web', { spec: { runStrategy: 'Always' } });
    await scene.until(async () =>
      expect((await machine()).status?.conditions).toContainEqual(
        expect.objectContaining({ type: 'Failure', status: 'True', reason: 'GrantedAway' }),
      ),
    );
    await shows('Stopped');
    expect((await scene.events()).filter((it) => it.includes('Warning GrantedAway')).join()).toContain(
      '--i-have-fenced-the-other-side',
    );
    expect(await scene.find(virtualMachineInstances, 'web')).toBeUndefined();
    // Reclaimed.
    await scene.patch(virtualMachines, 'web', { status: { rightToRun: { epoch: 3, grantedAway: null } } }, 'status');
    await scene.until(guest);
    await scene.until(async () => {
      const types = (await machine()).status?.conditions?.map(({ type }) => type);
      expect(types).not.toContain('Failure');
      expect(types).not.toContain('GuestMovedAway');
    });
  });

  it('does not keep a start for later that it has refused', async () => {
    await make({ runStrategy: 'Manual' });
    await scene.patch(virtualMachines, 'web', { status: { rightToRun: { epoch: 3, grantedAway: true } } }, 'status');
    await scene.patch(virtualMachines, 'web', { status: { stateChangeRequests: [{ action: 'Start' }] } }, 'status');
    await scene.until(async () => expect((await machine()).status?.stateChangeRequests).toBeUndefined());
    expect(await scene.find(virtualMachineInstances, 'web')).toBeUndefined();
  });
});

describe('a machine whose guest comes', () => {
  /** Plays the migration that makes the pod into which the guest comes. */
  async function target(): Promise<LauncherPod> {
    const { metadata } = await guest();
    const { uid = '' } = metadata;
    const owner = { apiVersion: 'kubevirt.io/v1', kind: 'VirtualMachineInstance', name: 'web', uid, controller: true };
    const labels = { 'kubevirt.io': 'virt-launcher', 'kubevirt.io/created-by': uid };
    const containers = [{ name: 'compute', image: 'launcher:1' }];
    const body = {
      metadata: { name: 'virt-launcher-web-target', labels, ownerReferences: [owner], finalizers: ['test/agent'] },
      spec: { containers },
    };
    return scene.create(pods, body as unknown as LauncherPod);
  }
  const waits = (): Promise<void> =>
    scene.until(async () => expect((await guest()).status?.phase).toBe('WaitingForSync'));
  const came = async ({ metadata }: LauncherPod): Promise<void> => {
    const holder = { ...HERE, podUID: metadata.uid ?? '' };
    await told({ rightToRun: { epoch: 5, holder }, phase: 'Running' });
  };

  it('waits without a pod, also when one is made for it', async () => {
    await make({ runStrategy: 'WaitAsReceiver' });
    await waits();
    expect(await scene.list(pods)).toEqual([]);
    await target();
    await scene.pass(5000);
    await waits();
    await shows('WaitingForReceiver');
  });

  it.each([
    ['Always', 'Always'],
    ['Manual', 'Manual'],
    [undefined, 'WaitAsReceiver'],
  ])('takes over the strategy %s: %s', async (restored, strategy) => {
    const annotations: Record<string, string> =
      restored === undefined ? {} : { [RESTORE_STRATEGY_ANNOTATION]: restored };
    await make({ runStrategy: 'WaitAsReceiver' }, annotations);
    await waits();
    await came(await target());
    await shows('Running');
    await scene.until(async () =>
      expect((await guest()).metadata.annotations).not.toHaveProperty([RECEIVER_ANNOTATION]),
    );
    await scene.until(async () => expect((await machine()).spec.runStrategy).toBe(strategy));
    expect((await machine()).status?.rightToRun).toEqual({ epoch: 5 });
  });

  it.each([['Always'], [undefined]])('keeps what it is known by for its next start, then %s', async (restored) => {
    const annotations: Record<string, string> =
      restored === undefined ? {} : { [RESTORE_STRATEGY_ANNOTATION]: restored };
    await make({ runStrategy: 'WaitAsReceiver' }, annotations);
    await waits();
    // As the migration makes it what the other one is.
    const firmware = { uuid: '5d307ca9-b3ef-428c-8861-06e72d69f223', serial: 'S-1' };
    const [network] = (await guest()).spec.domain.devices.interfaces ?? [];
    const interfaces = [{ ...network, macAddress: '02:00:00:00:00:17' }];
    await scene.patch(virtualMachineInstances, 'web', { spec: { domain: { firmware, devices: { interfaces } } } });
    await came(await target());
    await scene.until(async () => expect((await machine()).spec.runStrategy).toBe(restored ?? 'WaitAsReceiver'));
    await scene.until(async () =>
      expect((await machine()).spec.template.spec?.domain).toMatchObject({ firmware, devices: { interfaces } }),
    );
    await scene.pass(5000);
    expect((await machine()).status?.conditions?.map(({ type }) => type)).not.toContain('RestartRequired');
    const { guest: next } = makeGuest(await machine(), { sizing: {}, configuration: {}, isReceiver: false });
    expect(next?.spec.domain).toMatchObject({ firmware, devices: { interfaces } });
  });

  it('does not run it because it began to receive it', async () => {
    await make({ runStrategy: 'WaitAsReceiver' }, { [RESTORE_STRATEGY_ANNOTATION]: 'Always' });
    await waits();
    await target();
    await told({ migrationState: { completed: true, failed: true, failureReason: 'cancelled' } });
    await scene.pass(5000);
    expect((await machine()).spec.runStrategy).toBe('WaitAsReceiver');
    expect((await guest()).status).toMatchObject({ phase: 'WaitingForSync', migrationState: { failed: true } });
    expect((await guest()).metadata.annotations).toHaveProperty([RECEIVER_ANNOTATION], 'true');
  });

  it('gets back what it gave away', async () => {
    await make({ runStrategy: 'Halted' });
    const rightToRun = { epoch: 4, grantedAway: true };
    await scene.patch(virtualMachines, 'web', { status: { rightToRun } }, 'status');
    await scene.patch(virtualMachines, 'web', { spec: { runStrategy: 'WaitAsReceiver' } });
    await waits();
    expect((await machine()).status?.rightToRun).toEqual(rightToRun);
    await came(await target());
    await scene.until(async () => expect((await machine()).status?.rightToRun).toEqual({ epoch: 5 }));
  });

  it('is deleted only once it is settled whether the guest has come', async () => {
    await make({ runStrategy: 'WaitAsReceiver' });
    await waits();
    await target();
    await scene.delete(virtualMachines, 'web');
    await scene.pass(5000);
    // Its pod is to go, and its agent has not said yet what became of what it received.
    expect((await guest()).status?.phase).toBe('WaitingForSync');
    await endPods();
    await isGone();
    await scene.until(async () => expect(await scene.find(virtualMachines, 'web')).toBeUndefined());
  });

  it('waits no more when it is to do something else', async () => {
    await make({ runStrategy: 'WaitAsReceiver' });
    await waits();
    const { metadata } = await guest();
    await scene.patch(virtualMachines, 'web', { spec: { runStrategy: 'Always' } });
    await scene.until(async () => expect((await guest()).metadata.uid).not.toBe(metadata.uid));
    expect((await guest()).metadata.annotations).not.toHaveProperty([RECEIVER_ANNOTATION]);
  });
});
