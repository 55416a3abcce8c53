import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { linux, probe, virtualMachine } from '../support/guest-manifests.ts';
import { conditionOf, VirtualMachines } from '../support/virtual-machines.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let host: VirtualMachines;
beforeAll(async () => (host = await VirtualMachines.start({ nodes: 1, linux: true })));
afterAll(() => host.stop());

async function isConnected(name: string): Promise<void> {
  await eventually(async () => {
    const { status } = await host.guest(name);
    expect(conditionOf({ status }, 'AgentConnected')?.status).toBe('True');
  }, 60_000);
}

describe('an agent inside the guest', () => {
  it('is seen, and what it says of its guest', async () => {
    await host.create(virtualMachine('talkative', linux({ ports: [80] })));
    await host.lives('talkative');
    await isConnected('talkative');
    const { status } = await host.guest('talkative');
    expect(status.guestOSInfo).toMatchObject({ id: 'godwit-guest', machine: 'x86_64' });
  });

  it('is seen still when the agent of the node was killed', async () => {
    await host.replaceAgent('node-1');
    await host.nodesAreReady(1);
    await host.lives('talkative');
    await isConnected('talkative');
  });

  it('is missed where there is none', async () => {
    await host.create(virtualMachine('silent', probe()));
    await host.lives('silent');
    expect(conditionOf(await host.guest('silent'), 'AgentConnected')?.status).not.toBe('True');
  });
});
