import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { probe, virtualMachine } from '../support/guest-manifests.ts';
import { VirtualMachines } from '../support/virtual-machines.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

const NODES = ['node-1', 'node-2'];
let host: VirtualMachines;
beforeAll(async () => {
  host = await VirtualMachines.start({ nodes: NODES.length });
  for (const name of ['one', 'other']) await host.create(virtualMachine(name, probe()));
  for (const name of ['one', 'other']) await host.lives(name);
});
afterAll(() => host.stop());

describe('godwit down', () => {
  it('ends everything but the guests, which are found again', async () => {
    const { boot } = await host.lives('one');
    const guest = await host.guest('one');
    await host.cli('down');
    expect(NODES.map((node) => host.agentOf(node))).toEqual([undefined, undefined]);
    expect(host.qemus()).toHaveLength(2);
    const heard = host.signs(guest).length;
    await eventually(() => expect(host.signs(guest).length).toBeGreaterThan(heard + 10));

    await host.godwit.start();
    await host.nodesAreReady(NODES.length);
    expect((await host.lives('one')).boot).toBe(boot);
    expect((await host.guest('one')).metadata.uid).toBe(guest.metadata.uid);
  });

  it('that is to stop virtual machines lets them shut down first; they start when everything does', async () => {
    const [one, other] = [await host.guest('one'), await host.guest('other')];
    await host.cli('down', '--stop-vms');
    expect(host.qemus()).toEqual([]);
    for (const guest of [one, other]) expect(host.serial(guest)).toMatch(/power=off\s*$/);

    await host.godwit.start();
    for (const guest of [one, other]) {
      const { boot } = await host.livesAnew(guest.metadata.name, guest);
      expect(boot).not.toBe(host.signs(guest)[0]?.boot);
    }
  });

  it('finds nothing to do the second time', async () => {
    await host.cli('down', '--stop-vms');
    expect(await host.cli('down')).toContain('Nothing runs');
    expect(host.assertNeverDoubled()).toBeGreaterThan(10);
    await host.godwit.start();
  });
});
