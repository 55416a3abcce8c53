import type { DiskFiles } from '../../env/ports.ts';
import type { KernelSpec } from '../../hypervisor/machine.ts';
import type { Domain } from '../../api/kubevirt/domain.ts';
import type { Volume } from '../../api/kubevirt/volumes.ts';
import { diskOf, ImageContentsError, type ImageRecord, kernelOf } from '../images/image-record.ts';
import { ImageReferenceError } from '../images/image-reference.ts';
import type { ImageStore } from '../images/image-store.ts';
import { type DiskSource, linkedInto } from './disk-source.ts';
import { VolumeError } from './guest-volumes.ts';

/** What comes from the images of this host. */

/** The name in complaints about the kernel, which is no volume. */
const KERNEL = 'kernelBoot';

/** The disk in an image, upon which the guest writes its own. */
export async function containerDiskSource(
  volume: string,
  { image, path }: NonNullable<Volume['containerDisk']>,
  images: ImageStore,
): Promise<DiskSource> {
  const record = await imageNamed(volume, image, images, 'FILE');
  const disk = contentsOf(volume, () => diskOf(record, path));
  const { format, diskBytes } = disk;
  return { kind: 'overlay', base: { path: images.pathOf(disk), format, diskBytes }, isLinked: true };
}

type KernelBoot = NonNullable<NonNullable<Domain['firmware']>['kernelBoot']>;

/** Finds the kernel, and says how to put it into a pod's directory. */
export async function kernelSource(
  { container, kernelArgs }: KernelBoot,
  images: ImageStore,
): Promise<((files: DiskFiles, directory: string) => Promise<KernelSpec>) | undefined> {
  if (!container) return undefined;
  const record = await imageNamed(KERNEL, container.image, images, '--kernel FILE --initrd FILE');
  const { kernel, initrd } = contentsOf(KERNEL, () => kernelOf(record, container.kernelPath, container.initrdPath));
  return async (files, directory) => ({
    path: await linkedInto(files, images.pathOf(kernel), `${directory}/kernel`),
    ...(initrd ? { initrdPath: await linkedInto(files, images.pathOf(initrd), `${directory}/initrd`) } : {}),
    ...(kernelArgs ? { commandLine: kernelArgs } : {}),
  });
}

async function imageNamed(volume: string, name: string, images: ImageStore, how: string): Promise<ImageRecord> {
  try {
    const record = await images.find(name);
    if (record) return record;
  } catch (error) {
    if (error instanceof ImageReferenceError) throw new VolumeError(volume, 'ErrImagePull', error.message, error);
    throw error;
  }
  throw new VolumeError(
    volume,
    'ErrImagePull',
    `image ${name} is not in the store of this host; import it with: godwit image import ${name} ${how}`,
  );
}

function contentsOf<T>(volume: string, choose: () => T): T {
  try {
    return choose();
  } catch (error) {
    if (error instanceof ImageContentsError) throw new VolumeError(volume, 'ImageUnusable', error.message, error);
    throw error;
  }
}
