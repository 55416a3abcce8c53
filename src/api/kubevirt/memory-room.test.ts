import { describe, expect, it } from 'vitest';
import { memoryRoom, memoryRoomOf, pluggedUnits } from './memory-room.ts';
import type { VirtualMachineInstance } from './virtual-machine-instance.ts';

const MIB = 2 ** 20;
const GIB = 2 ** 30;

const guestWith = (memory: object, more: object = {}, status: object = {}) =>
  ({ metadata: {}, spec: { domain: { devices: {}, memory, ...more } }, status }) as VirtualMachineInstance;

describe('room for memory', () => {
  it.each([
    ['none where nothing may be added', GIB, GIB, undefined],
    ['none for less than a piece', GIB, GIB + 100 * MIB, undefined],
    ['whole pieces', GIB, GIB + 300 * MIB, { unitBytes: 128 * MIB, slots: 2 }],
    ['larger pieces rather than too many', GIB, 9 * GIB, { unitBytes: 256 * MIB, slots: 32 }],
    ['very large pieces', GIB, 1025 * GIB, { unitBytes: 32 * GIB, slots: 32 }],
  ])('is %s', (_what, boot, max, expected) => expect(memoryRoom(boot, max)).toEqual(expected));

  it('follows from what the guest started with, whatever it is to have now', () => {
    const status = { memory: { guestAtBoot: '1Gi', guestCurrent: '1152Mi' } };
    const guest = guestWith({ guest: '1280Mi', maxGuest: '2Gi' }, {}, status);
    const room = memoryRoomOf(guest);
    expect(room).toEqual({ unitBytes: 128 * MIB, slots: 8 });
    expect(room && pluggedUnits(guest, room, 1280 * MIB)).toBe(2);
    expect(room && pluggedUnits(guest, room, 1300 * MIB)).not.toBe(2);
  });

  it.each([
    ['without a limit', { guest: '1Gi' }, {}],
    ['without PCI', { guest: '1Gi', maxGuest: '4Gi' }, { machine: { type: 'microvm' } }],
    ['on huge pages', { guest: '1Gi', maxGuest: '4Gi', hugepages: { pageSize: '2Mi' } }, {}],
  ])('is none %s', (_what, memory, more) => expect(memoryRoomOf(guestWith(memory, more))).toBeUndefined());
});
