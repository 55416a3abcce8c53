import { spawnSync } from 'node:child_process';
import { chownSync, truncateSync, writeFileSync } from 'node:fs';
import { UNPRIVILEGED } from './qemu.ts';

/** A block device that is a file underneath; QEMU may use it. */
export interface LoopDevice {
  readonly path: string;
  close(): void;
}

/** Undefined where this user, or this kernel, makes no such devices. */
export function loopDevice(file: string, sizeBytes: number): LoopDevice | undefined {
  writeFileSync(file, '');
  truncateSync(file, sizeBytes);
  const made = spawnSync('losetup', ['--find', '--show', file], { encoding: 'utf8' });
  const path = made.stdout?.trim() ?? '';
  if (made.status !== 0 || path === '') return undefined;
  if (UNPRIVILEGED) chownSync(path, UNPRIVILEGED.uid, UNPRIVILEGED.gid);
  return { path, close: () => void spawnSync('losetup', ['--detach', path]) };
}
