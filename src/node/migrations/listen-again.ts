import { type Clock, sleep } from '../../env/ports.ts';
import type { MachineMigration, PortRange } from '../../hypervisor/migration.ts';
import { isRefused } from './copy-commands.ts';

/** How long a machine may take to let go, and how often it is asked meanwhile. */
const LET_GO_MS = 5000;
const POLL_MS = 50;

/**
 * The target of a post-copy lets go of its link, which may be dead though it does not know, and waits for its source on
 * another port. Asks nothing that a machine would not answer while it waits for memory that does not come.
 */
export async function listenAgain(migration: MachineMigration, range: PortRange, clock: Clock): Promise<number> {
  try {
    await migration.pausePostCopy();
  } catch (error) {
    // It has let go already.
    if (!isRefused(error)) throw error;
  }
  const deadlineMs = clock.now() + LET_GO_MS;
  for (;;) {
    try {
      return await migration.listenAgain(range);
    } catch (error) {
      if (!isRefused(error) || clock.now() >= deadlineMs) throw error;
    }
    await sleep(clock, POLL_MS);
  }
}
