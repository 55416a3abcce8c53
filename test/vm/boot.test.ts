import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { fromDisk, IMAGES, probe, virtualMachine, virtualMachineInstance } from '../support/guest-manifests.ts';
import { conditionOf, VirtualMachines } from '../support/virtual-machines.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let host: VirtualMachines;
beforeAll(async () => (host = await VirtualMachines.start()));
afterAll(() => host.stop());

describe('a virtual machine', () => {
  it('boots on a node, and its status says so as KubeVirt would', async () => {
    await host.create(virtualMachine('plain', probe()));
    const sign = await host.lives('plain');
    expect([sign.memory, sign.disk]).toEqual(['ok', 'none']);
    const guest = await host.guest('plain');
    const { nodeName, activePods, phaseTransitionTimestamps, launcherContainerImageVersion } = guest.status;
    expect(['node-1', 'node-2']).toContain(nodeName);
    expect(Object.values(activePods)).toEqual([nodeName]);
    expect(guest.metadata.labels['kubevirt.io/nodeName']).toBe(nodeName);
    expect(launcherContainerImageVersion).not.toBe('');
    expect(phaseTransitionTimestamps.map(({ phase }: { phase: string }) => phase)).toEqual([
      'Pending',
      'Scheduling',
      'Scheduled',
      'Running',
    ]);
    await eventually(async () => expect(conditionOf(await host.guest('plain'), 'Ready')?.status).toBe('True'));
    expect(conditionOf(guest, 'LiveMigratable')?.status).toBe('True');
    const machine = await host.isSaidToBe('plain', 'Running');
    expect(machine.status).toMatchObject({ created: true, ready: true });
  });

  it('is run by a launcher pod, which kubectl shows', async () => {
    const [pod] = (await host.kubectl.json('get pods -l vm.kubevirt.io/name=plain')).items;
    expect(pod.metadata.name).toMatch(/^virt-launcher-plain-/);
    expect(pod.status).toMatchObject({ phase: 'Running', containerStatuses: [{ name: 'compute', ready: true }] });
    expect(await host.kubectl.ok('get vm,vmi')).toMatch(
      /virtualmachine.*\/plain .*Running +True[^]*virtualmachineinstance.*\/plain .*Running .*node-\d +True/,
    );
  });

  it.each(['q35', 'pc', 'microvm'])(
    'can be a %s, and stays the version that it was started as',
    async (machineType) => {
      await host.create(virtualMachine(`type-${machineType}`, probe({ machineType })));
      await host.lives(`type-${machineType}`);
      const { status } = await host.guest(`type-${machineType}`);
      expect(status.machine.type).toMatch(machineType === 'microvm' ? /^microvm$/ : /^pc-(q35|i440fx)-\d+\.\d+$/);
    },
  );

  it.each(['virtio', 'sata'])('can start from an image, on a disk on %s', async (bus) => {
    const source = { containerDisk: { image: IMAGES.probeDisk } };
    const volumes = [{ name: 'system', source, disk: { disk: { bus } } }];
    await host.create(virtualMachine(`from-${bus}`, fromDisk({ volumes })));
    await host.lives(`from-${bus}`);
  });
});

describe('a guest without a machine', () => {
  it('runs all the same, and is not started again', async () => {
    await host.create(virtualMachineInstance('alone', probe()));
    await host.lives('alone');
    expect(await host.ask('alone', 'ping x')).toMatch(/pong=x/);
    await host.shutDownFromInside('alone');
    await host.reaches('alone', 'Succeeded');
    await host.delete('VirtualMachineInstance', 'alone');
    await host.isGone('alone');
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(host.assertNeverDoubled()).toBeGreaterThan(10));
});
