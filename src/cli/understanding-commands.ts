import { Command } from 'commander';
import { realEnv } from '../env/real.ts';
import { withCluster, withNamespace, withOutput } from './cluster-options.ts';
import { paintFor } from './colours.ts';
import type { QueueCommandOptions } from './queue/queue-command.ts';
import type { StatusCommandOptions } from './status/status-command.ts';
import type { WhyCommandOptions } from './why/why-command.ts';

/** Commands that look at a cluster and change nothing. What they need is loaded when they run. */

type Print = (line: string) => void;

/** All of them. */
export function understandingCommands(print: Print): Command[] {
  return [statusCommand(print), queueCommand(print), whyCommand(print)];
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

function whyCommand(print: Print): Command {
  return withOutput(withNamespace(new Command('why')))
    .description(
      'Say what is with a virtual machine, a migration or a node: its state, why, what is next, what you can do.',
    )
    .argument('<name>', 'its name, or its kind')
    .argument('[second]', 'its name, after its kind')
    .usage('[options] [vm|vmi|migration|node] <name>')
    .addHelpText(
      'after',
      '\nExample:\n  godwit why myvm\n  godwit why node node-1\n  godwit why migration/kubevirt-migrate-vm-x7k2p -n shop',
    )
    .action(async (first: string, second: string | undefined, options: WhyCommandOptions) => {
      const { why } = await import('./why/why-command.ts');
      const words = second === undefined ? [first] : [first, second];
      await why(words, options, realEnv('error'), print, paintFor(process.stdout, process.env));
    });
}
