import { chmod, mkdir, open as openFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { open } from 'lmdb';
import { DATA_FILE, DIRECTORY_MODE, FILE_MODE, openLmdbEngine, PAGE_BYTES } from './lmdb-engine.ts';
import { StorageError } from './port.ts';

/** What nobody calls themselves who serves. */
const A_COPY = 'a copy';
/** LMDB's, of those who have the log open. */
const LOCK_FILE = 'lock.mdb';

/**
 * Copies a log to a directory that must be empty, as it was at one moment, whether or not somebody writes to it meanwhile; the copy
 * says that it is one.
 * Resolves once the copy is on disk. LMDB lets a second process read what one transaction left while the next is
 * written; a copy of the file itself would have pages of both.
 */
export async function copyLmdbLog(directory: string, target: string): Promise<void> {
  const path = resolve(target);
  await mkdir(path, { recursive: true, mode: DIRECTORY_MODE });
  await chmod(path, DIRECTORY_MODE);
  try {
    const log = open(resolve(directory), {
      noSubdir: false,
      encoding: 'binary',
      pageSize: PAGE_BYTES,
      readOnly: true,
    });
    try {
      await log.backup(path, true);
    } finally {
      await log.close();
    }
  } catch (error) {
    throw new StorageError(`${directory} cannot be copied: ${(error as Error).message}`, { fatal: true, cause: error });
  }
  const file = join(path, DATA_FILE);
  await chmod(file, FILE_MODE);
  const copy = await openLmdbEngine(path);
  try {
    await copy.serve(A_COPY);
  } finally {
    await copy.close();
  }
  await rm(join(path, LOCK_FILE), { force: true });
  for (const each of [file, path]) await synced(each);
}

async function synced(path: string): Promise<void> {
  const handle = await openFile(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
