import { connect, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { eventually } from '../support/eventually.ts';
import { linux, virtualMachine } from '../support/guest-manifests.ts';
import { signsOfLife } from '../support/guests.ts';
import { VirtualMachines } from '../support/virtual-machines.ts';

/** Guests on the pod's network, which is one of their own behind their node. */

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 });

let host: VirtualMachines;
beforeAll(async () => {
  host = await VirtualMachines.start({ nodes: 2, linux: true });
  for (const name of ['one', 'other']) await host.create(virtualMachine(name, linux({ ports: [80, 7777] })));
  for (const name of ['one', 'other']) {
    await host.lives(name);
    await host.says(await host.guest(name), /^network .*address=10\.0\.2\.15\/24 gateway=10\.0\.2\.2/m);
  }
});
afterAll(() => host.stop());

async function bootBehind(address: string): Promise<string | undefined> {
  const text = await eventually(async () => (await fetch(`http://${address}/`)).text());
  return signsOfLife(text)[0]?.boot;
}

/** Asks over a connection that stays open. */
function asker(address: string): { readonly socket: Socket; readonly ask: (command: string) => Promise<string> } {
  const [hostName = '', port = ''] = address.split(':');
  const socket = connect(Number(port), hostName);
  const lines = createInterface(socket)[Symbol.asyncIterator]();
  return {
    socket,
    ask: async (command) => {
      socket.write(`${command}\n`);
      return String((await lines.next()).value);
    },
  };
}

describe('guests on the network of their pods', () => {
  it('are reached at ports of their node, each at its own', async () => {
    for (const name of ['one', 'other']) {
      const { boot } = await host.lives(name);
      expect(await bootBehind(await host.forwardOf(name, 80))).toBe(boot);
    }
  });

  it('keep a connection through the death of their agent, and of the control plane', async () => {
    const { socket, ask } = asker(await host.forwardOf('one', 7777));
    expect(await ask('ping 1')).toMatch(/pong=1$/);
    await host.killAgent((await host.guest('one')).status.nodeName);
    expect(await ask('ping 2')).toMatch(/pong=2$/);
    await host.godwit.kill();
    expect(await ask('ping 3')).toMatch(/pong=3$/);
    await host.godwit.start();
    expect(await ask('ping 4')).toMatch(/pong=4$/);
    socket.destroy();
    await host.nodesAreReady(2);
  });

  it('tell where they are reached after all that, and after they were started anew', async () => {
    const before = await host.guest('one');
    const address = await host.forwardOf('one', 80);
    expect(await bootBehind(address)).toBe((await host.lives('one')).boot);
    // A control plane that has only just started may not serve the aggregated API yet.
    await eventually(() => host.power('one', 'restart'));
    const { boot } = await host.livesAnew('one', before);
    expect(await bootBehind(await host.forwardOf('one', 80))).toBe(boot);
  });
});

describe('what ran', () => {
  it('never ran twice', () => expect(host.assertNeverDoubled()).toBeGreaterThan(10));
});
