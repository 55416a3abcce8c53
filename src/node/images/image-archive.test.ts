import { assert, asyncProperty, constantFrom, integer, tuple, uint8Array } from 'fast-check';
import { describe, expect, it } from 'vitest';
import { dockerArchive, gzip, ociArchive, tarOf } from './archives.fixture.ts';
import { type Bytes, DamagedInput } from './byte-stream.ts';
import { readImageArchive } from './image-archive.ts';

const LAYER = tarOf(
  { path: 'disk', type: '5' },
  { path: 'disk/web.img', body: 'a disk' },
  { path: 'disk/link', type: '2', linkPath: 'web.img' },
  { path: 'disk/.wh.old' },
);
const ARCHIVES = [ociArchive([LAYER]), ociArchive([gzip(LAYER)]), dockerArchive([LAYER]), gzip(dockerArchive([LAYER]))];

/** The files of an image, from an archive that comes in pieces of some size. */
async function read(archive: Uint8Array, pieceBytes = 700): Promise<Record<string, string>> {
  async function* open(): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < archive.length; at += pieceBytes) yield archive.subarray(at, at + pieceBytes);
  }
  const keep = async (_: string, body: Bytes): Promise<string> => {
    const parts: Uint8Array[] = [];
    for await (const part of body) parts.push(part);
    return Buffer.concat(parts).toString();
  };
  return Object.fromEntries((await readImageArchive({ open, isWanted: () => true, keep })).files);
}

const CONTENTS = { '/disk/web.img': 'a disk', '/disk/link': 'a disk' };

describe('an archive of an image', () => {
  it('is read in pieces of any size', async () => {
    for (const archive of ARCHIVES)
      for (const pieceBytes of [1, 511, 512, 513, 100_000]) expect(await read(archive, pieceBytes)).toEqual(CONTENTS);
  });

  it('is refused when it has more in it than any image of a guest', async () => {
    const many = (count: number, type: string) =>
      ociArchive([tarOf(...Array.from({ length: count }, (_, index) => ({ path: `f${index}`, type, linkPath: 'x' })))]);
    await expect(read(many(1001, '0'))).rejects.toThrow('more than 1000 files');
    await expect(read(many(10_001, '2'))).rejects.toThrow('more than 10000 files');
  });

  it('is never read as anything but what it was, whatever became of its bytes', async () => {
    const damage = tuple(integer({ min: 0, max: 2 ** 20 }), uint8Array({ minLength: 1, maxLength: 20 }));
    await assert(
      asyncProperty(constantFrom(...ARCHIVES), damage, async (archive, [at, bytes]) => {
        const damaged = Buffer.from(archive);
        damaged.set(bytes.subarray(0, damaged.length - (at % damaged.length)), at % damaged.length);
        const files = await read(damaged).catch((error: unknown) => {
          expect(error).toBeInstanceOf(DamagedInput);
          return CONTENTS;
        });
        expect(files).toEqual(CONTENTS);
      }),
      { numRuns: 300 },
    );
  });

  it('is never taken for whole when it is not', async () => {
    await assert(
      asyncProperty(constantFrom(...ARCHIVES), integer({ min: 0, max: 2 ** 20 }), async (archive, length) => {
        const files = await read(archive.subarray(0, length % archive.length)).catch((error: unknown) => {
          expect(error).toBeInstanceOf(DamagedInput);
          return CONTENTS;
        });
        expect(files).toEqual(CONTENTS);
      }),
      { numRuns: 150 },
    );
  });
});
