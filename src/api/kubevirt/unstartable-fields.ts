import { child } from '../field-error.ts';
import { isFamiliarCpuModel } from './cpu-model.ts';
import type { Disk } from './disks.ts';
import type { Domain } from './domain.ts';
import { whereMachineTypeIsKnown } from './machine-type.ts';
import type { NetworkInterface } from './networks.ts';
import type { VirtualMachineInstanceSpec } from './virtual-machine-instance-spec.ts';
import type { Volume } from './volumes.ts';

/**
 * What KubeVirt takes, and no node here can give: such a guest is written as it is, for another cluster may run it, and
 * its author hears at once what its condition would say later. What no cluster could run is refused (`validation`).
 */

/** Kinds of volumes that nothing here can make a disk of. */
const VOLUME_KINDS = [
  'containerPath',
  'downwardAPI',
  'downwardMetrics',
  'memoryDump',
  'serviceAccount',
  'sysprep',
] as const satisfies readonly (keyof Volume)[];

const BINDINGS = ['sriov', 'macvtap', 'binding'] as const satisfies readonly (keyof NetworkInterface)[];

/** What keeps a guest from starting here, by its field, each a warning. `path` is that of the spec. */
export function unstartableWarnings({ domain, volumes = [] }: VirtualMachineInstanceSpec, path: string): string[] {
  const { disks = [], interfaces = [] } = domain.devices;
  const shown = new Set(disks.map(({ name }) => name));
  const devicesPath = child(path, 'domain.devices');
  return [
    ...machineWarnings(domain, child(path, 'domain')),
    ...disks.flatMap((disk, index) => diskWarnings(disk, child(child(devicesPath, 'disks'), index))),
    ...interfaces.flatMap((each, index) => interfaceWarnings(each, child(child(devicesPath, 'interfaces'), index))),
    ...volumes.flatMap((volume, index) =>
      VOLUME_KINDS.filter((kind) => volume[kind] !== undefined && shown.has(volume.name)).map((kind) =>
        warning(child(child(child(path, 'volumes'), index), kind), 'there are no such volumes here'),
      ),
    ),
  ];
}

function warning(field: string, why: string): string {
  return `${field} keeps the guest from starting: ${why}`;
}

function machineWarnings({ machine, cpu, firmware }: Domain, path: string): string[] {
  const type = machine?.type;
  const model = cpu?.model;
  return [
    ...(type && whereMachineTypeIsKnown(type) === 'elsewhere'
      ? [warning(child(path, 'machine.type'), `there is no ${type} here; use q35, or a version such as pc-q35-7.2`)]
      : []),
    ...(model && !isFamiliarCpuModel(model)
      ? [warning(child(path, 'cpu.model'), `QEMU is not known to have a ${model}; use host-model, or one that it has`)]
      : []),
    ...(firmware?.bootloader?.efi
      ? [warning(child(path, 'firmware.bootloader.efi'), 'guests start with a BIOS here; leave it out, or use bios')]
      : []),
  ];
}

function diskWarnings({ disk, cdrom, lun }: Disk, path: string): string[] {
  return [
    ...(lun ? [warning(child(path, 'lun'), 'guests cannot speak SCSI with a disk here; use disk')] : []),
    ...(disk?.bus === 'scsi' || disk?.bus === 'usb'
      ? [warning(child(path, 'disk.bus'), `there is no ${disk.bus} here; use virtio or sata`)]
      : []),
    ...(cdrom?.bus === 'scsi' || cdrom?.bus === 'usb'
      ? [warning(child(path, 'cdrom.bus'), `there is no ${cdrom.bus} here; use sata`)]
      : []),
    ...(cdrom?.readonly === false
      ? [warning(child(path, 'cdrom.readonly'), 'a CD-ROM can be nothing but read here')]
      : []),
  ];
}

function interfaceWarnings(each: NetworkInterface, path: string): string[] {
  const { model, state } = each;
  if (state === 'absent') return [];
  return [
    ...(model && model !== 'virtio' ? [warning(child(path, 'model'), `there is no ${model} here; use virtio`)] : []),
    ...(state === 'down' ? [warning(child(path, 'state'), 'an interface cannot start down here')] : []),
    ...BINDINGS.filter((binding) => each[binding] !== undefined).map((binding) =>
      warning(child(path, binding), 'interfaces are bound by masquerade or bridge here'),
    ),
  ];
}
