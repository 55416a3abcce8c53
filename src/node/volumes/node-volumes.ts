import type { Volume } from '../../api/kubevirt/volumes.ts';
import { parseQuantity, quantityToNumber } from '../../api/quantity.ts';
import type { DiskFiles } from '../../env/ports.ts';
import type { Client } from '../../kube/client.ts';
import type { PersistentVolumeClaim } from '../../migration/fit/objects.ts';
import { judgeImage, objectionText, USE_IMAGE } from '../../migration/right-to-run/image-stamps.ts';
import type { ImageStore } from '../images/image-store.ts';
import { boundVolumeName, claimSource } from './claim-source.ts';
import { cloudInitSource, configMapSource, secretSource } from './config-source.ts';
import { type DiskPlace, type DiskSource, forVolume, madeDisk, makeDisk } from './disk-source.ts';
import {
  type GuestVolumes,
  type PreparedDisk,
  type PreparedVolumes,
  VolumeError,
  type VolumeRequest,
} from './guest-volumes.ts';
import { hostDiskSource } from './host-disk-source.ts';
import { containerDiskSource, kernelSource } from './image-source.ts';
import type { ImageStampFiles } from './image-stamp-files.ts';
import { claims, ObjectReader, persistentVolumes } from './resources.ts';

export interface NodeVolumesOptions {
  /** Speaks as this node. */
  readonly client: Client;
  readonly files: DiskFiles;
  readonly images: ImageStore;
  /** Directories of which guests may not name files of the node as their disks. */
  readonly reservedDirectories: readonly string[];
  readonly stamps: Pick<ImageStampFiles, 'look' | 'makeRoom'>;
  /** The one directory of the node that QEMU sees files of, where it runs in containers; all of them where absent. */
  readonly seenDirectory?: string | undefined;
}

/**
 * Volumes of guests on a node with files. First everything is looked up, then everything is made: while one volume is
 * missing, none is made that would be out of date once it has come. What is made stays as it is for the life of the pod.
 */
export class NodeVolumes implements GuestVolumes {
  readonly #options: NodeVolumesOptions;

  constructor(options: NodeVolumesOptions) {
    this.#options = options;
  }

  async prepare(request: VolumeRequest, signal: AbortSignal): Promise<PreparedVolumes> {
    const { guest, directory, user } = request;
    const { files, images, stamps } = this.#options;
    const looking: Looking = { ...request, accepted: new Map(), notices: [] };
    await files.makeDirectory(directory, { mode: 0o700, owner: user });
    const { volumes = [], domain } = guest.spec;
    const shown = new Set((domain.devices.disks ?? []).map(({ name }) => name));
    const found: (readonly [DiskPlace, PreparedDisk | DiskSource])[] = [];
    for (const volume of volumes.filter(({ name }) => shown.has(name))) {
      const place: DiskPlace = { files, volume: volume.name, directory, user };
      found.push([place, (await madeDisk(place)) ?? (await this.#sourceOf(volume, looking, signal))]);
    }
    const { kernelBoot } = domain.firmware ?? {};
    const placeKernel = kernelBoot ? await kernelSource(kernelBoot, images) : undefined;
    const disks = new Map<string, PreparedDisk>();
    for (const [place, source] of found) {
      const made = 'kind' in source ? await makeDisk(place, source) : source;
      const disk = await fitted(place, made, looking.disks?.sizesBytes?.get(place.volume));
      disks.set(place.volume, disk);
      if (disk.claim && disk.isReadOnly !== true && 'kind' in source && source.kind === 'file')
        await forVolume(place.volume, () => stamps.makeRoom(disk));
    }
    const { accepted, notices } = looking;
    return { disks, kernel: await placeKernel?.(files, directory), accepted, notices };
  }

  async #sourceOf(volume: Volume, looking: Looking, signal: AbortSignal): Promise<DiskSource> {
    const { guest, user } = looking;
    const { client, images, files, reservedDirectories } = this.#options;
    const { name, containerDisk, emptyDisk, hostDisk, configMap, secret, ephemeral } = volume;
    const room = roomFor(volume, looking.disks?.sizesBytes?.get(name));
    if (room) return room;
    const reader = new ObjectReader(client, guest.metadata.namespace ?? '', name, signal);
    if (containerDisk) return containerDiskSource(name, containerDisk, images);
    if (emptyDisk) return { kind: 'empty', sizeBytes: bytesOf(name, emptyDisk.capacity) };
    if (hostDisk) {
      this.#checkSeen(name, hostDisk.path);
      return hostDiskSource(name, hostDisk, { files, user, reservedDirectories });
    }
    if (configMap) return configMapSource(guest, configMap, reader);
    if (secret) return secretSource(guest, secret, reader);
    const claim = volume.persistentVolumeClaim ?? (volume.dataVolume && { claimName: volume.dataVolume.name });
    const isReadOnly = volume.persistentVolumeClaim?.readOnly ?? false;
    if (claim) return this.#claim(name, claim.claimName, isReadOnly, reader, looking);
    if (ephemeral?.persistentVolumeClaim)
      return this.#ephemeral(name, ephemeral.persistentVolumeClaim.claimName, reader, looking);
    const cloudInit = await cloudInitSource(guest, volume, reader);
    if (cloudInit) return cloudInit;
    const kinds = Object.keys(volume).filter((key) => key !== 'name');
    throw new VolumeError(name, 'NotSupported', `volumes of the kind ${kinds.join(', ')} are not supported here`);
  }

  async #claim(
    volume: string,
    claimName: string,
    isReadOnly: boolean,
    reader: ObjectReader,
    looking: Looking,
  ): Promise<DiskSource & { kind: 'file' | 'device' }> {
    const claim = await reader.get(claims, claimName);
    const persistentVolume = await reader.get(persistentVolumes, boundVolumeName(volume, claim));
    const isFilled = looking.disks?.sizesBytes?.has(volume) === true;
    const source = { ...claimSource(volume, claim, persistentVolume, isReadOnly && !isFilled), isReadOnly };
    this.#checkSeen(volume, source.path);
    await this.#judge(volume, claim, source.path, looking);
    return source;
  }

  /** What QEMU does not see from its container the agent does not see from its own, and would make there, for nobody. */
  #checkSeen(volume: string, path: string): void {
    const { seenDirectory } = this.#options;
    if (seenDirectory === undefined || path.startsWith(`${seenDirectory}/`)) return;
    const message = `${path} is not below ${seenDirectory}, and guests in containers see nothing else of their node`;
    throw new VolumeError(volume, 'NotSupported', message);
  }

