import { assert, constantFrom, integer, property, record } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FULL_MACHINE, SMALL_MACHINE } from '../machine.fixture.ts';
import type { DiskSpec, MachineSpec } from '../machine.ts';
import { commandLine } from './command-line.ts';

const OLD = { major: 7, minor: 2, micro: 22 };
const NEW = { major: 10, minor: 0, micro: 2 };

function build(spec: MachineSpec, version = OLD): { arguments: readonly string[]; ramBytes: number } {
  return commandLine(spec, { version, instance: 'a1-b2' });
}

/** One option per line, as a person would write it. */
function text(spec: MachineSpec, version = OLD): string {
  return `${build(spec, version)
    .arguments.join('\n')
    .replaceAll(/\n(?!-)/g, ' ')}\n`;
}

describe("QEMU's command line", () => {
  const mmioDisk: DiskSpec = {
    place: { bus: 'virtio-mmio', at: 2 },
    path: '/disks/a.raw',
    format: 'raw',
    cache: 'writeback',
  };
  const onPc: MachineSpec = { ...FULL_MACHINE, machineType: 'pc-i440fx-7.2' };
  const incoming: MachineSpec = { ...SMALL_MACHINE, incoming: { ramBytes: 33_562_624 } };
  it.each<[string, MachineSpec]>([
    ['smallest', SMALL_MACHINE],
    ['microvm-with-disk', { ...SMALL_MACHINE, disks: [mmioDisk] }],
    ['q35-with-everything', FULL_MACHINE],
    ['i440fx-with-everything', onPc],
    ['incoming', incoming],
    ['room-for-memory', { ...onPc, memoryRoom: { unitBytes: 128 * 2 ** 20, slots: 8, plugged: 2 } }],
    ['room-for-processors', { ...onPc, cpu: { ...onPc.cpu, sockets: 2, socketsMax: 8 } }],
  ])('is as agreed: %s', async (name, spec) => {
    await expect(text(spec)).toMatchFileSnapshot(`golden/${name}.txt`);
  });

  it('starts paused, sandboxed and free of the configuration of the host, always', () => {
    for (const spec of [SMALL_MACHINE, FULL_MACHINE, onPc, incoming])
      expect(build(spec).arguments).toEqual(
        expect.arrayContaining(['-S', '-nodefaults', '-no-user-config', '-sandbox']),
      );
  });

  it('gives every device on a PCI bus its address', () => {
    for (const spec of [FULL_MACHINE, onPc]) {
      const devices = build(spec)
        .arguments.filter((each) => each.startsWith('{"driver"') && each.includes('"bus":"pci'))
        .map((each) => JSON.parse(each) as { addr?: string });
      expect(devices.length).toBeGreaterThanOrEqual(4);
      expect(devices.filter(({ addr }) => addr === undefined)).toEqual([]);
    }
  });

  it.each<[string, Partial<MachineSpec>, string]>([
    ['an alias', { machineType: 'q35' }, 'no versioned machine type'],
    [
      'more sockets than there may be',
      { cpu: { ...SMALL_MACHINE.cpu, sockets: 3, socketsMax: 2 } },
      '3 sockets are more than 2',
    ],
    [
      'memory without PCI',
      { memoryRoom: { unitBytes: 2 ** 27, slots: 2, plugged: 0 } },
      'memory cannot be plugged into a machine without PCI',
    ],
    [
      'more pieces of memory than there may be',
      { machineType: 'pc-q35-7.2', memoryRoom: { unitBytes: 2 ** 27, slots: 2, plugged: 3 } },
      '3 pieces of memory are not between none and 2',
    ],
    ['another architecture', { machineType: 'virt-7.2' }, 'no versioned machine type'],
    ['PCI on microvm', { disks: [{ ...mmioDisk, place: { bus: 'virtio', at: 4 } }] }, 'has no virtio'],
    ['a drive on microvm', { cdroms: [{ port: 0, path: '/a.iso' }] }, 'has no sata'],
    ['two devices in one place', { disks: [mmioDisk, { ...mmioDisk, path: '/b' }] }, 'two devices'],
    ['a place that is not there', { disks: [{ ...mmioDisk, place: { bus: 'virtio-mmio', at: 8 } }] }, 'not among'],
    ["the host's CPU without KVM", { cpu: { ...SMALL_MACHINE.cpu, model: 'host' } }, 'needs KVM'],
    ['a CPU that smuggles in options', { cpu: { ...SMALL_MACHINE.cpu, model: 'a,b=c' } }, 'no name of a CPU'],
    ['half a processor', { cpu: { ...SMALL_MACHINE.cpu, cores: 0.5 } }, 'no number of processors'],
    ['no memory', { memoryBytes: 0 }, 'no size of memory'],
  ])('refuses %s', (_, change, complaint) => {
    expect(() => build({ ...SMALL_MACHINE, ...change })).toThrow(complaint);
  });

  it('refuses forwards that smuggle in options', () => {
    const [network] = FULL_MACHINE.networks ?? [];
    if (!network) throw new Error('the full machine has a network');
    const forward = { protocol: 'tcp', hostAddress: '1,guestfwd=x', hostPort: 1, guestPort: 1 } as const;
    const networks = [{ ...network, backend: { kind: 'user', forwards: [forward] } as const }];
    expect(() => build({ ...FULL_MACHINE, networks })).toThrow('no IPv4 address');
  });

  it('refuses instances that are no plain names', () => {
    expect(() => commandLine(SMALL_MACHINE, { version: OLD, instance: 'a,b' })).toThrow('instance');
  });
});

describe('the size of RAM', () => {
  const KIB = 1024;

  it('is at least what was asked for, and never one that this QEMU corrupts', () => {
    const cases = record({
      memoryBytes: integer({ min: 1, max: 2 ** 45 }),
      major: integer({ min: 5, max: 12 }),
      accelerator: constantFrom('kvm' as const, 'tcg' as const),
    });
    assert(
      property(cases, ({ memoryBytes, major, accelerator }) => {
        const { ramBytes } = build({ ...SMALL_MACHINE, memoryBytes, accelerator }, { ...OLD, major });
        expect(ramBytes).toBeGreaterThanOrEqual(memoryBytes);
        expect(ramBytes - memoryBytes).toBeLessThanOrEqual(1024 * KIB + 8 * KIB);
        expect(ramBytes % (256 * KIB) === 0).toBe(accelerator === 'kvm' || major >= 9);
      }),
    );
  });

  it("is the source's on a target, whatever this QEMU would have chosen", () => {
    const ramBytes = 33_562_624;
    expect(build({ ...SMALL_MACHINE, incoming: { ramBytes } }, NEW).ramBytes).toBe(ramBytes);
  });

  it('keeps a target from taking in what it would corrupt on the next move', () => {
    const incoming = { ramBytes: 32 * 1024 * KIB };
    expect(() => build({ ...SMALL_MACHINE, incoming }, OLD)).toThrow('would corrupt');
    expect(build({ ...SMALL_MACHINE, incoming }, NEW).ramBytes).toBe(incoming.ramBytes);
  });
});
