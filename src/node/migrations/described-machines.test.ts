import { describe, expect, it } from 'vitest';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { placeName } from '../../hypervisor/compare.ts';
import type { Machine } from '../../hypervisor/hypervisor.ts';
import type { DiskSpec } from '../../hypervisor/machine.ts';
import { SMALL_MACHINE } from '../../hypervisor/machine.fixture.ts';
import type { GuestNotes } from '../guests/guest-notes.ts';
import type { Machines } from '../guests/machines.ts';
import {
  claimDifferences,
  describedMachines,
  fileDifferences,
  type MachineDescription,
  sentFiles,
} from './described-machines.ts';

const [OWN, SHARED] = ['virtio 4', 'virtio 5'];

function description(files: Readonly<Record<string, string>>): MachineDescription {
  return {
    machine: { spec: SMALL_MACHINE, ramBytes: 1 },
    copiedDisks: [{ bus: 'virtio', at: 4 }],
    diskFiles: new Map(
      Object.entries(files).map(([place, text]) => {
        const [host = '', file = ''] = text.split('/');
        return [place, { host, file }];
      }),
    ),
  };
}

const compare = (here: Readonly<Record<string, string>>, there: Readonly<Record<string, string>>): readonly string[] =>
  fileDifferences(description(here), sentFiles(description(there).diskFiles));

describe('the files behind the disks of two machines', () => {
  it.each<[string, Record<string, string>, Record<string, string>, RegExp | undefined]>([
    ['one that is copied to another', { [OWN]: 'a/1' }, { [OWN]: 'a/2' }, undefined],
    ['one that is copied to another host', { [OWN]: 'a/1' }, { [OWN]: 'b/1' }, undefined],
    ['one that would be copied onto itself', { [OWN]: 'a/1' }, { [OWN]: 'a/1' }, /copied onto itself/],
    ['one that is shared', { [SHARED]: 'a/1' }, { [SHARED]: 'a/1' }, undefined],
    ['one that is called shared, and is not', { [SHARED]: 'a/1' }, { [SHARED]: 'a/2' }, /not the same file/],
    ['one of another host, of which nobody can tell', { [SHARED]: 'a/1' }, { [SHARED]: 'b/2' }, undefined],
    ['one of which nothing is said', { [SHARED]: 'a/1' }, {}, undefined],
    ['one whose host begins alike', { [SHARED]: 'a/1' }, { [SHARED]: 'ab/2' }, undefined],
  ])('%s', (_, here, there, expected) => {
    const found = compare(here, there).join('; ');
    if (expected) expect(found).toMatch(expected);
    else expect(found).toBe('');
  });
});

const onClaim = (name: string, at = 5): DiskSpec => ({
  volume: 'data',
  place: { bus: 'virtio', at },
  path: `/volumes/${name}/disk.img`,
  claim: { name, uid: `uid-of-${name}` },
  format: 'raw',
  cache: 'none',
});

describe('the claims behind the disks of two machines', () => {
  const differ = (here: string, there: string, isCopied: boolean): string =>
    claimDifferences(
      {
        machine: { spec: { ...SMALL_MACHINE, disks: [onClaim(here)] }, ramBytes: 1 },
        copiedDisks: isCopied ? [{ bus: 'virtio', at: 5 }] : [],
      },
      { ...SMALL_MACHINE, disks: [onClaim(there)] },
    ).join('; ');

  it.each<[string, string, string, boolean, RegExp | undefined]>([
    ['one that both share', 'a', 'a', false, undefined],
    ['one that is copied to another', 'a', 'b', true, undefined],
    ['one that would be taken for another', 'a', 'b', false, /on the claims a and b, and is not copied/],
    ['one that would be copied onto itself', 'a', 'a', true, /copied onto itself/],
  ])('%s', (_, here, there, isCopied, expected) => {
    if (expected) expect(differ(here, there, isCopied)).toMatch(expected);
    else expect(differ(here, there, isCopied)).toBe('');
  });
});

describe('disks that go with a guest', () => {
  const move = { volumeName: 'data', sourceClaim: 'old', targetClaim: 'new' };
  const copiedOf = async (disk: DiskSpec, migratedVolumes = [move]): Promise<number> => {
    const machine = { migration: { ramBytes: async () => 1 } } as unknown as Machine;
    const describe = describedMachines({
      machines: { get: () => machine } as unknown as Machines,
      notes: { get: () => ({ spec: { ...SMALL_MACHINE, disks: [disk] } }) } as unknown as GuestNotes,
      directoryOf: () => '/pods/1',
    });
    const guest = {
      metadata: {},
      status: { migrationState: { migratedVolumes } },
    } as unknown as VirtualMachineInstance;
    return (await describe('1', guest)).copiedDisks.length;
  };

  it.each<[string, DiskSpec, number]>([
    ["the pod's own", { ...onClaim('old'), path: '/pods/1/own.qcow2' }, 1],
    ['one that leaves a claim', onClaim('old'), 1],
    ['one that comes to a claim', onClaim('new'), 1],
    ['not one on a third claim, whatever was said', onClaim('other'), 0],
    ['not one of another volume', { ...onClaim('old'), volume: 'os' }, 0],
    ['not one that is only read', { ...onClaim('old'), isReadOnly: true }, 0],
  ])('%s', async (_, disk, expected) => expect(await copiedOf(disk)).toBe(expected));

  it('all, with what is in drives, where another object stands for the guest at the other end', async () => {
    const disks = [onClaim('a'), { ...onClaim('b'), place: { bus: 'virtio', at: 6 }, isReadOnly: true }] as const;
    const cdroms = [{ volume: 'init', port: 1, path: '/pods/1/init.iso' }];
    const sizes = new Map([
      ['virtio 5', 512],
      ['sata 1', 2048],
    ]);
    const machine = { migration: { ramBytes: async () => 1 }, disks: { sizes: async () => sizes } };
    const describe = describedMachines({
      machines: { get: () => machine as unknown as Machine } as unknown as Machines,
      notes: { get: () => ({ spec: { ...SMALL_MACHINE, disks, cdroms } }) } as unknown as GuestNotes,
      directoryOf: () => '/pods/1',
      diskBytesOf: async ({ path }) => path.length,
    });
    const sourceState = { virtualMachineInstanceUID: 'other' };
    const guest = { metadata: { uid: 'own' }, status: { migrationState: { sourceState } } };
    const { copiedDisks, machine: described } = await describe('1', guest as unknown as VirtualMachineInstance);
    expect(copiedDisks.map(placeName)).toEqual(['virtio 5', 'virtio 6', 'sata 1']);
    expect([...(described.diskBytes ?? [])]).toEqual(
      [...sizes.entries()].toSpliced(1, 0, ['virtio 6', disks[1].path.length]),
    );
  });

  it('none on claims where nothing is said of them', async () => expect(await copiedOf(onClaim('old'), [])).toBe(0));
});
