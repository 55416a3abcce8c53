/** What is kept of an image besides its files. */

export interface ImageFile {
  /** Inside the image, such as `/disk/disk.qcow2`. */
  readonly path: string;
  readonly digest: string;
  /** Of the file. */
  readonly sizeBytes: number;
  readonly format: 'raw' | 'qcow2';
  /** Of the disk that a guest would see. */
  readonly diskBytes: number;
}

export interface ImageRecord {
  /** With its tag. */
  readonly name: string;
  readonly digest: string;
  readonly importedAt: string;
  /** Whether it was made from a kernel, which then is what it boots whatever paths somebody asks for. */
  readonly isKernel?: boolean;
  readonly files: readonly ImageFile[];
}

/** Where container disks are, by convention. */
export const DISK_DIRECTORY = '/disk/';
/** Where an image that is made from a kernel has it. */
export const KERNEL_PATH = '/boot/vmlinuz';
export const INITRD_PATH = '/boot/initrd';

/** The image has not what was asked for. */
export class ImageContentsError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'ImageContentsError';
  }
}

/** The disk of an image: the one at the path, or the only one there is. */
export function diskOf({ name, files }: ImageRecord, path?: string): ImageFile {
  if (path) return fileAt(name, files, path);
  const disks = files.filter((file) => file.path.startsWith(DISK_DIRECTORY));
  const [disk] = disks;
  if (!disk) throw new ImageContentsError(`image ${name} has no disk: there is nothing in ${DISK_DIRECTORY}`);
  if (disks.length > 1)
    throw new ImageContentsError(
      `image ${name} has several disks (${disks.map((each) => each.path).join(', ')}): say which by a path`,
    );
  return disk;
}

/** The kernel of an image and its initial RAM disk, where one is asked for or belongs to it. */
export function kernelOf(
  { name, files, isKernel }: ImageRecord,
  kernelPath: string | undefined,
  initrdPath: string | undefined,
): { readonly kernel: ImageFile; readonly initrd: ImageFile | undefined } {
  if (isKernel)
    return {
      kernel: fileAt(name, files, KERNEL_PATH),
      initrd: files.find(({ path }) => path === INITRD_PATH),
    };
  if (!kernelPath) throw new ImageContentsError(`image ${name}: the path of the kernel must be given`);
  return {
    kernel: fileAt(name, files, kernelPath),
    initrd: initrdPath ? fileAt(name, files, initrdPath) : undefined,
  };
}

function fileAt(name: string, files: readonly ImageFile[], path: string): ImageFile {
  const normal = `/${path
    .split('/')
    .filter((each) => each !== '' && each !== '.')
    .join('/')}`;
  const file = files.find((each) => each.path === normal);
  if (file) return file;
  const known = files.slice(0, 10).map((each) => each.path);
  throw new ImageContentsError(`image ${name} has no file ${normal}; it has ${known.join(', ') || 'none'}`);
}
