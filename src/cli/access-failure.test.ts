import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { accessFailure } from './access-failure.ts';

const denied = (path: string, code = 'EACCES'): Error =>
  Object.assign(new Error(`${code}: permission denied, open '${path}'`), { code, path, syscall: 'open' });

describe('a file that may not be used', () => {
  it('is told by its owner, whoever wrapped the error', () => {
    const found = accessFailure(new Error('cannot start', { cause: denied('/proc/1/mem') }));
    expect(found?.message).toMatch(/^permission denied: \/proc\/1\/mem.*choose another --data-dir$/);
    expect(accessFailure(denied('/etc/passwd', 'EPERM'))?.exitCode).toBe(1);
  });
  it('that is not there is told by the owner of what is above it', () => {
    const directory = mkdtempSync(join(tmpdir(), 'godwit-'));
    try {
      const path = join(directory, 'not', 'there');
      expect(accessFailure(denied(path))?.message).toBe(
        `permission denied: ${path}; let yourself have it (see 'ls -ld ${path}'), or choose another --data-dir`,
      );
    } finally {
      rmSync(directory, { recursive: true });
    }
  });
  it('is not what is wrong with ports, processes, or anything else', () => {
    expect(accessFailure(Object.assign(new Error('listen EACCES'), { code: 'EACCES', port: 80 }))).toBeUndefined();
    expect(accessFailure(Object.assign(new Error('no'), { code: 'ENOENT', path: '/x' }))).toBeUndefined();
    expect(accessFailure('no error')).toBeUndefined();
  });
});
