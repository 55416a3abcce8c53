import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { realProcesses } from '../../src/env/real-processes.ts';
import type { DevicePlace, DiskSpec } from '../../src/hypervisor/machine.ts';
import type { QemuMachine } from '../../src/hypervisor/qemu/qemu-machine.ts';
import { Console } from '../support/console.ts';
import { Workbench } from '../support/qemu.ts';

/** Guests that start from a disk, as those from somebody else's images do. */

let bench: Workbench;
const machines: QemuMachine[] = [];
beforeAll(async () => (bench = await Workbench.open()));
afterAll(async () => {
  for (const machine of machines) {
    const left = await realProcesses.findByArgument(`null,id=instance-${machine.run.instance}`);
    if (left) await realProcesses.kill(left, 'SIGKILL');
  }
  bench.close();
});

const CASES: readonly [machineType: string, bus: DevicePlace['bus']][] = [
  ['pc-q35-7.2', 'virtio'],
  ['pc-q35-7.2', 'sata'],
  ['pc-i440fx-7.2', 'virtio'],
  ['pc-i440fx-7.2', 'sata'],
];

describe.each(CASES)('a machine of type %s', (machineType, bus) => {
  it(`starts from a disk on ${bus}, in the order that was asked for, and leaves it as it was`, async () => {
    const system = bench.newDisk();
    const image = readFileSync(join(bench.directory, 'probe.img'));
    writeFileSync(system, image);
    const disk = (place: DevicePlace, path: string, bootOrder: number): DiskSpec => {
      return { place, path, format: 'raw', cache: 'writeback', bootOrder };
    };
    const { kernel: _, ...rest } = bench.spec({ machineType });
    const machine = await bench.hypervisor.start(
      {
        ...rest,
        disks: [
          disk({ bus: 'virtio', at: 6 }, bench.newDisk(), 2),
          disk({ bus, at: bus === 'sata' ? 0 : 8 }, system, 1),
        ],
      },
      bench.newRun(),
    );
    machines.push(machine);
    const console = await Console.open(machine);
    await machine.continue();
    expect((await console.next('guest', 'disk')).fields.get('disk')).toBe('ok');
    expect(Number((await console.ask('disk')).get('checked'))).toBe(256);
    await machine.powerDown();
    expect(await machine.ended).toMatchObject({ reason: 'GuestShutDown' });
    expect(readFileSync(system).equals(image)).toBe(true);
  });
});
