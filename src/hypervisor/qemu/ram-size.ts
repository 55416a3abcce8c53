import type { Accelerator } from '../machine.ts';
import { MachineSpecError } from '../machine.ts';
import type { QemuVersion } from './qmp-message.ts';

/**
 * How much RAM a guest gets, to the byte.
 *
 * QEMU before 9.0, translating, loses writes of the guest while it is migrated: when a RAM block is a multiple of
 * 256 KiB (64 pages, one word of the dirty bitmap), its bitmap is harvested by a short cut that forgets to make
 * the next write to each page noticed again. The guest arrives with stale pages, and nobody is told. A block of any
 * other size is harvested page by page, correctly, at about a millisecond per MiB. So there such a machine gets
 * 8 KiB more than it asks for. The size is part of what migrates: the target must have the source's, which is why a
 * machine keeps its size for life, and why a QEMU that would corrupt a machine of that size must not take it in.
 */
const HARVEST_BYTES = 256 * 1024;
const MEBIBYTE = 1024 * 1024;
const ODD_BYTES = 8 * 1024;

/** Whether this QEMU loses writes to memory of the usual sizes while it is copied. */
export function losesWritesOfAlignedRam(version: QemuVersion, accelerator: Accelerator): boolean {
  return accelerator === 'tcg' && version.major < 9;
}

/** The size of RAM for a machine that asks for so much, on this QEMU. */
export function ramBytesFor(memoryBytes: number, version: QemuVersion, accelerator: Accelerator): number {
  if (!Number.isSafeInteger(memoryBytes) || memoryBytes <= 0)
    throw new MachineSpecError(`${memoryBytes} is no size of memory`);
  const whole = Math.ceil(memoryBytes / MEBIBYTE) * MEBIBYTE;
  return losesWritesOfAlignedRam(version, accelerator) ? whole + ODD_BYTES : whole;
}

/** Throws where a machine with so much RAM could be started, but not moved on without losing writes. */
export function checkRamBytes(ramBytes: number, version: QemuVersion, accelerator: Accelerator): void {
  if (!Number.isSafeInteger(ramBytes) || ramBytes <= 0 || ramBytes % 4096 !== 0)
    throw new MachineSpecError(`${ramBytes} bytes of RAM are no whole number of pages`);
  if (losesWritesOfAlignedRam(version, accelerator) && ramBytes % HARVEST_BYTES === 0)
    throw new MachineSpecError(
      `QEMU ${version.major}.${version.minor} without KVM would corrupt a guest with ${ramBytes} bytes of RAM when it migrates`,
    );
}
