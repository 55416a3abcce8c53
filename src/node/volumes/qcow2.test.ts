import { assert, integer, property } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { ImageFormatError, imageFacts, newQcow2, ownDiskBytes } from './qcow2.ts';

/** A sound image with some bytes of its header changed. */
function changed(change: (view: DataView) => void): Uint8Array {
  const { bytes } = newQcow2(1024 * 1024);
  change(new DataView(bytes.buffer));
  return bytes;
}

describe('images of disks', () => {
  it('knows its own images again, whatever their size', () => {
    assert(
      property(integer({ min: 0, max: 2 ** 50 }), (bytes) => {
        const image = newQcow2(bytes);
        const diskBytes = Math.ceil(bytes / 512) * 512;
        expect(imageFacts(image.bytes, image.sizeBytes)).toEqual({ format: 'qcow2', diskBytes });
        expect(image.sizeBytes % 65_536).toBe(0);
        expect(image.sizeBytes).toBeGreaterThan(image.bytes.length);
      }),
    );
  });

  it('knows how large a disk of its own is, also where it rests on another file', () => {
    const { bytes, sizeBytes } = newQcow2(3_000_000, { path: '/images/base', format: 'raw' });
    expect(ownDiskBytes('qcow2', bytes, sizeBytes)).toBe(3_000_320);
    expect(ownDiskBytes('raw', new Uint8Array(), 1000)).toBe(1024);
    expect(ownDiskBytes('qcow2', new Uint8Array(104), 1000)).toBeUndefined();
    expect(ownDiskBytes('qcow2', bytes.subarray(0, 20), 1000)).toBeUndefined();
  });

  it('takes everything else for raw, in whole sectors', () => {
    expect(imageFacts(new Uint8Array(104), 1000)).toEqual({ format: 'raw', diskBytes: 1024 });
    expect(imageFacts(new Uint8Array(), 0)).toEqual({ format: 'raw', diskBytes: 0 });
  });

  it.each<[string, Uint8Array]>([
    ['has a backing file', newQcow2(512, { path: '/etc/shadow', format: 'raw' }).bytes],
    ['encrypted', changed((view) => view.setUint32(32, 1))],
    ['data in another file', changed((view) => view.setBigUint64(72, 4n))],
    ['version 1', changed((view) => view.setUint32(4, 1))],
    ['claims to be', changed((view) => view.setBigUint64(24, 2n ** 63n))],
    ['ends within its header', newQcow2(512).bytes.subarray(0, 50)],
    ['ends within its header', newQcow2(512).bytes.subarray(0, 90)],
  ])('refuses an image that %s', (complaint, bytes) => {
    expect(() => imageFacts(bytes, bytes.length)).toThrow(ImageFormatError);
    expect(() => imageFacts(bytes, bytes.length)).toThrow(complaint);
  });

  it('refuses sizes and paths that cannot be', () => {
    expect(() => newQcow2(-1)).toThrow('no size');
    expect(() => newQcow2(Number.NaN)).toThrow('no size');
    expect(() => newQcow2(512, { path: 'x'.repeat(1024), format: 'raw' })).toThrow('too long');
  });

  it('says of the backing file where and what it is', () => {
    const { bytes } = newQcow2(512, { path: 'root.base', format: 'qcow2' });
    expect(Buffer.from(bytes).toString('latin1', 104, 137)).toBe(
      '\u00e2\u0079\u002a\u00ca\0\0\0\u0005qcow2\0\0\0\0\0\0\0\0\0\0\0root.base',
    );
  });
});
