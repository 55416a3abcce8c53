import { chmod, chown, constants, open } from 'node:fs/promises';
import type { UserIdentity } from '../../env/ports.ts';

/** Linux's way to name a file without opening it, as sockets cannot be opened; Node.js has no name for it. */
const O_PATH = 0o10000000;

/**
 * Leaves a socket to one user alone. The directory may be that user's, who may put a link there any moment: what is
 * changed is the very socket that was looked at.
 */
export async function leaveSocketTo(path: string, user: UserIdentity | undefined): Promise<void> {
  const file = await open(path, O_PATH | constants.O_NOFOLLOW);
  try {
    if (!(await file.stat()).isSocket()) throw new Error(`${path} is no socket any more`);
    const itself = `/proc/self/fd/${file.fd}`;
    await chmod(itself, 0o600);
    if (user) await chown(itself, user.uid, user.gid);
  } finally {
    await file.close();
  }
}