  /** Nothing is made, and nobody given anything, of an image that has not what the guest wrote last. */
  async #judge(volume: string, { metadata }: PersistentVolumeClaim, path: string, looking: Looking): Promise<void> {
    const { disks, accepted, notices } = looking;
    if (disks === undefined || disks.filled.has(volume)) return;
    const claim = { name: metadata.name ?? '', uid: metadata.uid ?? '' };
    const { stamp } = await forVolume(volume, () => this.#options.stamps.look({ path, claim }));
    const objection = judgeImage({ claim, stamp }, disks.vm, ...disks.records);
    if (objection === undefined) return;
    if (metadata.annotations?.[USE_IMAGE] !== objection.name)
      throw new VolumeError(volume, 'StaleImage', objectionText(objection, claim.name, metadata.namespace ?? ''));
    accepted.set(claim.uid, objection.name);
    notices.push(`volume ${volume}: the image of claim ${claim.name} is used though ${objection.message}`);
  }

  async #ephemeral(volume: string, claimName: string, reader: ObjectReader, looking: Looking): Promise<DiskSource> {
    const { files } = this.#options;
    const { user } = looking;
    const below = await this.#claim(volume, claimName, true, reader, looking);
    if (below.kind === 'device')
      throw new VolumeError(
        volume,
        'ClaimUnusable',
        `claim ${claimName} is a device, and nothing can be laid upon it here`,
      );
    // It is looked at as if it were used by itself: there must be a file, which QEMU may read.
    const { path } = await makeDisk({ files, volume, directory: '', user }, below);
    const diskBytes = (await files.describe(path))?.sizeBytes ?? 0;
    return { kind: 'overlay', base: { path, format: 'raw', diskBytes }, isLinked: false };
  }
}

/** A request, with what was found while it was looked after. */
interface Looking extends VolumeRequest {
  readonly accepted: Map<string, string>;
  readonly notices: string[];
}

/** What is made for a volume that comes from elsewhere, whatever is here; undefined where it has a place of its own. */
function roomFor(volume: Volume, sizeBytes: number | undefined): DiskSource | undefined {
  if (sizeBytes === undefined) return undefined;
  const { containerDisk, emptyDisk, ephemeral, configMap, secret, cloudInitNoCloud, cloudInitConfigDrive } = volume;
  if (containerDisk ?? emptyDisk ?? ephemeral) return { kind: 'empty', sizeBytes };
  return (configMap ?? secret ?? cloudInitNoCloud ?? cloudInitConfigDrive) ? { kind: 'blank', sizeBytes } : undefined;
}

/** The disk as large as the one that comes from elsewhere: a guest must not see it change, and less has no room for it. */
async function fitted(
  { files, volume }: DiskPlace,
  disk: PreparedDisk,
  sizeBytes: number | undefined,
): Promise<PreparedDisk> {
  if (sizeBytes === undefined || disk.format !== 'raw') return disk;
  const own = disk.isDevice ? undefined : ((await files.describe(disk.path))?.sizeBytes ?? 0);
  if (own === sizeBytes) return disk;
  if (own !== undefined && own < sizeBytes)
    throw new VolumeError(
      volume,
      'DiskTooSmall',
      `it has ${own} bytes, and the disk of the guest that comes ${sizeBytes}`,
    );
  if (sizeBytes % SECTOR_BYTES !== 0)
    throw new VolumeError(volume, 'NotSupported', `${sizeBytes} bytes are no part of a larger disk`);
  return { ...disk, sizeBytes };
}

/** Disks are made of these. */
const SECTOR_BYTES = 512;

function bytesOf(volume: string, capacity: string | number): number {
  const quantity = parseQuantity(capacity);
  const bytes = quantity ? Math.floor(quantityToNumber(quantity)) : 0;
  if (bytes > 0) return bytes;
  throw new VolumeError(volume, 'NotSupported', `${capacity} is no size of a disk`);
}
