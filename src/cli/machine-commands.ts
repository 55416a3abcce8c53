import { Command, InvalidArgumentError, Option } from 'commander';
import { realEnv } from '../env/real.ts';
import type { ClusterOptions } from './cluster-connection.ts';
import { withNamespace, withOutput } from './cluster-options.ts';
import type { EvacuateCancelOptions } from './evacuate-cancel.ts';
import type { LogsOptions } from './machine-logs.ts';
import type { MigrateOptions } from './machine-migration.ts';
import type { PowerCommandOptions } from './machine-power.ts';
import type { MoveCommandOptions } from './move/move-command.ts';
import type { ReclaimOptions } from './reclaim.ts';

/** Commands for whoever uses machines, with virtctl's arguments. What they need is loaded when they run. */

type Print = (line: string) => void;

/** All of them. */
export function machineCommands(print: Print): Command[] {
  return [
    powerCommand('start', 'Start a virtual machine.', print).option('--paused', 'hold the guest before it begins'),
    forcible(powerCommand('stop', 'Stop a virtual machine; its guest is asked to shut down first.', print)),
    forcible(powerCommand('restart', 'Stop a virtual machine, and start it again.', print)),
    pauseCommand('pause', 'Hold a running virtual machine where it is.', print),
    pauseCommand('unpause', 'Let a paused virtual machine go on.', print),
    migrateCommand(print),
    migrateCancelCommand(print),
    moveCommand(print),
    evacuateCancelCommand(print),
    reclaimCommand(print),
    consoleCommand(),
    logsCommand(),
  ];
}

function parseSeconds(text: string): number {
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('give a whole number of seconds.');
  return Number(text);
}

function parseLines(text: string): number | undefined {
  if (text === '-1') return undefined;
  if (!/^\d{1,9}$/.test(text)) throw new InvalidArgumentError('give a whole number of lines, or -1 for all.');
  return Number(text);
}

function parseMinutes(text: string): number {
  if (!/^\d{1,6}$/.test(text)) throw new InvalidArgumentError('give a whole number of minutes.');
  return Number(text);
}

function clusterCommand(name: string, description: string): Command {
  return withNamespace(new Command(name).description(description));
}

function powerCommand(action: 'start' | 'stop' | 'restart', description: string, print: Print): Command {
  return clusterCommand(action, description)
    .argument('<vm>', 'its name')
    .option('--dry-run', 'change nothing')
    .addHelpText('after', `\nExample:\n  godwit ${action} myvm`)
    .action(async (name: string, options: PowerCommandOptions) => {
      const { changePower } = await import('./machine-power.ts');
      await changePower(action, name, options, realEnv('warn'), print);
    });
}

function forcible(command: Command): Command {
  return command
    .option('--force', 'do not wait for the guest longer than --grace-period says')
    .option('--grace-period <seconds>', 'how long the guest has to shut down; with --force', parseSeconds);
}

function pauseCommand(action: 'pause' | 'unpause', description: string, print: Print): Command {
  return clusterCommand(action, description)
    .argument('<vm>', 'its name, or its kind')
    .argument('[name]', 'its name, after its kind')
    .usage('[options] [vm|vmi] <name>')
    .option('--dry-run', 'change nothing')
    .addHelpText('after', `\nExample:\n  godwit ${action} myvm\n  godwit ${action} vmi myvmi`)
    .action(async (first: string, second: string | undefined, options: PowerCommandOptions) => {
      const { changePause } = await import('./machine-power.ts');
      const words = second === undefined ? [first] : [first, second];
      await changePause(action, words, options, realEnv('warn'), print);
    });
}

/** Labels as virtctl takes them: `key=value,key=value`, in one or several options. */
function parseLabels(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const pairs = text.split(',').map((pair): [string, string] => {
    const at = pair.indexOf('=');
    if (at < 1) throw new InvalidArgumentError('give labels as key=value, with commas between them.');
    return [pair.slice(0, at), pair.slice(at + 1)];
  });
  return { ...before, ...Object.fromEntries(pairs) };
}

function migrateCommand(print: Print): Command {
  return clusterCommand('migrate', 'Move a running virtual machine to another node.')
    .argument('<vm>', 'its name')
    .option('--addedNodeSelector <key=value,...>', 'labels that the node must have, besides its own', parseLabels)
    .option('-w, --watch', 'show how it goes until it is over; fails if the guest does not move')
    .option('--dry-run', 'change nothing')
    .addHelpText('after', '\nExample:\n  godwit migrate myvm --watch\n  godwit migrate myvm --addedNodeSelector zone=b')
    .action(async (name: string, options: MigrateOptions) => {
      const { migrate } = await import('./machine-migration.ts');
      const interrupted = new AbortController();
      if (options.watch === true)
        for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
      const terminal = { output: process.stdout, interrupted: interrupted.signal };
      await migrate(name, options, realEnv(options.watch === true ? 'error' : 'warn'), print, terminal);
    });
}

function migrateCancelCommand(print: Print): Command {
  return clusterCommand('migrate-cancel', 'Stop the migration of a virtual machine; it goes on where it is.')
    .argument('<vm>', 'its name')
    .option('--dry-run', 'change nothing')
    .addHelpText('after', '\nExample:\n  godwit migrate-cancel myvm')
    .action(async (name: string, options: MigrateOptions) => {
      const { cancelMigration } = await import('./machine-migration.ts');
      await cancelMigration(name, options, realEnv('warn'), print);
    });
}

