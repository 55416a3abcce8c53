import { chmod, mkdir, open, readdir, readFile, rename, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { Random } from '../../env/ports.ts';

const TEMPORARY_SUFFIX = '.partial';

/** Makes a directory that only its owner may enter, tightens one that is there, and sweeps what a killed writer left. */
export async function preparePrivateDirectory(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  await chmod(directory, 0o700);
  for (const name of await readdir(directory)) {
    if (name.endsWith(TEMPORARY_SUFFIX)) await unlink(join(directory, name));
  }
}

/** The text of a private file, or undefined if there is none. Permissions that grew too wide are taken back. */
export async function readPrivateFile(path: string): Promise<string | undefined> {
  try {
    await chmod(path, 0o600);
    return await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * Writes a file that only its owner may read, all of it or nothing: into a neighbour first, to disk, and only then
 * under its name. A crash at any moment leaves the old content or the new one.
 */
export async function writePrivateFile(path: string, text: string, random: Random): Promise<void> {
  const temporary = `${path}.${Buffer.from(random.bytes(6)).toString('hex')}${TEMPORARY_SUFFIX}`;
  const file = await open(temporary, 'wx', 0o600);
  try {
    await file.writeFile(text, 'utf8');
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
  await syncDirectory(dirname(path));
}

/** The new name itself must be on disk too, or it may be gone after a power cut. */
async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
