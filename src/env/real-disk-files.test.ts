import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, linkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { realDiskFiles as files } from './real-disk-files.ts';

const OWN = { mode: 0o600 };
let directory: string;

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'disk-files-'));
});
afterEach(() => rmSync(directory, { recursive: true }));

const at = (name: string): string => join(directory, name);

async function* chunksOf(...chunks: Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* chunks;
}

async function contentsOf(path: string, part?: { offset: number; length: number }): Promise<string> {
  const parts: Uint8Array[] = [];
  for await (const chunk of files.read(path, part)) parts.push(chunk);
  return Buffer.concat(parts).toString();
}

describe("the disks' files of the host", () => {
  it('makes a file once', async () => {
    expect(await files.create(at('a'), { bytes: Buffer.from('one'), sizeBytes: 5000 }, OWN)).toBe(true);
    expect(await files.create(at('a'), { bytes: Buffer.from('two'), sizeBytes: 3 }, OWN)).toBe(false);
    expect(await files.describe(at('a'))).toMatchObject({ kind: 'file', sizeBytes: 5000, mode: 0o600 });
    expect(await contentsOf(at('a'), { offset: 1, length: 2 })).toBe('ne');
    expect(await files.list(directory)).toEqual(['a']);
  });

  it('writes runs of zeros as holes, and the rest as it is', async () => {
    const zeros = Buffer.alloc(8 * 1024 * 1024);
    await files.write(at('a'), chunksOf(Buffer.from('begin'), zeros, Buffer.from('end'), zeros), { mode: 0o444 });
    const expected = Buffer.concat([Buffer.from('begin'), zeros, Buffer.from('end'), zeros]);
    expect(readFileSync(at('a')).equals(expected)).toBe(true);
    expect(statSync(at('a')).blocks * 512).toBeLessThan(1024 * 1024);
    expect(statSync(at('a')).mode & 0o777).toBe(0o444);
  });

  it('leaves nothing of what could not be written', async () => {
    async function* broken(): AsyncGenerator<Uint8Array> {
      yield Buffer.from('a');
      throw new Error('the source broke');
    }
    await expect(files.write(at('a'), broken(), OWN)).rejects.toThrow('the source broke');
    expect(await files.list(directory)).toEqual([]);
    writeFileSync(at('b'), 'kept');
    await expect(files.write(at('b'), chunksOf(), OWN)).rejects.toThrow('EEXIST');
    expect(readFileSync(at('b'), 'utf8')).toBe('kept');
  });

  it('replaces what is there', async () => {
    await files.replace(at('a'), Buffer.from('one'), OWN);
    await files.replace(at('a'), Buffer.from('two'), OWN);
    expect(readFileSync(at('a'), 'utf8')).toBe('two');
    expect(await files.list(directory)).toEqual(['a']);
  });

  it('follows no links', async () => {
    writeFileSync(at('target'), 'secret');
    symlinkSync(at('target'), at('link'));
    symlinkSync(at('nowhere'), at('dangling'));
    expect(await files.describe(at('link'))).toMatchObject({ kind: 'link' });
    await expect(contentsOf(at('link'))).rejects.toThrow('ELOOP');
    await expect(files.giveTo(at('link'), { uid: 1, gid: 1 })).rejects.toThrow('ELOOP');
    expect(await files.create(at('dangling'), { sizeBytes: 1 }, OWN)).toBe(false);
    expect(await files.describe(at('nowhere'))).toBeUndefined();
    await files.replace(at('link'), Buffer.from('other'), OWN);
    expect(readFileSync(at('target'), 'utf8')).toBe('secret');
  });

  it('knows a file under any of its names, and from all others', async () => {
    for (const name of ['a', 'b']) writeFileSync(at(name), 'same');
    linkSync(at('a'), at('second'));
    const [a, b, second] = await Promise.all(['a', 'b', 'second'].map((name) => files.describe(at(name))));
    expect(second?.identity).toBe(a?.identity);
    expect(b?.identity).not.toBe(a?.identity);
  });

  it('keeps directories as they are', async () => {
    mkdirSync(at('a'), { mode: 0o750 });
    await files.makeDirectory(at('a'), { mode: 0o700 });
    expect(statSync(at('a')).mode & 0o777).toBe(0o750);
    await files.makeDirectory(at('b/c'), { mode: 0o700 });
    expect(statSync(at('b/c')).mode & 0o777).toBe(0o700);
    writeFileSync(at('file'), '');
    await expect(files.makeDirectory(at('file'), { mode: 0o700 })).rejects.toThrow('EEXIST');
  });

  it('makes directories that others may pass above its own, whatever the umask is', async () => {
    const before = process.umask(0o077);
    try {
      await files.makeDirectory(at('x/y/own'), { mode: 0o700 });
    } finally {
      process.umask(before);
    }
    expect(['x', 'x/y', 'x/y/own'].map((name) => statSync(at(name)).mode & 0o777)).toEqual([0o711, 0o711, 0o700]);
  });

  it('gives no file away that has a second name', async () => {
    writeFileSync(at('a'), '');
    linkSync(at('a'), at('b'));
    const own = { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
    await expect(files.giveTo(at('a'), { uid: own.uid + 1, gid: own.gid })).rejects.toThrow('other names');
    await files.giveTo(at('a'), own);
    await expect(files.giveTo(directory, own)).rejects.toThrow('no file');
  });

  it('empties a file under the hands of who writes to it, and nothing else', async () => {
    writeFileSync(at('log'), 'much');
    await files.empty(at('log'));
    expect(readFileSync(at('log'), 'utf8')).toBe('');
    writeFileSync(at('a'), 'x');
    symlinkSync(at('a'), at('link'));
    linkSync(at('a'), at('b'));
    for (const name of ['link', 'b']) await expect(files.empty(at(name))).rejects.toThrow(/ELOOP|no file of one name/);
    await expect(files.empty(directory)).rejects.toThrow('EISDIR');
    expect(readFileSync(at('a'), 'utf8')).toBe('x');
  });

  it('writes over what is there, and makes nothing', async () => {
    writeFileSync(at('a'), 'one two');
    expect(await files.overwrite(at('a'), Buffer.from('six'))).toBe(true);
    expect(readFileSync(at('a'), 'utf8')).toBe('six two');
    expect(await files.overwrite(at('none'), Buffer.from('x'))).toBe(false);
    symlinkSync(at('a'), at('link'));
    await expect(files.overwrite(at('link'), Buffer.from('x'))).rejects.toThrow('ELOOP');
    linkSync(at('a'), at('b'));
    await expect(files.overwrite(at('a'), Buffer.from('x'))).rejects.toThrow('no file of one name');
    await expect(files.overwrite(directory, Buffer.from('x'))).rejects.toThrow('EISDIR');
    expect(readFileSync(at('a'), 'utf8')).toBe('six two');
  });

  it('links, and says where it cannot', async () => {
    writeFileSync(at('a'), 'x');
    expect(await files.link(at('a'), at('b'))).toBe(true);
    expect(await files.link(at('a'), at('b'))).toBe(false);
    expect(await files.realPath(at('b'))).toContain('b');
    await files.remove(at('b'));
    await files.remove(at('b'));
    expect(await files.list(at('none'))).toEqual([]);
    expect(typeof (await files.supportsDirectAccess(at('a')))).toBe('boolean');
  });
});
