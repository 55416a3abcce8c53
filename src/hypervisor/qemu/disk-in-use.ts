import type { MachineSpec } from '../machine.ts';

/** QEMU locks the files of its disks, and names the one that it could not lock. */
const QUESTION = /Is another process using the image \[(?<path>.+)\]\?/;

/**
 * Which disk of a machine somebody else has open, as a sentence without its full stop; undefined where QEMU did not
 * complain of that. `started` is the machine as QEMU was told of it, whose paths are those in what it said.
 */
export function diskInUse(said: string, started: MachineSpec): string | undefined {
  const path = QUESTION.exec(said)?.groups?.['path'];
  if (path === undefined) return undefined;
  const volume = started.disks?.find((disk) => disk.path === path)?.volume;
  const name = volume === undefined ? `the disk ${path}` : `volume ${volume}: its disk ${path}`;
  return `${name} is in use by another process, perhaps the machine of another guest; a disk is one guest's at a time`;
}
