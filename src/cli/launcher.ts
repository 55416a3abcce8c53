import type { Env } from '../env/ports.ts';
import { realProcesses } from '../env/real-processes.ts';
import { Launcher } from '../hypervisor/launcher/launcher.ts';
import { UserError } from './failure.ts';
import { QEMU_PROGRAM } from './qemu-program.ts';

/** `godwit launcher`: what runs in a launcher pod, and starts its machine there. */

export interface LauncherCommandOptions {
  readonly socket: string;
  readonly directory: string;
}

/** Waits for orders, and ends as it is told: what it says last is what kubelets tell of a container that has failed. */
export async function launcher({ socket, directory }: LauncherCommandOptions, env: Env): Promise<void> {
  const launcher = new Launcher({
    log: env.log,
    processes: realProcesses,
    path: socket,
    program: QEMU_PROGRAM,
    directory,
  });
  // A pod that is being deleted keeps its guest for as long as its agent wants, and its grace period lets it.
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => launcher.terminate());
  const { exitCode, message } = await launcher.run();
  if (exitCode !== 0) throw new UserError(message, { exitCode });
  env.log.info('the launcher ends', { message });
}
