import { count, flag, type Infer, integer, kept, needed, object, text } from '../typed-schema.ts';

/** Disks as the guest sees them. Which buses go with which kind of disk is the business of validation. */

const bus = text('virtio, sata, scsi or usb; sata by default.');

/** A block size of a disk. */
export const blockSize = object('Block sizes that the guest is told.', {
  custom: object('Given sizes.', {
    logical: count('Bytes that are addressed at once.'),
    physical: count('Bytes that are written at once.'),
    discardGranularity: count('Bytes that are given back at once.'),
  }),
  matchVolume: object('The sizes of what is below.', { enabled: flag('Whether they are used.') }),
});

/** A disk; at most one of disk, cdrom and lun is set. */
export const disk = object('A disk as the guest sees it.', {
  name: needed(text('Name of the volume that it shows.')),
  disk: object('A hard disk.', {
    bus,
    readonly: flag('Whether the guest may only read it.'),
    pciAddress: text('Where the guest finds it, such as 0000:81:01.0.'),
  }),
  cdrom: object('A disk that can be taken out.', {
    bus,
    readonly: flag('Whether the guest may only read it; it may by default.'),
    tray: text('open or closed; closed by default.'),
  }),
  lun: object('A device that the guest speaks SCSI with itself.', {
    bus,
    readonly: flag('Whether the guest may only read it.'),
    reservation: flag('Whether the guest may reserve it for itself.'),
  }),
  bootOrder: integer('When it is tried at boot: the lowest number first, from 1.'),
  serial: text('Serial number that the guest sees.'),
  tag: text('A name that the guest can find it by.'),
  cache: text('none, writethrough or writeback.'),
  io: text('native, threads or default.'),
  errorPolicy: text('What happens when it cannot be read or written: stop, ignore, report or enospace.'),
  shareable: flag('Whether several guests may use it at once.'),
  dedicatedIOThread: flag('Whether it has a thread of its own.'),
  blockSize,
  changedBlockTracking: flag('Whether what the guest writes is noted for backups.'),
});

export type Disk = Infer<typeof disk>;

/** A directory that the guest shares with its launcher. */
export const filesystem = object('A volume that the guest mounts as a filesystem.', {
  name: needed(text('Name of the volume.')),
  virtiofs: needed(kept('Through virtiofs.')),
});
