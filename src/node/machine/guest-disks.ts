import type { Disk } from '../../api/kubevirt/disks.ts';
import type { VirtualMachineInstance } from '../../api/kubevirt/virtual-machine-instance.ts';
import { type CdromSpec, type DiskSpec, MachineSpecError } from '../../hypervisor/machine.ts';
import type { PreparedDisk, PreparedVolumes } from '../volumes/guest-volumes.ts';
import type { BusFamily, DevicePlaces } from './device-places.ts';

/** The disks of a guest as its machine has them. */
export interface GuestDisks {
  readonly disks: readonly DiskSpec[];
  readonly cdroms: readonly CdromSpec[];
}

const CACHES = ['none', 'writeback', 'writethrough'] as const;

/** Throws a MachineSpecError that names the field for what cannot be. */
export function guestDisks(
  guest: VirtualMachineInstance,
  { disks: prepared, kernel }: PreparedVolumes,
  family: BusFamily,
  places: DevicePlaces,
): GuestDisks {
  const wanted = guest.spec.domain.devices.disks ?? [];
  const orders = bootOrders(wanted, kernel !== undefined);
  const disks: DiskSpec[] = [];
  const cdroms: CdromSpec[] = [];
  for (const [index, disk] of wanted.entries()) {
    const field = `spec.domain.devices.disks[${index}]`;
    const source = prepared.get(disk.name);
    // A drive that nothing was put into. QEMU could plug something in later, we cannot.
    if (source === undefined && disk.cdrom) continue;
    if (source === undefined) throw new MachineSpecError(`${field}.name: there is no volume ${disk.name}`);
    const bootOrder = orders[index];
    const order = bootOrder === undefined ? {} : { bootOrder };
    if (disk.lun) throw new MachineSpecError(`${field}.lun: disks that a guest speaks SCSI with are not supported`);
    if (disk.cdrom && family === 'pci') cdroms.push({ ...cdrom(disk, source, places, field), ...order });
    else disks.push({ ...hardDisk(disk, source, places, field), ...order });
  }
  return { disks, cdroms };
}

function cdrom(disk: Disk, { path, format, ...image }: PreparedDisk, places: DevicePlaces, field: string): CdromSpec {
  const bus = disk.cdrom?.bus || 'sata';
  if (bus !== 'sata') throw new MachineSpecError(`${field}.cdrom.bus: ${bus} is not supported; use sata`);
  if (disk.cdrom?.readonly === false)
    throw new MachineSpecError(`${field}.cdrom.readonly: a CD-ROM can be nothing but read here`);
  const port = places.sataPort(`${field}.cdrom.bus`);
  return { volume: disk.name, port, path, format, ...extentOf(image) };
}

function hardDisk(disk: Disk, source: PreparedDisk, places: DevicePlaces, field: string): DiskSpec {
  const { serial } = disk;
  const bus = disk.cdrom ? 'virtio' : disk.disk?.bus || 'sata';
  if (bus !== 'virtio' && bus !== 'sata')
    throw new MachineSpecError(`${field}.disk.bus: ${bus} is not supported; use virtio or sata`);
  const isReadOnly = source.isReadOnly === true || disk.disk?.readonly === true || disk.cdrom !== undefined;
  if (isReadOnly && bus === 'sata')
    throw new MachineSpecError(`${field}.disk.bus: sata has no hard disks that are read-only; use virtio or a cdrom`);
  return {
    volume: disk.name,
    place:
      bus === 'virtio'
        ? places.virtioDisk(`${field}.disk.bus`)
        : { bus: 'sata', at: places.sataPort(`${field}.disk.bus`) },
    path: source.path,
    ...(source.claim ? { claim: source.claim } : {}),
    format: source.format,
    ...extentOf(source),
    cache: CACHES.find((cache) => cache === disk.cache) ?? source.cache,
    ...(isReadOnly ? { isReadOnly } : {}),
    ...(serial ? { serial } : {}),
  };
}

function extentOf({ isDevice, sizeBytes }: Pick<PreparedDisk, 'isDevice' | 'sizeBytes'>) {
  return { ...(isDevice ? { isDevice } : {}), ...(sizeBytes === undefined ? {} : { sizeBytes }) };
}

/** As they are given; in the order of the list where none is. A kernel needs none of them. */
function bootOrders(disks: readonly Disk[], hasKernel: boolean): readonly (number | undefined)[] {
  const given = disks.map(({ bootOrder }) => bootOrder);
  if (hasKernel || given.some((order) => order !== undefined)) return given;
  return disks.map((_, index) => index + 1);
}
