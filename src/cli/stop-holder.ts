import { type Clock, sleep } from '../env/ports.ts';
import { type Holder, holderOf } from './data-directory.ts';
import { UserError } from './failure.ts';

/** How long a process may take to stop before we say so; it goes on stopping all the same. */
const STOP_TIMEOUT_MS = 30_000;
const POLL_INTERVAL_MS = 50;

/** `SIGTERM` stops a process; `SIGUSR2` tells it to stop the virtual machines that it is responsible for first. */
export type StopSignal = 'SIGTERM' | 'SIGUSR2';

/** Stops whoever holds a directory, and returns once it is gone; undefined where nobody does. */
export async function stopHolder(
  directory: string,
  clock: Clock,
  signal: StopSignal = 'SIGTERM',
  timeoutMs = STOP_TIMEOUT_MS,
): Promise<Holder | undefined> {
  const holder = holderOf(directory);
  if (!holder) return undefined;
  tell(holder.pid, signal);
  const deadlineMs = clock.now() + timeoutMs;
  // A process that is not our child gives no event when it ends.
  while (holderOf(directory)?.pid === holder.pid) {
    if (clock.now() > deadlineMs)
      throw new UserError(
        `process ${holder.pid} has not stopped within ${timeoutMs / 1000} s; look at its log, or end it with 'kill -9 ${holder.pid}' (no acknowledged write is lost)`,
      );
    await sleep(clock, POLL_INTERVAL_MS);
  }
  return holder;
}

function tell(pid: number, signal: StopSignal): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EPERM')
      throw new UserError(`process ${pid} is another user's; stop it as that user`, { cause: error });
    // It ended just now, which is what was wanted.
    if (code !== 'ESRCH') throw error;
  }
}
