import { basename, dirname } from 'node:path';
import type { Volume } from '../../api/kubevirt/volumes.ts';
import { parseQuantity, quantityToNumber } from '../../api/quantity.ts';
import type { DiskFiles, FileDescription, UserIdentity } from '../../env/ports.ts';
import type { DiskSource } from './disk-source.ts';
import { VolumeError } from './guest-volumes.ts';

/**
 * Files of the node. Whoever may make a guest may name any of them, so that a guest gets none that QEMU, which is
 * nobody special, could not open by itself: the agent lends its own rights to nobody. Nor does it get what is the
 * agent's: images, and the disks of others.
 */

export interface HostDiskRules {
  readonly files: DiskFiles;
  readonly user: UserIdentity | undefined;
  /** Directories from which no guest may take anything. */
  readonly reservedDirectories: readonly string[];
}

const READ = 4;
const WRITE = 2;
const ENTER = 1;

/** The disk in a file of the node. Rejects with a VolumeError. */
export async function hostDiskSource(
  volume: string,
  hostDisk: NonNullable<Volume['hostDisk']>,
  rules: HostDiskRules,
): Promise<DiskSource> {
  const { files, user } = rules;
  const directory = await soundDirectory(volume, hostDisk.path, rules);
  const path = `${directory === '/' ? '' : directory}/${basename(hostDisk.path)}`;
  const existing = await files.describe(path);
  const disk = { kind: 'file', path, isGiven: false, isReadOnly: false } as const;
  if (existing) {
    if (existing.kind !== 'file') throw refused(volume, `${hostDisk.path} is no file, but a ${existing.kind}`);
    if (!may(user, existing, READ | WRITE))
      throw refused(
        volume,
        `${hostDisk.path} may not be read and written by the user that guests run as${named(user)}`,
      );
    return disk;
  }
  if (hostDisk.type !== 'DiskOrCreate')
    throw new VolumeError(volume, 'DiskNotFound', `there is no ${hostDisk.path} on this node`);
  const parent = await files.describe(directory);
  if (!parent || !may(user, parent, WRITE | ENTER))
    throw refused(volume, `${directory} may not be written by the user that guests run as${named(user)}`);
  return { ...disk, makes: { directory: false, sizeBytes: sizeOf(volume, hostDisk) } };
}

/** The directory that the file is really in, whatever links lead there. */
async function soundDirectory(
  volume: string,
  path: string,
  { files, reservedDirectories }: HostDiskRules,
): Promise<string> {
  if (!path.startsWith('/') || path.endsWith('/') || path.split('/').includes('..'))
    throw refused(volume, `${path} is no absolute path of a file`);
  const directory = await realPath(files, dirname(path));
  if (directory === undefined)
    throw new VolumeError(volume, 'DiskNotFound', `there is no directory ${dirname(path)} on this node`);
  for (const each of reservedDirectories) {
    const reserved = await realPath(files, each);
    if (reserved !== undefined && (directory === reserved || directory.startsWith(`${reserved}/`)))
      throw refused(volume, `${path} is among files of the node's own`);
  }
  return directory;
}

async function realPath(files: DiskFiles, path: string): Promise<string | undefined> {
  try {
    return await files.realPath(path);
  } catch (error) {
    const code = (error as { code?: unknown }).code;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw error;
  }
}

/** What the permissions say. Whoever runs as this process itself finds out by trying. */
function may(user: UserIdentity | undefined, { owner, mode }: FileDescription, rights: number): boolean {
  if (!user) return true;
  const shift = owner.uid === user.uid ? 6 : owner.gid === user.gid ? 3 : 0;
  return ((mode >> shift) & rights) === rights;
}

function named(user: UserIdentity | undefined): string {
  return user ? ` (${user.uid})` : '';
}

function refused(volume: string, message: string): VolumeError {
  return new VolumeError(volume, 'DiskRefused', message);
}

function sizeOf(volume: string, { path, capacity }: NonNullable<Volume['hostDisk']>): number {
  const quantity = parseQuantity(capacity);
  const bytes = quantity ? Math.floor(quantityToNumber(quantity)) : 0;
  if (bytes > 0) return bytes;
  throw new VolumeError(volume, 'DiskNotFound', `there is no ${path} on this node, and no capacity to make it with`);
}
