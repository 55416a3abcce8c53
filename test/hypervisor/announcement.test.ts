import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Processes } from '../../src/env/ports.ts';
import { realProcesses } from '../../src/env/real-processes.ts';
import type { MachineSpec } from '../../src/hypervisor/machine.ts';
import type { QemuMachine } from '../../src/hypervisor/qemu/qemu-machine.ts';
import { eventually } from '../support/eventually.ts';
import { Workbench } from '../support/qemu.ts';

/**
 * Who has moved is told to the network, so that it looks for the guest where it is: the test is the network that the card of a
 * real QEMU is plugged into, and sees what comes out of it.
 */

const MAC = '52:54:00:00:00:2a';
const BROADCAST = 'ff:ff:ff:ff:ff:ff';
/** What asks, in the name of a card, who it is: switches learn from it where the card is. */
const REVERSE_ARP = 0x8035;

let bench: Workbench;
const open: { readonly cable: Cable; readonly machine: QemuMachine }[] = [];
beforeAll(async () => (bench = await Workbench.open()));
afterAll(async () => {
  for (const { cable, machine } of open) {
    await machine.quit().catch(() => undefined); // It has ended already.
    cable.unplug();
  }
  bench.close();
});

/** The other end of a machine's network: each datagram is a frame. */
class Cable {
  readonly frames: Buffer[] = [];
  readonly #socket: Socket = createSocket('udp4').on('message', (frame) => this.frames.push(frame));

  static async plug(): Promise<Cable> {
    const cable = new Cable();
    cable.#socket.bind(0, '127.0.0.1');
    await once(cable.#socket, 'listening');
    return cable;
  }

  unplug(): void {
    this.#socket.close();
  }

  /** Starts machines whose cards are plugged into this, where they would have a network of their own. */
  get processes(): Processes {
    const { port } = this.#socket.address();
    const plugged = (argument: string): string =>
      argument.replace(/^user,(id=[^,]+).*$/, `socket,$1,udp=127.0.0.1:${port},localaddr=127.0.0.1:0`);
    return {
      ...realProcesses,
      spawnDetached: (wanted) =>
        realProcesses.spawnDetached({ ...wanted, arguments: wanted.arguments.map((argument) => plugged(argument)) }),
    };
  }

  /** Where those frames went that say where a card is, and whose it is. */
  announcements(): { readonly to: string; readonly from: string }[] {
    return this.frames
      .filter((frame) => frame.length >= 14 && frame.readUInt16BE(12) === REVERSE_ARP)
      .map((frame) => ({ to: addressAt(frame, 0), from: addressAt(frame, 6) }));
  }
}

function addressAt(frame: Buffer, offset: number): string {
  return [...frame.subarray(offset, offset + 6)].map((byte) => byte.toString(16).padStart(2, '0')).join(':');
}

async function start(spec: MachineSpec): Promise<{ machine: QemuMachine; cable: Cable }> {
  const cable = await Cable.plug();
  const hypervisor = Workbench.hypervisor(bench.version, undefined, undefined, cable.processes);
  const machine = await hypervisor.start(spec, bench.newRun());
  open.push({ machine, cable });
  return { machine, cable };
}

const spec = (): MachineSpec => ({
  ...bench.spec(),
  networks: [{ place: { bus: 'virtio-mmio', at: 1 }, mac: MAC, backend: { kind: 'user', forwards: [] } }],
});

/** The announcement of the guest's card, in whole. */
const ANNOUNCED = { to: BROADCAST, from: MAC };

describe('a guest’s card', () => {
  it('is announced when that is asked for, and not before', async () => {
    const { machine, cable } = await start(spec());
    await machine.continue();
    expect(await machine.status()).toBe('running');
    expect(cable.announcements()).toEqual([]);
    await machine.migration.announce();
    await eventually(() => expect(cable.announcements()).toContainEqual(ANNOUNCED));
  });

  it('is announced by its new machine after a move, with the address that it has', async () => {
    const source = await start(spec());
    await source.machine.continue();
    const ramBytes = await source.machine.migration.ramBytes();
    const target = await start({ ...spec(), incoming: { ramBytes } });
    const uri = `unix:${join(target.machine.run.directory, 'migration.sock')}`;
    await target.machine.execute('migrate-incoming', { uri });
    await source.machine.execute('migrate', { uri });
    await eventually(async () => expect(await source.machine.status()).toBe('finished-migrate'));
    await eventually(async () => expect(await target.machine.status()).toBe('paused'));
    await target.machine.continue();
    // As an agent does for whatever guest stood still.
    await target.machine.migration.announce();
    await eventually(() => expect(target.cable.announcements()).toContainEqual(ANNOUNCED));
    expect(source.cable.announcements()).toEqual([]);
  });
});
