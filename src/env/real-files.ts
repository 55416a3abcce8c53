import { chmod, chown, constants, mkdir, open, rm } from 'node:fs/promises';
import type { HostFiles } from './ports.ts';

/** The files of the host. */
export const realFiles: HostFiles = {
  async makePrivateDirectory(path, owner) {
    await mkdir(path, { recursive: true, mode: 0o700 });
    // Whatever it was before, and whatever the umask is.
    await chmod(path, 0o700);
    if (owner) await chown(path, owner.uid, owner.gid);
  },
  async writePrivate(path, bytes, owner) {
    // Whoever may write to the directory must not have us write, or give away, what is elsewhere: a link is replaced, never followed.
    await rm(path, { force: true });
    const file = await open(path, 'wx', 0o600);
    try {
      await file.chmod(0o600);
      await file.writeFile(bytes);
      if (owner) await file.chown(owner.uid, owner.gid);
    } finally {
      await file.close();
    }
  },
  async readEnd(path, bytesMax) {
    let file;
    try {
      // Whoever may write to the directory must not have us read what is elsewhere, nor wait for what never comes.
      file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return '';
      throw error;
    }
    try {
      const { size } = await file.stat();
      const buffer = Buffer.alloc(Math.min(size, bytesMax));
      const { bytesRead } = await file.read(buffer, 0, buffer.length, size - buffer.length);
      return buffer.toString('utf8', 0, bytesRead);
    } finally {
      await file.close();
    }
  },
};
