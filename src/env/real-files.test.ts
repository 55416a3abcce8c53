import { mkdtempSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { realFiles } from './real-files.ts';

let directory = '';
beforeEach(() => (directory = mkdtempSync(join(tmpdir(), 'godwit-'))));
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe('a private file', () => {
  it('is its owner’s alone, also where it was there before, and open', async () => {
    const path = join(directory, 'file');
    writeFileSync(path, 'longer than what follows', { mode: 0o666 });
    await realFiles.writePrivate(path, Buffer.from('own'), undefined);
    expect(readFileSync(path, 'utf8')).toBe('own');
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it('takes the place of a link, and leaves what that leads to as it is', async () => {
    const [elsewhere, path] = [join(directory, 'elsewhere'), join(directory, 'file')];
    writeFileSync(elsewhere, 'theirs', { mode: 0o644 });
    symlinkSync(elsewhere, path);
    await realFiles.writePrivate(path, Buffer.from('own'), undefined);
    expect(readFileSync(path, 'utf8')).toBe('own');
    expect(readFileSync(elsewhere, 'utf8')).toBe('theirs');
    expect(statSync(elsewhere).mode & 0o777).toBe(0o644);
  });
});
