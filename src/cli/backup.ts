import { cpSync, existsSync, mkdirSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DATA_FILE } from '../apiserver/storage/lmdb-engine.ts';
import { copyLmdbLog } from '../apiserver/storage/lmdb-backup.ts';
import { StorageError } from '../apiserver/storage/port.ts';
import { UserError } from './failure.ts';

/** `godwit backup`: a copy of what cannot be made again, while the control plane runs or not. */

export interface BackupOptions {
  readonly dataDir: string;
}

/** What is copied: the data of the API, and the authorities by which nodes and users know it. */
const DATA = 'data';
const KEYS = 'pki';

export async function backup(target: string, { dataDir }: BackupOptions, print: (line: string) => void): Promise<void> {
  const directory = resolve(dataDir);
  const to = resolve(target);
  if (!existsSync(join(directory, DATA, DATA_FILE)))
    throw new UserError(`there is no data in ${directory}; say with --data-dir where it is`);
  try {
    mkdirSync(to, { recursive: true, mode: 0o700 });
    if (readdirSync(to).length > 0) throw new UserError(`${to} is not empty; name a directory that is, or a new one`);
    // Keys first: whoever finds data in a backup finds the keys to it, too.
    cpSync(join(directory, KEYS), join(to, KEYS), { recursive: true, preserveTimestamps: true });
    await copyLmdbLog(join(directory, DATA), join(to, DATA));
  } catch (error) {
    const isTheirs = error instanceof StorageError || typeof (error as NodeJS.ErrnoException).code === 'string';
    if (!isTheirs) throw error;
    throw new UserError(`the backup in ${to} is not whole: ${(error as Error).message}`, { cause: error });
  }
  print(`Backed up ${directory} to ${to}: the data of the API, and its keys, which are secret.`);
  print('Disks of virtual machines, images and the journals of nodes are not in it; see docs/operations.md.');
}
