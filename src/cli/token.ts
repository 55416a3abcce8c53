import { Command, InvalidArgumentError } from 'commander';
import { realEnv } from '../env/real.ts';
import type { TokenCommandOptions } from './bootstrap-tokens.ts';
import { withCluster, withOutput } from './cluster-options.ts';

/** `godwit token`: what other machines join the cluster with. What it needs is loaded when it runs. */

const UNITS_MS: ReadonlyMap<string, number> = new Map([
  ['s', 1000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
]);

/** `90m`, `24h`, `1h30m`; 0 is for ever. */
function parseDuration(text: string): number {
  const parts = [...text.matchAll(/(\d{1,6})([smhd])/g)];
  if (text !== '0' && (parts.length === 0 || parts.map(([part]) => part).join('') !== text))
    throw new InvalidArgumentError('give a duration such as 24h or 90m, or 0 for a token that does not end.');
  return parts.reduce((sum, [, count, unit = '']) => sum + Number(count) * (UNITS_MS.get(unit) ?? 0), 0);
}

type Print = (line: string) => void;

/** The command, with its own subcommands. */
export function tokenCommand(print: Print): Command {
  const token = new Command('token').description('Tokens with which other machines join the cluster as nodes.');
  withCluster(token.command('create'))
    .description('Make a token, and print the command that joins a machine with it.')
    .option('--ttl <duration>', 'how long it can be used (24h, 90m; 0: for ever)', parseDuration, parseDuration('24h'))
    .option('--description <text>', 'what it is for')
    .option('--server <url>', 'where the other machine finds the API server (default: as the kubeconfig has it)')
    .addHelpText('after', '\nExample:\n  godwit token create --ttl 2h --description "rack 7"')
    .action(async (options: TokenCommandOptions & { ttl: number; description?: string; server?: string }) => {
      const { createToken } = await import('./bootstrap-tokens.ts');
      await createToken(options, realEnv('warn'), print);
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
  return token;
}
