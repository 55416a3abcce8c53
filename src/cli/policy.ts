import { Command } from 'commander';
import { realEnv } from '../env/real.ts';
import { withNamespace, withOutput } from './cluster-options.ts';
import type { ExplainOptions } from './explain-policy.ts';

/** `godwit policy`: which migration policy holds, and why. What it needs is loaded when it runs. */

type Print = (line: string) => void;

/** The command, with its own subcommands. */
export function policyCommand(print: Print): Command {
  const policy = new Command('policy').description('Migration policies.');
  withOutput(withNamespace(policy.command('explain')))
    .description('Say which policy holds for a virtual machine, why, what follows, and what would change it.')
    .argument('<vm>', 'its name')
    .addHelpText('after', '\nExample:\n  godwit policy explain myvm\n  godwit policy explain myvm -n shop -o yaml')
    .action(async (name: string, options: ExplainOptions) => {
      const { explainPolicy } = await import('./explain-policy.ts');
      await explainPolicy(name, options, realEnv('warn'), print);
    });
  return policy.addHelpText('after', '\nExample:\n  godwit policy explain myvm');
}
