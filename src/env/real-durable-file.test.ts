import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isDiskFull } from './ports.ts';
import { realDurableFile } from './real-durable-file.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'godwit-durable-'));
});
afterEach(() => rm(directory, { recursive: true }));

const text = async (path: string): Promise<string | undefined> => {
  const bytes = await realDurableFile(path).read();
  return bytes && Buffer.from(bytes).toString();
};

describe('a durable file', () => {
  it('is not there at first, and cannot be written', async () => {
    const file = realDurableFile(join(directory, 'journal'));
    expect(await file.read()).toBeUndefined();
    await expect(file.write(0, Buffer.from('x'))).rejects.toThrow('ENOENT');
  });
  it('keeps what was written at its place', async () => {
    const path = join(directory, 'journal');
    const file = realDurableFile(path);
    await file.replace(Buffer.from('one two'));
    await file.write(4, Buffer.from('TWO three'));
    await file.close();
    expect(await text(path)).toBe('one TWO three');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });
  it('goes on in the new file once it was replaced, and leaves no draft', async () => {
    const path = join(directory, 'journal');
    await writeFile(path, 'something much longer');
    const file = realDurableFile(path);
    await file.write(0, Buffer.from('S'));
    await file.replace(Buffer.from('new'));
    await file.write(3, Buffer.from('er'));
    await file.close();
    expect(await text(path)).toBe('newer');
    expect(await readdir(directory)).toEqual(['journal']);
  });
  it('tells a full disk from a broken one', () => {
    expect(isDiskFull(Object.assign(new Error('full'), { code: 'ENOSPC' }))).toBe(true);
    expect(isDiskFull(Object.assign(new Error('broken'), { code: 'EIO' }))).toBe(false);
    expect(isDiskFull('ENOSPC')).toBe(false);
  });
});
