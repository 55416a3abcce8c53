import { Command } from 'commander';
import { realEnv } from '../env/real.ts';
import { withCluster, withOutput } from './cluster-options.ts';
import { paintFor } from './colours.ts';
import type { QueueCommandOptions } from './queue/queue-command.ts';
import type { StatusCommandOptions } from './status/status-command.ts';

/** Commands that look at a cluster and change nothing. What they need is loaded when they run. */

type Print = (line: string) => void;

/** All of them. */
export function understandingCommands(print: Print): Command[] {
  return [statusCommand(print), queueCommand(print)];
}

const ONLY_NAMESPACE = 'show nothing of other namespaces';

function statusCommand(print: Print): Command {
  return withOutput(withCluster(new Command('status').option('-n, --namespace <namespace>', ONLY_NAMESPACE)))
    .description('Show the cluster in one picture: nodes, virtual machines, and what moves.')
    .addHelpText('after', '\nExample:\n  godwit status\n  godwit status -n shop -o wide')
    .action(async (options: StatusCommandOptions) => {
      const { status } = await import('./status/status-command.ts');
      await status(options, realEnv('error'), print, paintFor(process.stdout, process.env));
    });
}

function queueCommand(print: Print): Command {
  return withOutput(withCluster(new Command('queue').option('-n, --namespace <namespace>', ONLY_NAMESPACE)))
    .description('Show who waits to move: why, behind whom, and what would let it go.')
    .addHelpText('after', '\nExample:\n  godwit queue\n  godwit queue -o json')
    .action(async (options: QueueCommandOptions) => {
      const { queue } = await import('./queue/queue-command.ts');
      await queue(options, realEnv('error'), print, paintFor(process.stdout, process.env));
    });
}
