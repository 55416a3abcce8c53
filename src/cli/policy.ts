import { Command } from 'commander';
import { realEnv } from '../env/real.ts';
import type { ExplainOptions } from './explain-policy.ts';

/** `godwit policy`: which migration policy holds, and why. What it needs is loaded when it runs. */

type Print = (line: string) => void;

/** The command, with its own subcommands. */
export function policyCommand(print: Print): Command {
  const policy = new Command('policy')
    .description('Migration policies.')
    // Subcommands take it from here: whoever adds this one to a program sets it too late for them.
    .exitOverride()
    .showHelpAfterError("(see 'godwit policy --help')");
  policy
    .command('explain')
    .description('Say which policy holds for a virtual machine, why, what follows, and what would change it.')
    .argument('<vm>', 'its name')
    .option('-n, --namespace <namespace>', 'the namespace that it is in')
    .option('--kubeconfig <file>', 'the cluster (default: KUBECONFIG, or that of the data directory)')
    .option('--json', 'print the answer as JSON')
    .addHelpText('after', '\nExample:\n  godwit policy explain myvm')
    .action(async (name: string, options: ExplainOptions) => {
      const { explainPolicy } = await import('./explain-policy.ts');
      await explainPolicy(name, options, realEnv('warn'), print);
    });
  return policy;
}
