import type { DiskFiles } from '../../env/ports.ts';
import type { DiskSpec } from '../../hypervisor/machine.ts';
import { ownDiskBytes, HEAD_BYTES } from './qcow2.ts';

/** How large a guest sees a disk that is a file; undefined where there is no such file, or it says nothing sensible. */
export async function diskBytesOf(
  files: Pick<DiskFiles, 'describe' | 'read'>,
  { path, format }: Pick<DiskSpec, 'path' | 'format'>,
): Promise<number | undefined> {
  const found = await files.describe(path);
  if (found?.kind !== 'file') return undefined;
  const chunks: Uint8Array[] = [];
  if (format === 'qcow2')
    for await (const chunk of files.read(path, { offset: 0, length: HEAD_BYTES })) chunks.push(chunk);
  return ownDiskBytes(format, Buffer.concat(chunks), found.sizeBytes);
}
