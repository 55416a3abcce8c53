import { Command, InvalidArgumentError, Option } from 'commander';
import { realEnv } from '../env/real.ts';
import type { NewTokenOptions, TokenCommandOptions } from './bootstrap-tokens.ts';
import { withCluster, withOutput } from './cluster-options.ts';
import { durationMs } from './duration.ts';

/** `godwit token`: what other machines join the cluster with. What it needs is loaded when it runs. */

/** `90m`, `24h`, `1h30m`; 0 is for ever. */
function parseLifetime(text: string): number {
  const lifetimeMs = durationMs(text);
  if (lifetimeMs === undefined)
    throw new InvalidArgumentError('give a duration such as 24h or 90m, or 0 for a token that does not end.');
  return lifetimeMs;
}

type Print = (line: string) => void;

/** The command, with its own subcommands. */
export function tokenCommand(print: Print): Command {
  const token = new Command('token').description('Tokens with which other machines join the cluster as nodes.');
  // Its --server is where others find the one that the kubeconfig says.
  withOutput(withCluster(token.command('create'), ['--server']))
    .description('Make a token, and print the command that joins a machine with it.')
    .addOption(
      new Option('--ttl <duration>', 'how long it can be used, such as 90m; for ever where it is 0')
        .argParser(parseLifetime)
        .default(parseLifetime('24h'), '24h'),
    )
    .option('--description <text>', 'what it is for')
    .option('--server <url>', 'where the other machine finds the API server (default: as the kubeconfig has it)')
    .addHelpText(
      'after',
      '\nExample:\n  godwit token create --ttl 2h --description "rack 7"\n  godwit token create -o json',
    )
    .action(async ({ server, ...options }: Omit<NewTokenOptions, 'joinServer'> & { server?: string }) => {
      const { createToken } = await import('./bootstrap-tokens.ts');
      await createToken({ ...options, joinServer: server }, realEnv('warn'), print);
    });
  withOutput(withCluster(token.command('list')))
    .description('Show all tokens.')
    .addHelpText('after', '\nExample:\n  godwit token list')
    .action(async (options: TokenCommandOptions) => {
      const { listTokens } = await import('./bootstrap-tokens.ts');
      await listTokens(options, realEnv('warn'), print);
    });
  withCluster(token.command('delete'))
    .description('Make a token useless. Machines that have joined with it stay.')
    .argument('<token>', 'the token, or its first six characters')
    .addHelpText('after', '\nExample:\n  godwit token delete abcdef')
    .action(async (name: string, options: TokenCommandOptions) => {
      const { deleteToken } = await import('./bootstrap-tokens.ts');
      await deleteToken(name, options, realEnv('warn'), print);
    });
  return token.addHelpText('after', '\nExample:\n  godwit token create --ttl 2h\n  godwit token list');
}
