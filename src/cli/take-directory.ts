import { DirectoryInUse, DirectoryLock } from './data-directory.ts';
import { UserError } from './failure.ts';
import type { ProcessName } from './process-metrics.ts';

/** Takes a data directory for this process, or says in a sentence why that cannot be. */
export function takeDirectory(directory: string, nowMs: number, what: ProcessName): DirectoryLock {
  try {
    return DirectoryLock.acquire(directory, nowMs, what);
  } catch (error) {
    if (error instanceof DirectoryInUse) throw new UserError(error.message, { cause: error });
    throw new UserError(`cannot use ${directory}: ${(error as Error).message}; choose another --data-dir`, {
      cause: error,
    });
  }
}
