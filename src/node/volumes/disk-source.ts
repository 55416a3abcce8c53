import { dirname } from 'node:path';
import { errorMessage } from '../../api/error-message.ts';
import { unreachable } from '../../api/unreachable.ts';
import type { DiskFiles, UserIdentity } from '../../env/ports.ts';
import { type IsoContents, iso9660 } from '../cloud-init/iso9660.ts';
import { type PreparedDisk, VolumeError } from './guest-volumes.ts';
import { type ImageFormat, newQcow2 } from './qcow2.ts';

/** How a disk is made, once it is known that all of it can be had. */
export type DiskSource =
  /** In the pod's own directory: what a guest writes over something that stays as it is. */
  | {
      readonly kind: 'overlay';
      readonly base: { readonly path: string; readonly format: ImageFormat; readonly diskBytes: number };
      /** Whether the base is kept under a second name, so that it may be removed under its first. */
      readonly isLinked: boolean;
    }
  | { readonly kind: 'empty'; readonly sizeBytes: number }
  | { readonly kind: 'cdrom'; readonly contents: IsoContents }
  /** Likewise, with room for what comes from elsewhere. */
  | { readonly kind: 'blank'; readonly sizeBytes: number }
  /** A file that is there before the pod and after it. */
  | {
      readonly kind: 'file';
      readonly path: string;
      /** Makes the directory and the file if they are not there. */
      readonly makes?: { readonly directory: boolean; readonly sizeBytes: number };
      /** Whether the file is made QEMU's own. */
      readonly isGiven: boolean;
      readonly isReadOnly: boolean;
      readonly claim?: PreparedDisk['claim'];
    }
  | {
      readonly kind: 'device';
      readonly path: string;
      readonly isReadOnly: boolean;
      readonly claim?: PreparedDisk['claim'];
    };

/** Where and for whom disks are made. */
export interface DiskPlace {
  readonly files: DiskFiles;
  readonly volume: string;
  /** The pod's own directory. */
  readonly directory: string;
  readonly user: UserIdentity | undefined;
}

/** The disk of this volume that an earlier attempt has made in the pod's directory, with what a guest wrote since. */
export async function madeDisk({ files, volume, directory }: DiskPlace): Promise<PreparedDisk | undefined> {
  if (await files.describe(overlayPath(directory, volume))) return overlay(directory, volume);
  if (await files.describe(cdromPath(directory, volume))) return cdrom(directory, volume);
  return undefined;
}

/** Makes the disk, or finds it made. Rejects with a VolumeError. */
export function makeDisk(place: DiskPlace, source: DiskSource): Promise<PreparedDisk> {
  return forVolume(place.volume, () => make(place, source));
}

/** Does something for a volume, whose name is in whatever goes wrong. Rejects with a VolumeError. */
export async function forVolume<T>(volume: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof VolumeError) throw error;
    throw new VolumeError(volume, reasonOf(error), errorMessage(error), error);
  }
}

/** What the file system says has a code; the rest are complaints about sizes, labels and names. */
function reasonOf(error: unknown): 'DiskFull' | 'InvalidVolume' | 'DiskFailed' {
  const { code } = error as { code?: unknown };
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'DiskFull';
  return code === undefined ? 'InvalidVolume' : 'DiskFailed';
}

async function make(place: DiskPlace, source: DiskSource): Promise<PreparedDisk> {
  const { files, volume, directory, user } = place;
  const access = { mode: 0o600, owner: user };
  switch (source.kind) {
    case 'overlay': {
      const { path, format, diskBytes } = source.base;
      const base = source.isLinked ? await linkedInto(files, path, `${directory}/${volume}.base`) : path;
      await files.create(overlayPath(directory, volume), newQcow2(diskBytes, { path: base, format }), access);
      return overlay(directory, volume);
    }
    case 'empty':
      await files.create(overlayPath(directory, volume), newQcow2(source.sizeBytes), access);
      return overlay(directory, volume);
    case 'cdrom': {
      const bytes = iso9660(source.contents);
      await files.create(cdromPath(directory, volume), { bytes, sizeBytes: bytes.length }, access);
      return cdrom(directory, volume);
    }
    case 'blank':
      await files.create(cdromPath(directory, volume), { sizeBytes: source.sizeBytes }, access);
      return cdrom(directory, volume);
    case 'file':
      return makeFile(place, source);
    case 'device': {
      const path = await files.realPath(source.path);
      const { kind } = (await files.describe(path)) ?? {};
      if (kind !== 'block-device')
        throw new VolumeError(volume, 'DiskRefused', `${path} is no block device, but a ${kind ?? 'name'}`);
      if (user) await files.giveTo(path, user);
      return {
        path,
        format: 'raw',
        isDevice: true,
        cache: 'none',
        ...(source.claim ? { claim: source.claim } : {}),
        ...(source.isReadOnly ? { isReadOnly: true } : {}),
      };
    }
    default:
      return unreachable(source);
  }
}

async function makeFile(
  { files, volume, user }: DiskPlace,
  { path, makes, isGiven, isReadOnly, claim }: DiskSource & { kind: 'file' },
): Promise<PreparedDisk> {
  // The next node may run QEMU as somebody else, who has to pass; the image is closed to all but its owner.
  if (makes?.directory) await files.makeDirectory(dirname(path), { mode: 0o711, owner: user });
  if (makes && !(await files.describe(path)))
    await files.create(path, { sizeBytes: makes.sizeBytes }, { mode: 0o600, owner: user });
  const kind = (await files.describe(path))?.kind;
  if (kind === undefined) throw new VolumeError(volume, 'DiskNotFound', `there is no ${path}`);
  if (kind !== 'file') throw new VolumeError(volume, 'DiskRefused', `${path} is no file, but a ${kind}`);
  if (isGiven && user) await files.giveTo(path, user);
  // Past the page cache, where that is possible: another host that shares the storage would not see what is in there.
  const cache = (await files.supportsDirectAccess(path)) ? 'none' : 'writethrough';
  return { path, format: 'raw', cache, ...(claim ? { claim } : {}), ...(isReadOnly ? { isReadOnly } : {}) };
}

/** A file under a second name in the pod's directory; where that cannot be, it is used under its first. */
export async function linkedInto(files: DiskFiles, path: string, linkPath: string): Promise<string> {
  const isThere = (await files.link(path, linkPath)) || (await files.describe(linkPath)) !== undefined;
  return isThere ? linkPath : path;
}

function overlayPath(directory: string, volume: string): string {
  return `${directory}/${volume}.qcow2`;
}

function cdromPath(directory: string, volume: string): string {
  return `${directory}/${volume}.iso`;
}

function overlay(directory: string, volume: string): PreparedDisk {
  return { path: overlayPath(directory, volume), format: 'qcow2', cache: 'writeback' };
}

/** Not read-only: it is the pod's own, and a hard disk on SATA cannot be. */
function cdrom(directory: string, volume: string): PreparedDisk {
  return { path: cdromPath(directory, volume), format: 'raw', cache: 'writeback' };
}