/** Names for other names: `A=B`, in one or several options. */
function parseMapping(text: string, before: Readonly<Record<string, string>> = {}): Record<string, string> {
  const [from = '', to = '', ...rest] = text.split('=');
  if (from === '' || to === '' || rest.length > 0)
    throw new InvalidArgumentError('give a name here and a name there, as A=B.');
  return { ...before, [from]: to };
}

function moveCommand(print: Print): Command {
  return withOutput(clusterCommand('move', 'Move a running virtual machine to another namespace or cluster.'))
    .argument('<vm>', 'its name')
    .option('--to-namespace <namespace>', 'the namespace to move to (default: of the same name)')
    .option('--to-context <context>', 'the context of the cluster to move to (default: the same cluster)')
    .option('--to-kubeconfig <file>', 'a kubeconfig of the cluster to move to, where that is another file')
    .option('--name <name>', 'what it is called there (default: as here)')
    .option('--connect-url <host:port>', 'where the synchronization controller there is reached, if it says otherwise')
    .option('--map-storage-class <a=b>', 'the storage class there (b) for claims of one here (a)', parseMapping)
    .option('--map-network <a=b>', 'the network there (b) for one here (a)', parseMapping)
    .option('--dry-run', 'change nothing; say what would be made, and what is in the way')
    .addHelpText(
      'after',
      '\nExample:\n  godwit move myvm --to-namespace other --dry-run\n  godwit move myvm --to-namespace other --dry-run -o yaml\n  godwit move myvm --to-context west --map-storage-class shared=fast',
    )
    .action(async (name: string, options: MoveCommandOptions) => {
      const { move } = await import('./move/move-command.ts');
      const interrupted = new AbortController();
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => interrupted.abort());
      const terminal = { output: process.stdout, interrupted: interrupted.signal };
      await move(name, options, realEnv('error'), print, terminal);
    });
}

function evacuateCancelCommand(print: Print): Command {
  return clusterCommand('evacuate-cancel', 'Let virtual machines stay that have to leave their node.')
    .argument('<vm>', 'its name, or its kind')
    .argument('[name]', 'its name, after its kind')
    .usage('[options] [vm|vmi|node] <name>')
    .option('--dry-run', 'change nothing')
    .addHelpText('after', '\nExample:\n  godwit evacuate-cancel myvm\n  godwit evacuate-cancel node mynode')
    .action(async (first: string, second: string | undefined, options: EvacuateCancelOptions) => {
      const { cancelEvacuation } = await import('./evacuate-cancel.ts');
      const words = second === undefined ? [first] : [first, second];
      await cancelEvacuation(words, options, realEnv('warn'), print);
    });
}

function reclaimCommand(print: Print): Command {
  const what =
    'Bring back a guest that went to another namespace or cluster, which was fenced; or say which copy of one here counts.';
  return clusterCommand('reclaim', what)
    .argument('<vm>', 'its name')
    .addOption(
      new Option('--keep <node>', 'of a guest that is here: it runs on this node, and goes on').conflicts('afresh'),
    )
    .option('--afresh', 'of a guest that is here: it runs nowhere, and starts anew')
    .option('--i-have-fenced-the-other-side', 'nothing of the guest runs there, nor ever will: nobody else checks that')
    .option('--dry-run', 'change nothing')
    .addHelpText(
      'after',
      '\nExample:\n  godwit reclaim myvm --i-have-fenced-the-other-side\n  godwit reclaim myvm --afresh --i-have-fenced-the-other-side',
    )
    .action(async (name: string, options: ReclaimOptions) => {
      const { reclaim } = await import('./reclaim.ts');
      await reclaim(name, options, realEnv('warn'), print);
    });
}

function consoleCommand(): Command {
  return clusterCommand('console', 'Connect this terminal to the serial console of a virtual machine.')
    .argument('<vm>', 'its name')
    .option('--timeout <minutes>', 'how long to wait until it runs', parseMinutes, 5)
    .addHelpText('after', '\nExample:\n  godwit console myvm          (Ctrl+] leaves it)')
    .action(async (name: string, options: ClusterOptions & { readonly timeout: number }) => {
      const { machineConsole } = await import('./machine-console.ts');
      const { stdin: input, stdout: output, stderr: errors } = process;
      await machineConsole(name, { ...options, timeoutMinutes: options.timeout }, realEnv('warn'), {
        input,
        output,
        errors,
      });
    });
}

function logsCommand(): Command {
  return clusterCommand('logs', 'Print what a virtual machine said on its serial console, wherever it ran.')
    .argument('<vm>', 'its name')
    .option('-f, --follow', 'go on with what it says from now on')
    .option('--tail <lines>', 'only so many lines from the end', parseLines)
    .addHelpText('after', '\nExample:\n  godwit logs myvm -f --tail 20')
    .action(async (name: string, options: LogsOptions) => {
      const { machineLogs } = await import('./machine-logs.ts');
      await machineLogs(name, options, realEnv('warn'), process.stdout);
    });
}
