import { parseQuantity, quantityToNumber } from '../quantity.ts';
import type { QuantityValue } from '../typed-schema.ts';
import type { VirtualMachineInstance } from './virtual-machine-instance.ts';

/** How much memory can be plugged into a guest while it runs, and in what pieces. */
export interface MemoryRoom {
  /** The size of each piece. */
  readonly unitBytes: number;
  /** How many pieces there can be. */
  readonly slots: number;
}

/** Linux takes no smaller pieces. */
const UNIT_BYTES = 128 * 2 ** 20;
/** Pieces are larger where more would be needed: each costs the machine something. */
const SLOTS_MAX = 32;
const MEBIBYTE = 2 ** 20;

/** A quantity in bytes; undefined for none. */
export function bytesOf(quantity: QuantityValue | undefined): number | undefined {
  const parsed = parseQuantity(quantity);
  return parsed && Math.ceil(quantityToNumber(parsed));
}

/** The room of a guest that starts with so much memory and may have so much; undefined where there is none. */
export function memoryRoom(bootBytes: number, maxBytes: number): MemoryRoom | undefined {
  const growth = maxBytes - Math.ceil(bootBytes / MEBIBYTE) * MEBIBYTE;
  let unitBytes = UNIT_BYTES;
  while (growth / unitBytes > SLOTS_MAX) unitBytes *= 2;
  const slots = Math.floor(growth / unitBytes);
  return slots > 0 ? { unitBytes, slots } : undefined;
}

/** The memory that a guest started with, or starts with. */
export function bootMemoryBytes({ spec, status }: VirtualMachineInstance): number | undefined {
  return bytesOf(status?.memory?.guestAtBoot ?? spec.domain.memory?.guest);
}

/** The room of a guest, by its spec and by what it started with. */
export function memoryRoomOf(guest: VirtualMachineInstance): MemoryRoom | undefined {
  const [bootBytes, maxBytes] = [bootMemoryBytes(guest), bytesOf(guest.spec.domain.memory?.maxGuest)];
  const isPossible = guest.spec.domain.machine?.type !== 'microvm' && guest.spec.domain.memory?.hugepages === undefined;
  return isPossible && bootBytes && maxBytes ? memoryRoom(bootBytes, maxBytes) : undefined;
}

/** How many pieces a guest of so much memory has; no whole number where it cannot have that much exactly. */
export function pluggedUnits(guest: VirtualMachineInstance, room: MemoryRoom, memoryBytes: number): number {
  return (memoryBytes - (bootMemoryBytes(guest) ?? 0)) / room.unitBytes;
}
