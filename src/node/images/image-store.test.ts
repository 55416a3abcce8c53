import { execFileSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { realDiskFiles } from '../../env/real-disk-files.ts';
import { ManualClock, seededRandom } from '../../env/test.ts';
import { newQcow2 } from '../volumes/qcow2.ts';
import { dockerArchive, gzip, ociArchive, sha256, tarOf } from './archives.fixture.ts';
import { diskOf, kernelOf } from './image-record.ts';
import { ImageStore } from './image-store.ts';

let directory: string;
let store: ImageStore;
let clock: ManualClock;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'images-'));
  clock = new ManualClock(Date.now());
  store = new ImageStore({ directory: join(directory, 'store'), files: realDiskFiles, clock, random: seededRandom(1) });
});
afterEach(() => rmSync(directory, { recursive: true }));

function fileOf(bytes: Uint8Array | string, name = 'file'): string {
  const path = join(directory, name);
  writeFileSync(path, bytes);
  return path;
}

const inStore = (name: string): string[] => readdirSync(join(directory, 'store', name));

const DISK = Buffer.alloc(1024 * 1024, 'disk');

describe('the store of images', () => {
  it('takes in a raw disk', async () => {
    const record = await store.importFile('quay.io/shop/web', fileOf(DISK));
    expect(record).toMatchObject({ name: 'quay.io/shop/web:latest', digest: `sha256:${sha256(DISK)}` });
    const disk = diskOf(record);
    expect(disk).toMatchObject({
      path: '/disk/disk.img',
      format: 'raw',
      sizeBytes: DISK.length,
      diskBytes: DISK.length,
    });
    expect(readFileSync(store.pathOf(disk)).equals(DISK)).toBe(true);
    expect(statSync(store.pathOf(disk)).mode & 0o777).toBe(0o444);
    expect(inStore('incoming')).toEqual([]);
  });

  it('takes in a qcow2 disk, also a compressed one', async () => {
    const { bytes, sizeBytes } = newQcow2(2 ** 30);
    const image = Buffer.concat([bytes, Buffer.alloc(sizeBytes - bytes.length)]);
    const disk = diskOf(await store.importFile('web', fileOf(gzip(image))));
    expect(disk).toMatchObject({ format: 'qcow2', diskBytes: 2 ** 30, sizeBytes });
  });

  it('finds images by any of their names', async () => {
    await store.importFile('docker.io/library/web:1', fileOf(DISK));
    for (const name of ['web:1', 'library/web:1', 'index.docker.io/library/web:1', `web@sha256:${sha256(DISK)}`])
      expect((await store.find(name))?.name).toBe('web:1');
    for (const name of ['web', 'quay.io/web:1', 'web:2', `web@sha256:${'0'.repeat(64)}`])
      expect(await store.find(name)).toBeUndefined();
    await expect(store.find('Web:1')).rejects.toThrow('no name of an image');
  });

  it('keeps what two names share until both are gone', async () => {
    await store.importFile('a', fileOf(DISK));
    await store.importFile('b', fileOf(DISK));
    expect(inStore('blobs')).toHaveLength(1);
    expect(await store.remove('a')).toBe(true);
    expect(await store.remove('a')).toBe(false);
    expect(inStore('blobs')).toHaveLength(1);
    expect((await store.list()).map(({ name }) => name)).toEqual(['b:latest']);
    await store.remove('b');
    expect([...inStore('blobs'), ...inStore('names'), ...inStore('incoming')]).toEqual([]);
  });

  it('gives a name to another image, and forgets the former', async () => {
    await store.importFile('a', fileOf(DISK));
    const record = await store.importFile('a', fileOf('another'));
    expect(await store.find('a')).toEqual(record);
    expect(inStore('blobs')).toEqual([sha256(Buffer.from('another'))]);
  });

  it('imports and removes at the same time, and never has a name without its contents', async () => {
    const path = fileOf(DISK);
    const stores = [1, 2, 3].map(
      (seed) =>
        new ImageStore({
          directory: join(directory, 'store'),
          files: realDiskFiles,
          clock,
          random: seededRandom(seed),
        }),
    );
    await Promise.all(
      stores.map(async (each, index) => {
        for (let round = 0; round < 8; round++) {
          await each.importFile(`image${index}`, path);
          if (round < 7) await each.remove(`image${index}`);
        }
      }),
    );
    const records = await store.list();
    expect(records).toHaveLength(3);
    for (const record of records) expect(readFileSync(store.pathOf(diskOf(record))).equals(DISK)).toBe(true);
  });

  it('takes in a kernel', async () => {
    const record = await store.importKernel('linux', fileOf('kernel', 'k'), fileOf('initrd', 'i'));
    const { kernel, initrd } = kernelOf(record, '/boot/anything', undefined);
    expect(readFileSync(store.pathOf(kernel), 'utf8')).toBe('kernel');
    expect(initrd && readFileSync(store.pathOf(initrd), 'utf8')).toBe('initrd');
    expect(
      kernelOf(await store.importKernel('bare', fileOf('kernel', 'k'), undefined), undefined, undefined).initrd,
    ).toBeUndefined();
    expect(() => diskOf(record)).toThrow('image linux:latest has no disk');
  });

  it('cleans up after imports that did not', async () => {
    const abandoned = join(directory, 'store', 'incoming', 'abandoned');
    mkdirSync(abandoned, { recursive: true });
    utimesSync(abandoned, 0, 0);
    await store.importFile('a', fileOf(DISK));
    expect(inStore('incoming')).toEqual([]);
  });

  it.each<[string, Buffer | string]>([
    ['is empty', ''],
    ['compressed with xz', Buffer.from([0xfd, 0x37, 0x7a, 0x58, 0x5a, 0, 0])],
    ['another hypervisor', 'KDMV and more'],
    [
      'another hypervisor',
      Buffer.concat([
        Buffer.from('<<< Oracle VM VirtualBox Disk Image >>>\n'.padEnd(64, '\0')),
        Buffer.from([0x7f, 0x10, 0xda, 0xbe]),
      ]),
    ],
    ['backing file', Buffer.from(newQcow2(512, { path: '/etc/shadow', format: 'raw' }).bytes)],
    ['gzip is damaged', Buffer.concat([gzip(DISK).subarray(0, 100), Buffer.alloc(100, 1)])],
    ['gzip is damaged', gzip(DISK).subarray(0, 500)],
  ])('leaves nothing of a file that %s', async (complaint, bytes) => {
    await expect(store.importFile('a', fileOf(bytes))).rejects.toThrow(complaint);
    expect(await store.list()).toEqual([]);
    expect(await store.find('a')).toBeUndefined();
    for (const each of ['blobs', 'incoming'])
      expect(await realDiskFiles.list(join(directory, 'store', each))).toEqual([]);
  });
});

