import { constants, type FileHandle, open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { DurableFile } from './ports.ts';

/** A file on a disk of this host, readable by its owner alone. One process may have it at a time. */
export function realDurableFile(path: string): DurableFile {
  let handle: FileHandle | undefined;
  return {
    async read() {
      try {
        return await readFile(path);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
        throw error;
      }
    },
    async write(atBytes, bytes) {
      handle ??= await open(path, constants.O_RDWR);
      await writeAll(handle, bytes, atBytes);
      await handle.sync();
    },
    async replace(bytes) {
      const draft = `${path}.new`;
      const next = await open(draft, 'w', 0o600);
      try {
        await writeAll(next, bytes, 0);
        await next.sync();
        await rename(draft, path);
      } catch (error) {
        await next.close();
        throw error;
      }
      const old = handle;
      handle = next;
      await old?.close();
      await syncDirectory(dirname(path));
    },
    async close() {
      const last = handle;
      handle = undefined;
      await last?.close();
    },
  };
}

async function writeAll(handle: FileHandle, bytes: Uint8Array, atBytes: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    done += (await handle.write(bytes, done, bytes.length - done, atBytes + done)).bytesWritten;
  }
}

/** A name is on the disk only when its directory is. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
