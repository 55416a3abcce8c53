import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { probe, virtualMachine, virtualMachineInstance } from '../support/guest-manifests.ts';
import { VirtualMachines } from '../support/virtual-machines.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let host: VirtualMachines;
beforeAll(async () => (host = await VirtualMachines.start({ nodes: 1 })));
afterAll(() => host.stop());

describe('deleting', () => {
  it('lets the guest shut down, and leaves nothing', async () => {
    await host.create(virtualMachine('polite', probe()));
    await host.lives('polite');
    const guest = await host.guest('polite');
    await host.kubectl.ok('delete vm polite --timeout=60s');
    expect(host.serial(guest)).toMatch(/power=off\s*$/);
    expect(await host.guest('polite')).toBeUndefined();
    await eventually(async () => {
      expect((await host.kubectl.json('get pods')).items).toEqual([]);
      expect(host.qemus()).toEqual([]);
    });
  });

  it('takes the power from a guest that does not shut down in its time', async () => {
    await host.create(virtualMachineInstance('stubborn', probe({ arguments: 'button=ignore', graceSeconds: 2 })));
    await host.lives('stubborn');
    const guest = await host.guest('stubborn');
    await host.delete('VirtualMachineInstance', 'stubborn');
    await host.isGone('stubborn');
    expect(host.serial(guest)).not.toMatch(/power=off/);
    expect(host.qemus()).toEqual([]);
  });

  it('does not wait when told so', async () => {
    const spec = probe({ arguments: 'button=ignore', graceSeconds: 600 });
    await host.create(virtualMachine('hurried', spec, { runStrategy: 'Manual' }));
    await host.power('hurried', 'start');
    await host.lives('hurried');
    await host.cli('stop', 'hurried', '--force', '--grace-period', '0');
    await host.isSaidToBe('hurried', 'Stopped');
    await eventually(() => expect(host.qemus()).toEqual([]));
  });

  it('of the pod by force takes the guest with it, and no second one runs beside it', async () => {
    await host.create(virtualMachine('forced', probe({ arguments: 'button=ignore', graceSeconds: 600 })));
    const { boot } = await host.lives('forced');
    const guest = await host.guest('forced');
    await host.kubectl.ok('delete pods -l vm.kubevirt.io/name=forced --force --grace-period=0');
    expect((await host.livesAnew('forced', guest)).boot).not.toBe(boot);
    expect(host.qemus()).toHaveLength(1);
    await host.cli('stop', 'forced', '--force', '--grace-period', '0');
    await host.isSaidToBe('forced', 'Stopped');
  });

  it('does not make the guest wait that never began', async () => {
    await host.create(virtualMachine('early', probe({ memory: '10Ti' })));
    await host.isSaidToBe('early', 'ErrorUnschedulable');
    await host.kubectl.ok('delete vm early --timeout=60s');
    expect(await host.guest('early')).toBeUndefined();
  });

  it('of the guest alone makes a machine that should run start another', async () => {
    await host.create(virtualMachine('again', probe()));
    const { boot } = await host.lives('again');
    const guest = await host.guest('again');
    await host.delete('VirtualMachineInstance', 'again');
    expect((await host.livesAnew('again', guest)).boot).not.toBe(boot);
    expect(host.qemus()).toHaveLength(1);
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(host.assertNeverDoubled()).toBeGreaterThan(10));
});
