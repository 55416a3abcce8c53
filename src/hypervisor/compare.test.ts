import { describe, expect, it } from 'vitest';
import { type ComparedMachine, differences, placeName } from './compare.ts';
import type { DiskSpec, MachineSpec, NetworkSpec } from './machine.ts';
import { FULL_MACHINE } from './machine.fixture.ts';

const RAM = 1024;
const [disk, ...disks] = FULL_MACHINE.disks as [DiskSpec, ...DiskSpec[]];
const [card, ...cards] = FULL_MACHINE.networks as [NetworkSpec, ...NetworkSpec[]];

function compare(others: Partial<MachineSpec>, more: Partial<ComparedMachine> = {}): readonly string[] {
  const source = { spec: FULL_MACHINE, ramBytes: RAM };
  return differences(source, { ...source, ...more, spec: { ...FULL_MACHINE, ...others } });
}

describe('what must be equal', () => {
  it.each<[what: string, others: Partial<MachineSpec>, expected: RegExp]>([
    ['the UUID', { uuid: 'other' }, /the firmware's UUID is .* and other at the target/],
    ['the serial number', { serial: 'other' }, /the firmware's serial number is .* and other/],
    ['the machine type', { machineType: 'pc-q35-8.0' }, /machine type is pc-q35-7.2 .* and pc-q35-8.0/],
    ['the accelerator', { accelerator: 'tcg' }, /accelerator/],
    ['the processor', { cpu: { ...FULL_MACHINE.cpu, model: 'max' } }, /CPU model is host .* and max/],
    ['its features', { cpu: { ...FULL_MACHINE.cpu, features: [] } }, /features is -vmx .* and empty/],
    ['one processor more', { cpu: { ...FULL_MACHINE.cpu, sockets: 2 } }, /sockets is 1 .* and 2/],
    ['other cores', { cpu: { ...FULL_MACHINE.cpu, cores: 4 } }, /cores/],
    ['other threads', { cpu: { ...FULL_MACHINE.cpu, threads: 1 } }, /threads/],
    ['a missing disk', { disks }, /there is no disk at virtio 4 at the target/],
    ['a disk elsewhere', { disks: [{ ...disk, place: { bus: 'virtio', at: 7 } }, ...disks] }, /no disk at virtio 4/],
    [
      'a disk more',
      { disks: [...disks, disk, { ...disk, place: { bus: 'virtio', at: 7 } }] },
      /at virtio 7 at the source/,
    ],
    ['a disk that cannot be written', { disks: [{ ...disk, isReadOnly: true }, ...disks] }, /read-only/],
    ['a serial number', { disks: [{ ...disk, serial: 'D2' }, ...disks] }, /serial number/],
    ['a cache', { disks: [{ ...disk, cache: 'writethrough' }, ...disks] }, /cache/],
    ['a missing drive', { cdroms: [] }, /no drive at sata 1/],
    ['a MAC address', { networks: [{ ...card, mac: '02:00:00:00:00:09' }, ...cards] }, /MAC address/],
    ['an agent', { agentPlace: { bus: 'virtio', at: 12 } }, /port of an agent at virtio 12 at the source|no port/],
  ])('%s', (_, others, expected) => expect(compare(others).join('; ')).toMatch(expected));

  it('which volume a disk is, where both say so, and how large it is', () => {
    const of = (volume: string, bytes: number): ComparedMachine => ({
      spec: { ...FULL_MACHINE, disks: [{ ...disk, volume }, ...disks] },
      ramBytes: RAM,
      diskBytes: new Map([['virtio 4', bytes]]),
    });
    expect(differences(of('root', 1), of('other', 1))).toEqual([
      'the disk at virtio 4 (volume root) differs: its volume',
    ]);
    expect(differences(of('root', 1), of('root', 2))).toEqual([
      'the size of the disk at virtio 4 (volume root) is 1 at the source and 2 at the target',
    ]);
    expect(differences(of('', 1), of('root', 1))).toEqual([]);
  });

  it('processors as they are now, whatever the machines were started with', () => {
    const started = { ...FULL_MACHINE, cpu: { ...FULL_MACHINE.cpu, sockets: 1, socketsMax: 4 } };
    const grown = { ...FULL_MACHINE, cpu: { ...FULL_MACHINE.cpu, sockets: 2, socketsMax: 4 } };
    const source = { spec: started, ramBytes: RAM };
    const target = { spec: grown, ramBytes: RAM, processorCount: 8 };
    expect(differences({ ...source, processorCount: 8 }, target)).toEqual([]);
    expect(differences(source, target)).toEqual(['the number of processors is 4 at the source and 8 at the target']);
    const without = { ...target, spec: { ...grown, cpu: { ...FULL_MACHINE.cpu, sockets: 2 } } };
    expect(differences({ ...source, processorCount: 8 }, without)).toEqual([
      'the number of sockets is 4 at the source and 2 at the target',
    ]);
  });

  it('memory as it is now, whatever the machines were started with', () => {
    const room = { unitBytes: 1024, slots: 4, plugged: 0 };
    const started = { spec: { ...FULL_MACHINE, memoryRoom: room }, ramBytes: RAM };
    const grown = { spec: { ...FULL_MACHINE, memoryRoom: { ...room, plugged: 2 } }, ramBytes: RAM };
    expect(differences({ ...started, pluggedMemory: 2 }, grown)).toEqual([]);
    expect(differences(started, grown)).toEqual([
      'the number of pieces of plugged memory is 0 at the source and 2 at the target',
    ]);
    expect(differences(started, { spec: FULL_MACHINE, ramBytes: RAM })).toEqual([
      'the room for memory is 4 times 1024 bytes at the source and nothing at the target',
    ]);
  });

  it('sizes of RAM and disks', () => {
    const diskBytes = (bytes: number) => new Map([[placeName(disk.place), bytes]]);
    expect(compare({}, { ramBytes: 2048 })).toEqual(['the size of RAM is 1024 at the source and 2048 at the target']);
    const source = { spec: FULL_MACHINE, ramBytes: RAM, diskBytes: diskBytes(8) };
    expect(differences(source, { ...source, diskBytes: diskBytes(4) })).toEqual([
      'the size of the disk at virtio 4 is 8 at the source and 4 at the target',
    ]);
    expect(differences(source, { ...source, diskBytes: new Map() })).toEqual([]);
  });
});

describe('what may differ', () => {
  it.each<[what: string, others: Partial<MachineSpec>]>([
    ['nothing', {}],
    ['names', { name: 'other' }],
    ['what was needed to boot', { kernel: undefined }],
    ['how disks are stored', { disks: [{ ...disk, path: '/elsewhere', format: 'raw', cache: 'writeback' }, ...disks] }],
    ['the order of devices', { disks: [...disks, disk], networks: [...cards, card] }],
    [
      'where a network goes',
      { networks: [{ ...card, mac: card.mac, backend: { kind: 'tap', interfaceName: 'x' } }, ...cards] },
    ],
    ['that it waits', { incoming: { ramBytes: RAM } }],
    [
      'features said twice',
      {
        cpu: {
          ...FULL_MACHINE.cpu,
          features: [
            { name: 'vmx', isEnabled: true },
            { name: 'vmx', isEnabled: false },
          ],
        },
      },
    ],
  ])('%s', (_, others) => expect(compare(others)).toEqual([]));
});
