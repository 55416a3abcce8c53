import { randomBytes } from 'node:crypto';
import { constants, type Stats } from 'node:fs';
import {
  chmod,
  chown,
  type FileHandle,
  link,
  lstat,
  mkdir,
  open,
  readdir,
  realpath,
  rename,
  rm,
  stat,
} from 'node:fs/promises';
import { dirname } from 'node:path';
import type { DiskFiles, FileAccess, FileDescription } from './ports.ts';

const READ_CHUNK_BYTES = 1024 * 1024;
/** Zeros are left out in pieces of this size, a multiple of what file systems allocate. */
const HOLE_BYTES = 64 * 1024;
const SYNCS_AT_ONCE = 16;
const PASSABLE = 0o711;
const ZEROS = Buffer.alloc(HOLE_BYTES);

function codeOf(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException).code;
}

function kindOf(stats: Stats): FileDescription['kind'] {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'directory';
  if (stats.isSymbolicLink()) return 'link';
  return stats.isBlockDevice() ? 'block-device' : 'other';
}

async function describe(path: string): Promise<FileDescription | undefined> {
  let stats: Stats;
  try {
    stats = await lstat(path);
  } catch (error) {
    if (codeOf(error) === 'ENOENT' || codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
  const { size, mtimeMs, uid, gid, mode, dev, ino, rdev } = stats;
  const kind = kindOf(stats);
  // A device has as many names as somebody made for it.
  const identity = kind === 'block-device' ? `device ${rdev}` : `${dev} ${ino}`;
  return { kind, sizeBytes: size, modifiedMs: mtimeMs, owner: { uid, gid }, mode: mode & 0o7777, identity };
}

async function* read(path: string, part?: { offset: number; length: number }): AsyncGenerator<Uint8Array> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    let position = part?.offset ?? 0;
    const end = part ? position + part.length : Number.POSITIVE_INFINITY;
    while (position < end) {
      // A new buffer each time: whoever reads may keep what it was given.
      const chunk = Buffer.allocUnsafe(Math.min(READ_CHUNK_BYTES, end - position));
      const { bytesRead } = await file.read(chunk, 0, chunk.length, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      yield chunk.subarray(0, bytesRead);
    }
  } finally {
    await file.close();
  }
}

async function list(path: string): Promise<string[]> {
  try {
    return (await readdir(path)).sort();
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return [];
    throw error;
  }
}

async function sync(path: string): Promise<void> {
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

/** A name is on the disk once its directory is. */
async function syncDirectoryOf(path: string): Promise<void> {
  await sync(dirname(path));
}

/** Makes a new file, and takes it away again where it cannot be filled. */
async function make(path: string, { owner, mode }: FileAccess, fill: (file: FileHandle) => Promise<void>) {
  const file = await open(
    path,
    constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    try {
      await fill(file);
      if (owner) await file.chown(owner.uid, owner.gid);
      // After the owner, and whatever the umask is.
      await file.chmod(mode);
    } finally {
      await file.close();
    }
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  }
}

async function makeBeside(
  path: string,
  access: FileAccess,
  fill: (file: FileHandle) => Promise<void>,
): Promise<string> {
  const beside = `${path}.${randomBytes(6).toString('hex')}`;
  await make(beside, access, async (file) => {
    await fill(file);
    await file.sync();
  });
  return beside;
}

async function writeSparsely(file: FileHandle, chunks: AsyncIterable<Uint8Array>): Promise<void> {
  let position = 0;
  for await (const chunk of chunks) {
    for (let offset = 0; offset < chunk.length; offset += HOLE_BYTES) {
      const piece = chunk.subarray(offset, offset + HOLE_BYTES);
      if (ZEROS.compare(piece, 0, piece.length, 0, piece.length) !== 0) await writeAll(file, piece, position);
      position += piece.length;
    }
  }
  await file.truncate(position);
}

async function writeAll(file: FileHandle, bytes: Uint8Array, position: number): Promise<void> {
  let written = 0;
  while (written < bytes.length)
    written += (await file.write(bytes, written, bytes.length - written, position + written)).bytesWritten;
}

async function tryLink(path: string, secondPath: string, excuses: readonly string[]): Promise<boolean> {
  try {
    await link(path, secondPath);
  } catch (error) {
    if (excuses.includes(codeOf(error) ?? '')) return false;
    throw error;
  }
  return true;
}

/** Makes what is missing of a directory that others may pass, whatever the umask is: QEMU is another user's where we are root. */
async function makePassable(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: PASSABLE });
  if (first === undefined) return;
  for (let each = path; each.length >= first.length; each = dirname(each)) await chmod(each, PASSABLE);
}

