import { resolve } from 'node:path';
import { type Clock, sleep } from '../env/ports.ts';
import { holderOf } from './data-directory.ts';
import { UserError } from './failure.ts';

/** How long a control plane may take to stop before we say so; it goes on stopping all the same. */
const STOP_TIMEOUT_MS = 30_000;
const POLL_INTERVAL_MS = 50;

/** Stops the control plane of a data directory, and returns once it is gone. */
export async function down(options: { dataDir: string }, clock: Clock, print: (line: string) => void): Promise<void> {
  const directory = resolve(options.dataDir);
  const holder = holderOf(directory);
  if (!holder) {
    print(`Nothing runs in ${directory}.`);
    return;
  }
  process.kill(holder.pid, 'SIGTERM');
  const deadlineMs = clock.now() + STOP_TIMEOUT_MS;
  // A process that is not our child gives no event when it ends.
  while (holderOf(directory)?.pid === holder.pid) {
    if (clock.now() > deadlineMs)
      throw new UserError(
        `process ${holder.pid} has not stopped within ${STOP_TIMEOUT_MS / 1000} s; look at its log, or end it with 'kill -9 ${holder.pid}' (no acknowledged write is lost)`,
      );
    await sleep(clock, POLL_INTERVAL_MS);
  }
  print(`Stopped the control plane in ${directory} (process ${holder.pid}).`);
}
