import { Command } from 'commander';
import { realEnv } from '../env/real.ts';
import type { TrustCommandOptions } from './trust-commands.ts';
import { type OutputFormat, withCluster, withOutput } from './cluster-options.ts';

/** `godwit trust`: which other clusters guests may go to and come from. What it needs is loaded when it runs. */

type Print = (line: string) => void;

/** The command, with its own subcommands. */
export function trustCommand(print: Print): Command {
  const trust = new Command('trust').description('Other clusters that virtual machines may move to and come from.');
  withCluster(trust.command('export'))
    .description('Print what another cluster has to import to trust this one. Nothing in it is secret.')
    .option('--name <name>', 'what this cluster calls itself (default: from its id)')
    .addHelpText('after', '\nExample:\n  godwit trust export --name east > east.yaml')
    .action(async (options: TrustCommandOptions & { name?: string }) => {
      const { exportTrust } = await import('./trust-commands.ts');
      await exportTrust(options, realEnv('warn'), print);
    });
  withCluster(trust.command('import'))
    .description('Trust another cluster, or again after a long time without a connection.')
    .argument('<file>', "what 'godwit trust export' printed there (-: standard input)")
    .option('--name <name>', 'what it is called here (default: as it calls itself)')
    .addHelpText('after', '\nExample:\n  godwit trust import east.yaml')
    .action(async (file: string, options: TrustCommandOptions & { name?: string }) => {
      const { importTrustFile } = await import('./trust-commands.ts');
      await importTrustFile(file, options, realEnv('warn'), print);
    });
  withOutput(withCluster(trust.command('list')))
    .description('Show the clusters that are trusted.')
    .addHelpText('after', '\nExample:\n  godwit trust list\n  godwit trust list -o json')
    .action(async (options: TrustCommandOptions & { output?: OutputFormat }) => {
      const { printTrust } = await import('./trust-commands.ts');
      await printTrust(options, realEnv('warn'), print);
    });
  withCluster(trust.command('revoke'))
    .description('Begin nothing new with a cluster, and part from it once no guest is on its way to or from it.')
    .argument('<name>', 'what it is called here, or its id')
    .addHelpText('after', '\nExample:\n  godwit trust revoke east')
    .action(async (name: string, options: TrustCommandOptions) => {
      const { revokeTrustIn } = await import('./trust-commands.ts');
      await revokeTrustIn(name, options, realEnv('warn'), print);
    });
  return trust.addHelpText(
    'after',
    '\nExample:\n  godwit trust export --name east > east.yaml\n  godwit trust import west.yaml\n  godwit trust list',
  );
}
