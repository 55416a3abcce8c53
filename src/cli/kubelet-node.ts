import { resolve } from 'node:path';
import type { AgentOptions } from './agent.ts';
import { UserError } from './failure.ts';

/** Throws where the agent of a kubelet's node could not look after the launcher pods there; `pid` is its own. */
export function checkKubeletNode(
  options: Pick<AgentOptions, 'images' | 'shared'>,
  directory: string,
  pid: number,
): void {
  // Machines that it cannot see it would take for dead, and guests would be started elsewhere while they run.
  if (pid === 1)
    throw new UserError("--kubelet needs to see the processes of launcher pods: give the agent's pod hostPID: true");
  for (const option of ['images', 'shared'] as const) {
    const path = options[option];
    if (path !== undefined && !resolve(path).startsWith(`${directory}/`))
      throw new UserError(
        `--${option} has to be below ${directory} with --kubelet: launcher pods see nothing else of the node`,
        { exitCode: 2 },
      );
  }
}
