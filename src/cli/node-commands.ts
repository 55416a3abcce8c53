import { Command, InvalidArgumentError } from 'commander';
import { realEnv } from '../env/real.ts';
import type { ClusterOptions } from './cluster-connection.ts';
import { withCluster, withOutput } from './cluster-options.ts';
import type { DrainCommandOptions } from './drain/drain-command.ts';

/** Commands for whoever looks after nodes. What they need is loaded when they run. */

type Print = (line: string) => void;

/** All of them. */
export function nodeCommands(print: Print): Command[] {
  return [drainCommand(print), uncordonCommand(print)];
}

const DURATION = /^(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,9})s)?$/;

/** Seconds of a span such as `90s` or `1h30m`; a bare number is seconds, too. */
function parseDuration(text: string): number {
  if (/^\d{1,9}$/.test(text)) return Number(text);
  const [, hours, minutes, seconds] = DURATION.exec(text) ?? [];
  if (hours === undefined && minutes === undefined && seconds === undefined)
    throw new InvalidArgumentError('give a span of time such as 90s, 10m or 1h30m (0 waits for ever).');
  return Number(hours ?? 0) * 3600 + Number(minutes ?? 0) * 60 + Number(seconds ?? 0);
}

function nodeCommand(name: string, description: string): Command {
  return withCluster(new Command(name).description(description).argument('<node>', 'its name'));
}

function drainCommand(print: Print): Command {
  const what = 'Empty a node: its virtual machines move, or stop, as their eviction strategies say.';
  return withOutput(nodeCommand('drain', what))
    .option('--dry-run', 'change nothing; say what would become of each virtual machine, and why')
    .option('--timeout <duration>', 'how long to go on, such as 10m (default: until it is empty)', parseDuration)
    .option('--force', 'evict also pods that nobody would make anew elsewhere')
    .option('--delete-emptydir-data', 'evict also pods that lose what is in an emptyDir')
    .addHelpText(
      'after',
      '\nExample:\n  godwit drain node-1 --dry-run\n  godwit drain node-1 --dry-run -o json\n  godwit drain node-1 --timeout 30m',
    )
    .action(async (name: string, options: DrainCommandOptions) => {
      const { drain } = await import('./drain/drain-command.ts');
      const interrupted = new AbortController();
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
      const terminal = { output: process.stdout, interrupted: interrupted.signal };
      await drain(name, options, realEnv('error'), print, terminal);
    });
}

function uncordonCommand(print: Print): Command {
  return nodeCommand('uncordon', 'Let a node take pods again; virtual machines that a drain was to move off it stay.')
    .addHelpText('after', '\nExample:\n  godwit uncordon node-1')
    .action(async (name: string, options: ClusterOptions) => {
      const { uncordon } = await import('./drain/drain-command.ts');
      await uncordon(name, options, realEnv('warn'), print);
    });
}