describe('archives of container images', () => {
  const layer = tarOf({ path: 'disk', type: '5' }, { path: 'disk/web.img', body: DISK });

  it.each<[string, Buffer]>([
    ['in the layout of OCI', ociArchive([gzip(layer)])],
    ['in the layout of OCI, uncompressed inside and compressed outside', gzip(ociArchive([layer]))],
    ['as docker saves them', dockerArchive([layer])],
    ['as docker saves them, compressed', gzip(dockerArchive([layer]))],
  ])('are taken in %s', async (_, archive) => {
    const disk = diskOf(await store.importFile('web', fileOf(archive)));
    expect(disk.path).toBe('/disk/web.img');
    expect(readFileSync(store.pathOf(disk)).equals(DISK)).toBe(true);
  });

  it('have their files as the last layer leaves them', async () => {
    const lower = tarOf(
      { path: './disk/old.img', body: 'old' },
      { path: 'disk/kept.img', body: 'kept' },
      { path: 'boot/a/vmlinuz', body: 'removed with its directory' },
      { path: 'opaque/a', body: 'hidden' },
      { path: 'boot/vmlinuz-6', body: 'kernel 6' },
    );
    const upper = tarOf(
      { path: 'disk/.wh.old.img' },
      { path: 'boot/.wh.a' },
      { path: 'opaque/b', body: 'seen' },
      { path: 'opaque/.wh..wh..opq' },
      { path: 'boot/vmlinuz', type: '2', linkPath: 'vmlinuz-6' },
      { path: 'boot/current', type: '2', linkPath: '/boot/vmlinuz' },
      { path: 'boot/outside', type: '2', linkPath: '../../../etc/shadow' },
      { path: 'boot/loop', type: '2', linkPath: 'loop' },
      { path: 'boot/same', type: '1', linkPath: 'boot/vmlinuz-6' },
    );
    const record = await store.importFile('web', fileOf(ociArchive([lower, gzip(upper)])));
    expect(record.files.map(({ path }) => path).sort()).toEqual([
      '/boot/current',
      '/boot/same',
      '/boot/vmlinuz',
      '/boot/vmlinuz-6',
      '/disk/kept.img',
      '/opaque/b',
    ]);
    const { kernel } = kernelOf(record, 'boot/./current', undefined);
    expect(readFileSync(store.pathOf(kernel), 'utf8')).toBe('kernel 6');
    expect(() => kernelOf(record, '/boot/7', undefined)).toThrow('image web:latest has no file /boot/7; it has');
    expect(() => kernelOf(record, undefined, undefined)).toThrow('path of the kernel');
    // What no layer shows is not kept.
    expect(inStore('blobs')).toHaveLength(3);
  });

  it('may have several disks, of which one must be named', async () => {
    const two = tarOf({ path: 'disk/a', body: 'a' }, { path: 'disk/b', body: 'b' });
    const record = await store.importFile('web', fileOf(ociArchive([two])));
    expect(() => diskOf(record)).toThrow('several disks (/disk/a, /disk/b)');
    expect(diskOf(record, '/disk/b').path).toBe('/disk/b');
  });

  it('are read as GNU tar and POSIX write them', async () => {
    for (const format of ['gnu', 'posix', 'ustar']) {
      const name = `${'directory-of-a-long-name/'.repeat(format === 'ustar' ? 4 : 12)}disk.img`;
      const tree = join(directory, format);
      mkdirSync(join(tree, 'disk', name, '..'), { recursive: true });
      writeFileSync(join(tree, 'disk', name), DISK);
      const written = execFileSync('tar', ['-C', tree, `--format=${format}`, '-c', 'disk'], { maxBuffer: 2 ** 24 });
      const record = await store.importFile('web', fileOf(ociArchive([written])));
      expect(diskOf(record).path).toBe(`/disk/${name}`);
    }
  });

  const withLayer = (bytes: Buffer) => ociArchive([bytes]);
  const changed = (from: RegExp, to: string) =>
    ociArchive([layer], (files) =>
      files.map((file) => (file.path === 'index.json' ? { ...file, body: String(file.body).replace(from, to) } : file)),
    );
  it.each<[string, Buffer]>([
    ['leads outside', withLayer(tarOf({ path: '../../etc/passwd', body: 'x' }))],
    ['leads outside', withLayer(tarOf({ path: 'disk/a', type: '1', linkPath: '../../etc/shadow' }))],
    [
      'is damaged: it is',
      ociArchive([layer], (files) =>
        files.map((file) => (file.body === layer ? { ...file, body: tarOf({ path: 'disk/evil', body: 'x' }) } : file)),
      ),
    ],
    [
      'is damaged: it is',
      dockerArchive([layer], (files) =>
        files.map((file) => (file.body === layer ? { ...file, body: tarOf({ path: 'disk/evil', body: 'x' }) } : file)),
      ),
    ],
    [
      'its digest is another one',
      ociArchive([layer], (files) =>
        files.map((file) =>
          file.path.startsWith('blobs/') && String(file.body).includes('layers')
            ? { ...file, body: `${String(file.body)} ` }
            : file,
        ),
      ),
    ],
    ['lacks a layer', ociArchive([layer], (files) => files.filter((file) => file.body !== layer))],
    [
      'lacks blobs/sha256/',
      ociArchive([layer], (files) => files.filter((file) => !String(file.body).includes('layers'))),
    ],
    ['lacks manifest.json', tarOf({ path: 'disk/a', body: 'x' })],
    ['is no JSON', changed(/^/, '{')],
    ['none of sha256', changed(/sha256:/, 'sha512:')],
    ['no list of manifests', changed(/"manifests"/, '"x"')],
    [
      'has several images',
      changed(
        /"manifests":\[(.*)\]/,
        '"manifests":[{"platform":{"os":"linux","architecture":"amd64"},"digest":"sha256:' +
          '0'.repeat(64) +
          '"},{"platform":{"os":"linux","architecture":"amd64"},"digest":"sha256:' +
          '1'.repeat(64) +
          '"}]',
      ),
    ],
    ['no image for linux/amd64', changed(/"manifests":\[(.*)\]/, '"manifests":[{"digest":"a"},{"digest":"b"}]')],
    ['ends within', ociArchive([layer]).subarray(0, 70_000)],
    ['wrong sum', Buffer.concat([tarOf({ path: 'a', body: 'x' }).subarray(0, 1024), Buffer.alloc(512, 7)])],
    ['sparse files', withLayer(tarOf({ path: 'a', type: 'S' }))],
    [
      'backing file',
      withLayer(tarOf({ path: 'disk/a', body: newQcow2(512, { path: '/etc/shadow', format: 'raw' }).bytes })),
    ],
    ['gzip is damaged', withLayer(gzip(layer).subarray(0, 200))],
  ])('are refused: %s', async (complaint, archive) => {
    await expect(store.importFile('web', fileOf(archive))).rejects.toThrow(complaint);
    expect(await store.list()).toEqual([]);
    for (const each of ['blobs', 'incoming']) expect(inStore(each)).toEqual([]);
  });
});
