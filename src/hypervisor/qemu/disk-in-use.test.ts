import { describe, expect, it } from 'vitest';
import { FULL_MACHINE } from '../machine.fixture.ts';
import { diskInUse } from './disk-in-use.ts';

const SAID = `2026-11-15T19:48:00.626092Z qemu-system-x86_64: -blockdev {"driver":"raw"}: Failed to get "write" lock
Is another process using the image [../../shared/pvc-1/disk.img]?`;

describe('a disk that somebody else has', () => {
  const [first] = FULL_MACHINE.disks ?? [];
  if (!first) throw new Error('nothing to try');
  const started = { ...FULL_MACHINE, disks: [{ ...first, path: '../../shared/pvc-1/disk.img', volume: 'data' }] };
  it('is told by the name of its volume', () => {
    expect(diskInUse(SAID, started)).toMatch(/^volume data: its disk \S+disk\.img is in use by another process/);
  });
  it('is told by its path where it has no other name', () => {
    expect(diskInUse(SAID, FULL_MACHINE)).toMatch(/^the disk \S+disk\.img is in use by another process/);
  });
  it('is not what is wrong with all else', () => {
    expect(diskInUse('qemu-system-x86_64: unsupported machine type', started)).toBeUndefined();
  });
});
