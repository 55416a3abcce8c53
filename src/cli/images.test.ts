import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { ManualClock, seededRandom, silentLogger } from '../env/test.ts';
import { importImage, listImages, removeImages } from './images.ts';

const env = { clock: new ManualClock(), random: seededRandom(1), log: silentLogger };
let directory: string;
let printed: string[];
const print = (line: string): void => void printed.push(line);

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'images-'));
  printed = [];
  writeFileSync(join(directory, 'disk'), Buffer.alloc(3 * 1024 * 1024, 1));
  writeFileSync(join(directory, 'kernel'), 'kernel');
});
afterEach(() => rmSync(directory, { recursive: true }));

describe('godwit image', () => {
  it('imports, lists and removes', async () => {
    const options = { dataDir: directory };
    await listImages(options, env, print);
    symlinkSync(join(directory, 'disk'), join(directory, 'link'));
    await importImage('quay.io/shop/web', { file: join(directory, 'link') }, options, env, print);
    await importImage('linux:6', { file: undefined, kernel: join(directory, 'kernel') }, options, env, print);
    await listImages(options, env, print);
    await removeImages(['linux:6', 'quay.io/shop/web'], options, env, print);
    expect(printed).toMatchInlineSnapshot(`
      [
        "There are no images. Import one with: godwit image import NAME FILE",
        "Imported quay.io/shop/web:latest (sha256:54db9accc63f, 3.0 MiB): /disk/disk.img.",
        "Imported linux:6 (sha256:0d8fe5e09cd3, 6 B): /boot/vmlinuz.",
        "NAME                      DIGEST                SIZE      IMPORTED     FILES",
        "linux:6                   sha256:0d8fe5e09cd3   6 B       2026-01-01   /boot/vmlinuz",
        "quay.io/shop/web:latest   sha256:54db9accc63f   3.0 MiB   2026-01-01   /disk/disk.img",
        "Removed linux:6.",
        "Removed quay.io/shop/web.",
      ]
    `);
  });

  it.each<[string, Parameters<typeof importImage>[1], string]>([
    ['a', { file: undefined }, 'give either a file, or --kernel'],
    ['a', { file: 'disk', kernel: 'kernel' }, 'give either a file, or --kernel'],
    ['a', { file: 'disk', initrd: 'kernel' }, 'give either a file, or --kernel'],
    ['a', { file: '/nowhere/disk' }, '/nowhere/disk cannot be read'],
    ['a', { file: '/dev/null' }, '/dev/null is no file; give the path of a disk, an archive or a kernel'],
    ['A', { file: '/bin/sh' }, 'is no name of an image'],
  ])('says what is wrong with %s %j', async (name, sources, complaint) => {
    const importing = importImage(name, sources, { dataDir: directory }, env, print);
    await expect(importing).rejects.toMatchObject({
      name: 'UserError',
      message: expect.stringContaining(complaint) as string,
    });
  });

  it('says which image it does not know', async () => {
    await expect(removeImages(['a', 'b'], { dataDir: directory }, env, print)).rejects.toThrow(
      "there is no image a, b; 'godwit image list' shows all there are",
    );
  });
});
