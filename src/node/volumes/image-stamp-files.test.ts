import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { realDiskFiles } from '../../env/real-disk-files.ts';
import type { ImageStamp } from '../../migration/right-to-run/image-stamps.ts';
import { ImageStampFiles, type ImageStampFilesOptions } from './image-stamp-files.ts';

const STALE: ImageStamp = { state: 'stale', epoch: 7, vm: 'vm', guest: 'shop/web', wentTo: 'claim second on node b' };
const CURRENT: ImageStamp = { state: 'current', epoch: 3, vm: 'vm', guest: 'shop/web' };
const RECEIVING: ImageStamp = { state: 'receiving', epoch: 7, vm: 'vm', guest: 'shop/web', migrationUID: 'move' };

let directory: string;
let stamps: ImageStampFiles;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'stamps-'));
  mkdirSync(at('claim'));
  writeFileSync(at('claim/disk.img'), 'data');
  stamps = stampsOn(realDiskFiles);
});
afterEach(() => rmSync(directory, { recursive: true }));

const at = (name: string): string => join(directory, name);
const stampsOn = (files: ImageStampFilesOptions['files']): ImageStampFiles =>
  new ImageStampFiles({ files, directory: at('own') });
const image = () => ({ path: at('claim/disk.img'), claim: { name: 'first', uid: 'uid-first' } });
const own = (): readonly string[] => (readdirSync(directory).includes('own') ? readdirSync(at('own')) : []);

describe('the stamp of an image', () => {
  it('is beside it, in room that was made for it, and what it was when it is read again', async () => {
    expect(await stamps.look(image())).toEqual({ stamp: 'absent', isBeside: false });
    await stamps.makeRoom(image());
    expect(await stamps.look(image())).toEqual({ stamp: 'blank', isBeside: true });
    const { ino, size } = statSync(at('claim/disk.img.stamp'));
    for (const stamp of [CURRENT, STALE, CURRENT]) {
      await stamps.write(image(), stamp);
      expect(await stampsOn(realDiskFiles).look(image())).toEqual({ stamp, isBeside: true });
      await stamps.makeRoom(image());
    }
    expect(statSync(at('claim/disk.img.stamp'))).toMatchObject({ ino, size });
    expect(own()).toEqual([]);
  });

  it('needs no room that was made before', async () => {
    await stamps.write(image(), STALE);
    expect(await stamps.look(image())).toEqual({ stamp: STALE, isBeside: true });
  });

  it('fits, whatever names are in it', async () => {
    for (const letter of ['x', '"', 'ü']) {
      await stamps.write(image(), { ...STALE, guest: letter.repeat(1000), wentTo: letter.repeat(1000) });
      expect((await stamps.look(image())).stamp).toMatchObject({ state: 'stale', epoch: 7, vm: 'vm' });
      expect(statSync(at('claim/disk.img.stamp')).size).toBe(1024);
    }
  });

  it.each(['{"state":"stale","ep', '{"state":"odd","epoch":1,"vm":"","guest":""}', 'null', '[1]'])(
    'is damaged where it says %s',
    async (text) => {
      writeFileSync(at('claim/disk.img.stamp'), text);
      expect(await stamps.look(image())).toEqual({ stamp: 'damaged', isBeside: true });
    },
  );

  it('is no link to what somebody else has written', async () => {
    writeFileSync(at('elsewhere'), JSON.stringify(CURRENT));
    symlinkSync(at('elsewhere'), at('claim/disk.img.stamp'));
    expect((await stamps.look(image())).stamp).toBe('damaged');
    await stamps.write(image(), STALE);
    expect(readFileSync(at('elsewhere'), 'utf8')).toBe(JSON.stringify(CURRENT));
    expect((await stamps.look(image())).stamp).toEqual(STALE);
  });

  it("is the agent's own where the directory cannot be written, and beside it again once it can", async () => {
    await stamps.makeRoom(image());
    await stamps.write(image(), CURRENT);
    const refused = (code: string) => async () => {
      throw Object.assign(new Error(code), { code });
    };
    const closed = stampsOn({ ...realDiskFiles, create: refused('EACCES'), overwrite: refused('ENOSPC') });
    await closed.makeRoom(image());
    await closed.write(image(), STALE);
    expect(own()).toEqual(['uid-first']);
    expect((await stamps.look(image())).stamp).toEqual(STALE);
    await stamps.write(image(), { ...CURRENT, epoch: 8 });
    expect(own()).toEqual([]);
    const full = stampsOn({ ...realDiskFiles, overwrite: refused('ENOSPC'), replace: refused('ENOSPC') });
    await expect(full.write(image(), STALE)).rejects.toThrow(/cannot be stamped/);
    await expect(stampsOn({ ...realDiskFiles, create: refused('ENOSPC') }).makeRoom(image())).rejects.toThrow('ENOSPC');
  });

  it('of another machine that has used the image since counts', async () => {
    mkdirSync(at('own'));
    writeFileSync(at('own/uid-first'), JSON.stringify(STALE));
    const other = { ...CURRENT, vm: 'another', epoch: 1 };
    writeFileSync(at('claim/disk.img.stamp'), JSON.stringify(other));
    expect((await stamps.look(image())).stamp).toEqual(other);
  });

  it("of a device is the agent's own", async () => {
    const device = { path: '/dev/null', claim: { name: 'device', uid: 'uid-device' } };
    await stamps.write(device, STALE);
    expect(await stamps.look(device)).toEqual({ stamp: STALE, isBeside: false });
    await stamps.write(device, RECEIVING);
    await stamps.discard(device, 'move');
    expect((await stamps.look(device)).stamp).toEqual(RECEIVING);
    expect(own()).toEqual(['uid-device']);
    await expect(stamps.look({ ...device, claim: { name: 'x', uid: '../x' } })).rejects.toThrow('no UID');
  });
});

describe('an image', () => {
  it('is removed where it is what was being received, and only then', async () => {
    for (const stamp of [CURRENT, STALE, { ...RECEIVING, migrationUID: 'another' }]) {
      await stamps.write(image(), stamp);
      await stamps.discard(image(), 'move');
      expect(readdirSync(at('claim'))).toHaveLength(2);
    }
    await stamps.write(image(), RECEIVING);
    await stamps.discard(image(), 'move');
    expect(readdirSync(at('claim'))).toEqual([]);
    await stamps.discard(image(), 'move');
  });
});