/** The disks' files of a Linux host. */
export const realDiskFiles: DiskFiles = {
  describe,
  read,
  list,
  async makeDirectory(path, { owner, mode }) {
    await makePassable(dirname(path));
    try {
      await mkdir(path, { mode });
    } catch (error) {
      if (codeOf(error) === 'EEXIST' && (await stat(path)).isDirectory()) return;
      throw error;
    }
    await chmod(path, mode);
    if (owner) await chown(path, owner.uid, owner.gid);
    await syncDirectoryOf(path);
  },
  async create(path, { bytes, sizeBytes }, access) {
    const beside = await makeBeside(path, access, async (file) => {
      if (bytes) await writeAll(file, bytes, 0);
      await file.truncate(sizeBytes);
    });
    try {
      if (!(await tryLink(beside, path, ['EEXIST']))) return false;
      await syncDirectoryOf(path);
      return true;
    } finally {
      await rm(beside, { force: true });
    }
  },
  async write(path, chunks, access) {
    await make(path, access, (file) => writeSparsely(file, chunks));
  },
  async overwrite(path, bytes) {
    let file: FileHandle;
    try {
      file = await open(path, constants.O_WRONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      if (codeOf(error) === 'ENOENT') return false;
      throw error;
    }
    try {
      const stats = await file.stat();
      if (!stats.isFile() || stats.nlink > 1) throw new Error(`${path} is no file of one name`);
      await writeAll(file, bytes, 0);
      await file.datasync();
      return true;
    } finally {
      await file.close();
    }
  },
  async replace(path, bytes, access) {
    const beside = await makeBeside(path, access, (file) => writeAll(file, bytes, 0));
    await rename(beside, path);
    await syncDirectoryOf(path);
  },
  link: (path, secondPath) => tryLink(path, secondPath, ['EEXIST', 'EXDEV', 'EPERM', 'EMLINK']),
  async sync(paths) {
    // Together they cost little more than one: the file system writes what all of them wait for.
    for (let index = 0; index < paths.length; index += SYNCS_AT_ONCE)
      await Promise.all(paths.slice(index, index + SYNCS_AT_ONCE).map(sync));
  },
  async rename(path, newPath) {
    await rename(path, newPath);
    await syncDirectoryOf(newPath);
  },
  async empty(path) {
    const file = await open(path, constants.O_RDWR | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = await file.stat();
      if (!stats.isFile() || stats.nlink > 1) throw new Error(`${path} is no file of one name`);
      await file.truncate(0);
    } finally {
      await file.close();
    }
  },
  remove: (path) => rm(path, { recursive: true, force: true }),
  realPath: (path) => realpath(path),
  async giveTo(path, { uid, gid }) {
    // Without O_NONBLOCK, opening a pipe would wait for its other end.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    try {
      const stats = await file.stat();
      if (!stats.isFile() && !stats.isBlockDevice()) throw new Error(`${path} is no file`);
      if (stats.uid === uid && (stats.mode & 0o600) === 0o600) return;
      if (stats.nlink > 1) throw new Error(`${path} has other names, and is not given away under one of them`);
      await file.chown(uid, gid);
      await file.chmod((stats.mode & 0o777) | 0o600);
    } finally {
      await file.close();
    }
  },
  async supportsDirectAccess(path) {
    try {
      const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_DIRECT);
      await file.close();
      return true;
    } catch (error) {
      if (codeOf(error) === 'EINVAL') return false;
      throw error;
    }
  },
};
