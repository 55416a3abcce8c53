import { writeFileSync } from 'node:fs';
import type { Env } from '../env/ports.ts';
import { realProcesses } from '../env/real-processes.ts';
import { Launcher } from '../hypervisor/launcher/launcher.ts';

/** `godwit launcher`: what runs in a launcher pod, and starts its machine there. */

export interface LauncherCommandOptions {
  readonly socket: string;
}

/** Where kubelets look for a container's last words. */
const LAST_WORDS = '/dev/termination-log';

/** Waits for orders, and ends as it is told. */
export async function launcher({ socket }: LauncherCommandOptions, env: Env): Promise<void> {
  const launcher = new Launcher({ log: env.log, processes: realProcesses, path: socket });
  // A pod that is being deleted keeps its guest for as long as its agent wants, and its grace period lets it.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => launcher.terminate());
  const { exitCode, message } = await launcher.run();
  env.log.info('the launcher ends', { exitCode, message });
  try {
    writeFileSync(LAST_WORDS, message);
  } catch (error) {
    // Outside of a pod nobody asks for them.
    env.log.debug('the last words are heard by nobody', { error: String(error) });
  }
  process.exitCode = exitCode;
}
