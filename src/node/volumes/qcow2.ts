/**
 * The little of QEMU's image format that is needed without its tools: reading what an image claims to be, and making one
 * that has nothing of its own yet. The format is described in QEMU's docs/interop/qcow2.txt.
 */

export type ImageFormat = 'raw' | 'qcow2';

const MAGIC = 0x514649fb;
const CLUSTER_BITS = 16;
const CLUSTER_BYTES = 2 ** CLUSTER_BITS;
const HEADER_BYTES = 104;
const HEADER_BYTES_OLD = 72;
const SECTOR_BYTES = 512;
/** One entry of the first table is for as much as one cluster full of second-table entries can hold. */
const BYTES_PER_TABLE_ENTRY = CLUSTER_BYTES * (CLUSTER_BYTES / 8);
const REFERENCE_COUNT_ORDER = 4;
const BACKING_FORMAT = 0xe2792aca;
/** What QEMU takes as the name of a backing file. */
const BACKING_PATH_BYTES_MAX = 1023;
/** Bit of an image whose contents are in another file. */
const DATA_FILE_BIT = 2n;
/** No disk is larger; a larger number in a header is there to do harm. */
const SIZE_BYTES_MAX = 2 ** 50;

/** How much of the beginning of a file is enough to say what it is. */
export const HEAD_BYTES = HEADER_BYTES;

/** What an image says of itself. */
export interface ImageFacts {
  readonly format: ImageFormat;
  /** The size of the disk that a guest sees. */
  readonly diskBytes: number;
}

/** The image says something that it must not, or nothing sensible. */
export class ImageFormatError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ImageFormatError';
  }
}

/** How large a guest sees a disk of its own, which may rest on another file; undefined for what is none. */
export function ownDiskBytes(format: ImageFormat, head: Uint8Array, fileBytes: number): number | undefined {
  if (format === 'raw') return Math.ceil(fileBytes / SECTOR_BYTES) * SECTOR_BYTES;
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  if (head.length < HEADER_BYTES_OLD || view.getUint32(0) !== MAGIC) return undefined;
  const bytes = Number(view.getBigUint64(24));
  return bytes <= SIZE_BYTES_MAX ? bytes : undefined;
}

/**
 * What a file is, by its first bytes. An image that would make QEMU open other files, or ask for a password, is refused
 * with an ImageFormatError: whoever made it may not choose files of this host.
 */
export function imageFacts(head: Uint8Array, fileBytes: number): ImageFacts {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  if (head.length < 4 || view.getUint32(0) !== MAGIC)
    return { format: 'raw', diskBytes: Math.ceil(fileBytes / SECTOR_BYTES) * SECTOR_BYTES };
  if (head.length < HEADER_BYTES_OLD) throw new ImageFormatError('the qcow2 image ends within its header');
  const version = view.getUint32(4);
  if (version !== 2 && version !== 3) throw new ImageFormatError(`version ${version} of qcow2 is not supported`);
  if (view.getBigUint64(8) !== 0n)
    throw new ImageFormatError('the qcow2 image has a backing file; flatten it with qemu-img convert -O qcow2');
  if (view.getUint32(32) !== 0) throw new ImageFormatError('the qcow2 image is encrypted');
  if (version === 3 && head.length < HEADER_BYTES) throw new ImageFormatError('the qcow2 image ends within its header');
  if (version === 3 && (view.getBigUint64(72) >> DATA_FILE_BIT) & 1n)
    throw new ImageFormatError(
      'the qcow2 image has its data in another file; flatten it with qemu-img convert -O qcow2',
    );
  const diskBytes = Number(view.getBigUint64(24));
  if (diskBytes > SIZE_BYTES_MAX) throw new ImageFormatError(`the qcow2 image claims to be of ${diskBytes} bytes`);
  return { format: 'qcow2', diskBytes };
}

/** A new image: its first bytes, and the size of its file, of which the rest is zeros. */
export interface NewImage {
  readonly bytes: Uint8Array;
  readonly sizeBytes: number;
}

/** An image of a disk that is still as its backing file is; without one, all zeros. */
export function newQcow2(
  diskBytes: number,
  backing?: { readonly path: string; readonly format: ImageFormat },
): NewImage {
  if (!Number.isSafeInteger(diskBytes) || diskBytes < 0 || diskBytes > SIZE_BYTES_MAX)
    throw new ImageFormatError(`${diskBytes} bytes is no size of a disk`);
  const sizeOfDisk = Math.ceil(diskBytes / SECTOR_BYTES) * SECTOR_BYTES;
  const tableEntries = Math.max(1, Math.ceil(sizeOfDisk / BYTES_PER_TABLE_ENTRY));
  const tableClusters = Math.ceil((tableEntries * 8) / CLUSTER_BYTES);
  // Header, the table of reference counts, the counts themselves, and the table of the disk.
  const clusters = 3 + tableClusters;
  const bytes = new Uint8Array(2 * CLUSTER_BYTES + clusters * 2);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, MAGIC);
  view.setUint32(4, 3);
  view.setUint32(20, CLUSTER_BITS);
  view.setBigUint64(24, BigInt(sizeOfDisk));
  view.setUint32(36, tableEntries);
  view.setBigUint64(40, BigInt(3 * CLUSTER_BYTES));
  view.setBigUint64(48, BigInt(CLUSTER_BYTES));
  view.setUint32(56, 1);
  view.setUint32(96, REFERENCE_COUNT_ORDER);
  view.setUint32(100, HEADER_BYTES);
  if (backing) writeBacking(bytes, view, backing);
  view.setBigUint64(CLUSTER_BYTES, BigInt(2 * CLUSTER_BYTES));
  for (let cluster = 0; cluster < clusters; cluster++) view.setUint16(2 * CLUSTER_BYTES + cluster * 2, 1);
  return { bytes, sizeBytes: clusters * CLUSTER_BYTES };
}

/** The format is said, too: QEMU would otherwise guess it, and a guest can write into a raw disk what QEMU would guess. */
function writeBacking(bytes: Uint8Array, view: DataView, backing: { path: string; format: ImageFormat }): void {
  const format = new TextEncoder().encode(backing.format);
  const path = new TextEncoder().encode(backing.path);
  if (path.length === 0 || path.length > BACKING_PATH_BYTES_MAX)
    throw new ImageFormatError(`${backing.path} is too long for a backing file`);
  view.setUint32(HEADER_BYTES, BACKING_FORMAT);
  view.setUint32(HEADER_BYTES + 4, format.length);
  bytes.set(format, HEADER_BYTES + 8);
  // Extensions are of eight bytes each, and end with one of zeros.
  const pathOffset = HEADER_BYTES + 8 + Math.ceil(format.length / 8) * 8 + 8;
  bytes.set(path, pathOffset);
  view.setBigUint64(8, BigInt(pathOffset));
  view.setUint32(16, path.length);
}
