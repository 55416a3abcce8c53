import { DirectoryInUse, DirectoryLock } from './data-directory.ts';
import { UserError } from './failure.ts';

/** Takes a data directory for this process, or says in a sentence why that cannot be. */
export function takeDirectory(directory: string, nowMs: number): DirectoryLock {
  try {
    return DirectoryLock.acquire(directory, nowMs);
  } catch (error) {
    if (error instanceof DirectoryInUse) throw new UserError(error.message, { cause: error });
    throw new UserError(`cannot use ${directory}: ${(error as Error).message}; choose another --data-dir`, {
      cause: error,
    });
  }
}
