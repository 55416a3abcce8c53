import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { linux, probe, virtualMachine } from '../support/guest-manifests.ts';
import { conditionOf, VirtualMachines } from '../support/virtual-machines.ts';

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let host: VirtualMachines;
beforeAll(async () => (host = await VirtualMachines.start({ nodes: 1, linux: true })));
afterAll(() => host.stop());

const info = (name: string): Promise<string> =>
  host.kubectl.ok(
    `get --raw /apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/${name}/guestosinfo`,
  );

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
    expect(JSON.parse(await info('talkative'))).toMatchObject({
      kind: 'VirtualMachineInstanceGuestAgentInfo',
      guestAgentVersion: expect.stringMatching(/^\d/) as string,
      hostname: expect.stringMatching(/./) as string,
      os: status.guestOSInfo,
    });
  });

  it('is seen still when the agent of the node was killed', async () => {
    const before = conditionOf(await host.guest('talkative'), 'AgentConnected');
    await host.killAgent('node-1');
    await host.nodesAreReady(1);
    await host.lives('talkative');
    const said = await eventually(async () => JSON.parse(await info('talkative')) as { hostname: string });
    expect(said.hostname).not.toBe('');
    expect(conditionOf(await host.guest('talkative'), 'AgentConnected')).toEqual(before);
  });

  it('is seen while its guest is held, missed while it boots anew, and seen again', async () => {
    await host.change('talkative', 'pause');
    await host.isSaidToBe('talkative', 'Paused');
    expect(conditionOf(await host.guest('talkative'), 'AgentConnected')?.status).toBe('True');
    await host.change('talkative', 'unpause');
    await host.isSaidToBe('talkative', 'Running');
    // Its own clock stood still, too.
    await eventually(async () => expect(await host.ask('talkative', 'clock')).toContain('set=1'), 60_000);
    await host.change('talkative', 'reset');
    await eventually(async () => expect(conditionOf(await host.guest('talkative'), 'AgentConnected')).toBeUndefined());
    await isConnected('talkative');
  });

  it('is missed where there is none', async () => {
    await host.create(virtualMachine('silent', probe({ machineType: 'q35' })));
    await host.lives('silent');
    expect(conditionOf(await host.guest('silent'), 'AgentConnected')?.status).not.toBe('True');
    await expect(info('silent')).rejects.toThrow(/does not have guest agent connected/);
  });
});

describe('a guest that starts paused', () => {
  it('says nothing until it is let run, whoever dies meanwhile', async () => {
    await host.create(virtualMachine('held', { ...probe(), startStrategy: 'Paused' }));
    await host.isSaidToBe('held', 'Paused');
    const guest = await host.guest('held');
    expect(guest.status.phase).toBe('Running');
    expect(conditionOf(guest, 'Paused')).toMatchObject({ status: 'True', reason: 'PausedByUser' });
    await host.killAgent('node-1');
    await host.nodesAreReady(1);
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(host.serial(guest)).toBe('');
    await eventually(async () => host.cli('unpause', 'held'));
    await host.lives('held');
    await host.isSaidToBe('held', 'Running');
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(host.assertNeverDoubled()).toBeGreaterThan(5));
});
