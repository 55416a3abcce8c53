import { describe, expect, it } from 'vitest';
import { unstartableWarnings } from './unstartable-fields.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';

type Domain = VirtualMachineInstanceSpec['domain'];

function warningsOf(domain: Partial<Domain>, volumes: VirtualMachineInstanceSpec['volumes'] = []): string[] {
  return unstartableWarnings({ domain: { devices: {}, ...domain }, volumes }, 'spec');
}

describe('what KubeVirt takes and no node here can give', () => {
  it.each<[what: string, Partial<Domain>, warning: RegExp | undefined]>([
    ['EFI', { firmware: { bootloader: { efi: {} } } }, /^spec\.domain\.firmware\.bootloader\.efi .*use bios$/],
    ['BIOS', { firmware: { bootloader: { bios: {} } } }, undefined],
    ["a distribution's machine", { machine: { type: 'pc-q35-rhel9.4.0' } }, /^spec\.domain\.machine\.type .*use q35/],
    ['a version of a machine', { machine: { type: 'pc-q35-7.2' } }, undefined],
    [
      'an unheard-of processor',
      { cpu: { model: 'Gooselake' } },
      /^spec\.domain\.cpu\.model .*Gooselake; use host-model/,
    ],
    ['a processor', { cpu: { model: 'Cascadelake-Server-noTSX' } }, undefined],
    ["the host's processor", { cpu: { model: 'host-passthrough' } }, undefined],
    [
      'a disk on scsi',
      { devices: { disks: [{ name: 'a', disk: { bus: 'scsi' } }] } },
      /disks\[0\]\.disk\.bus .*virtio/,
    ],
    [
      'a disk on usb',
      { devices: { disks: [{ name: 'a', disk: { bus: 'usb' } }] } },
      /no usb here; use virtio or sata$/,
    ],
    ['a disk on virtio', { devices: { disks: [{ name: 'a', disk: { bus: 'virtio' } }] } }, undefined],
    ['a CD-ROM on scsi', { devices: { disks: [{ name: 'a', cdrom: { bus: 'scsi' } }] } }, /cdrom\.bus .*; use sata$/],
    ['a CD-ROM to write', { devices: { disks: [{ name: 'a', cdrom: { readonly: false } }] } }, /cdrom\.readonly/],
    ['a LUN', { devices: { disks: [{ name: 'a', lun: {} }] } }, /disks\[0\]\.lun .*use disk$/],
    ['a card', { devices: { interfaces: [{ name: 'a', model: 'e1000' }] } }, /interfaces\[0\]\.model .*use virtio$/],
    ['a passed-through card', { devices: { interfaces: [{ name: 'a', sriov: {} }] } }, /interfaces\[0\]\.sriov/],
    ['a card that is gone', { devices: { interfaces: [{ name: 'a', sriov: {}, state: 'absent' }] } }, undefined],
  ])('%s', (_, domain, expected) => {
    const found = warningsOf(domain);
    if (!expected) expect(found).toEqual([]);
    else {
      expect(found).toHaveLength(1);
      expect(found[0]).toMatch(expected);
    }
  });
  it('volumes of other kinds, where a disk shows them', () => {
    const volumes = [
      { name: 'a', sysprep: {} },
      { name: 'b', memoryDump: { claimName: 'c' } },
    ];
    expect(warningsOf({ devices: { disks: [{ name: 'a' }] } }, volumes)).toEqual([
      'spec.volumes[0].sysprep keeps the guest from starting: there are no such volumes here',
    ]);
  });
});
